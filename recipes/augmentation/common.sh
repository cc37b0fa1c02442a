# Options, texts and trainings of both recipes, which source this file with their name in $name.
# options: [--quick] [--data multi30k|generated|DIR] [--pairs N] [--out DIR] [--seed N] [section.key=value ...]
#   --data    multi30k of NMT_DATA (default if it exists); generated: the corpus of the quickstart's grammar; DIR: train, dev and test .en and .fr, raw text
#   --pairs   of the training text, half of which counts as parallel; default 29000 of Multi30k, else 20000
#   --quick   a dry run of a minute: generated text, 600 pairs, a tiny model
#   section.key=value   overrides of train.yaml, for all models
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
here=recipes/augmentation
data='' pairs='' out='' seed=1 quick=false overrides=() search=(--beam-size 5)
while [ $# -gt 0 ]; do
    case $1 in
        --quick) quick=true; shift ;;
        --data) data=$2; shift 2 ;;
        --pairs) pairs=$2; shift 2 ;;
        --out) out=$2; shift 2 ;;
        --seed) seed=$2; shift 2 ;;
        *.*=*) overrides+=("$1"); shift ;;
        *) echo "$name.sh: unknown option $1; see the head of $here/common.sh" >&2; exit 2 ;;
    esac
done
if $quick; then
    data=generated pairs=${pairs:-600}
    overrides+=(model.embedding=16 model.hidden=24 model.encoder_hidden=12 model.attention=16 model.maxout=12 threads=1)
    overrides+=(training.max_steps=24 training.validate_every=12 training.dev_beam=1 training.batch_size=32)
    search+=(--max-length 20)
fi
[ -n "$data" ] || data=$([ -d "${NMT_DATA:-}/multi30k" ] && echo multi30k || echo generated)
pairs=${pairs:-$([ "$data" = multi30k ] && echo 29000 || echo 20000)}
out=${out:-runs/augmentation-$(basename "$data")}
texts=$out/texts
half=$texts/train-$((pairs / 2)) whole=$texts/train-$pairs # the half is the beginning of the whole
say() { printf '\n== %s\n' "$*"; }

say "texts"
mkdir -p "$texts"
python recipes/low_resource/corpora.py "$data" "$texts" $((pairs / 2)) "$pairs"
if $quick; then
    for part in dev test; do
        for language in en fr; do
            head -n 40 "$texts/$part.$language" > "$texts/$part.short" && mv "$texts/$part.short" "$texts/$part.$language"
        done
    done
fi

# train RUN FROM TO section.key=value ...: a model of these languages; started again it is resumed
train() {
    run=$1 from=$2 to=$3
    shift 3
    nmt-train $here/train.yaml --preset small run="$out/$run" seed="$seed" data.dev_source="$texts/dev.$from" data.dev_target="$texts/dev.$to" "${overrides[@]}" "$@"
}
# translate RUN INPUT OUTPUT: once
translate() { [ -f "$3" ] || nmt-translate "$out/$1" "${search[@]}" --input "$2" --output "$3"; }
# report BASELINE RUN ...: BLEU and the paired bootstrap of the runs, on dev and test
report() {
    baseline=$1
    for part in dev test; do
        hypotheses=()
        for run in "$@"; do
            translate "$run" "$texts/$part.en" "$out/$part.$run.fr"
            hypotheses+=("$out/$part.$run.fr")
        done
        nmt-analyze compare -r "$texts/$part.fr" --baseline "$out/$part.$baseline.fr" --hypothesis "${hypotheses[@]:1}" --output "$out/$name-$part"
    done
}
