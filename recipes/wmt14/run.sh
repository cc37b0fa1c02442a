#!/usr/bin/env bash
# The experiments of Cho et al. 2014a and 2014b at their own scale: corpora, tokenization, selection, networks on several devices, tables 4.1, with Moses, and 6.1 of van Merriënboer 2018.
# usage: run.sh [--out DIR] [--devices N] [--engine embedded|moses] [--memory GB] [--workers N] [--sample] [--generated PAIRS]
#   --memory, --workers  of the extraction of phrases (default: 16 GB, 1 process)
#   --sample  every step on a few thousand lines of the quickstart's corpus, with tiny networks: takes minutes, needs no internet and no GPU
#   --generated PAIRS  the same on a generated corpus of any size, in archives like WMT's (generate.py)
# The script can be stopped and started again; finished steps are not repeated. DIR/steps.tsv has the time and memory of most steps. README.md says what it costs, and what was never run.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=recipes/wmt14 out=runs/wmt14 devices=1 engine=moses sample= generated= memory=16 workers=1
while [ $# -gt 0 ]; do
    case $1 in
        --out) out=$2; shift 2 ;;
        --devices) devices=$2; shift 2 ;;
        --engine) engine=$2; shift 2 ;;
        --memory) memory=$2; shift 2 ;;
        --workers) workers=$2; shift 2 ;;
        --sample) sample=yes; shift ;;
        --generated) sample=yes generated=$2; shift 2 ;;
        *) echo "run.sh: unknown option $1; see the head of $here/run.sh" >&2; exit 2 ;;
    esac
done
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
timed() { # NAME COMMAND ...
    python $here/measure.py "$out/steps.tsv" "$@"
}
say() { printf '\n== %s\n' "$*"; }
text=$out/text
mkdir -p "$text"
parallel_words=348000000 lm_words=418000000 short=15000 device=cuda
small=()
if [ -n "$sample" ]; then
    engine=embedded short=300 device=cpu
    [ -n "$generated" ] || parallel_words=20000 lm_words=20000
    small=(training.max_steps=40 training.max_minutes=2 training.batch_size=16 training.tensorboard=false)
fi

say "1/7  corpora"
if [ -n "$generated" ]; then
    [ -s "$out/downloads/corpora.tsv" ] || timed generate python $here/generate.py "$out/downloads" --pairs "$generated"
    timed unpack python $here/unpack.py "$out/downloads/corpora.tsv" "$out/downloads" "$text"
elif [ -n "$sample" ]; then
    # The files that unpack.py writes, from the quickstart's corpus.
    if [ ! -s "$text/test.fr" ]; then
        nmt-init "$out/grammar" --sample-corpus
        for l in en fr; do
            head -n 6000 "$out/grammar/train.$l" > "$text/parallel.$l"
            head -n 200 "$out/grammar/dev.$l" > "$text/dev.$l"
            head -n 200 "$out/grammar/test.$l" > "$text/test.$l"
        done
        tail -n 4000 "$out/grammar/train.fr" > "$text/mono.fr"
    fi
else
    python $here/download.py $here/corpora.tsv "$out/downloads"
    timed unpack python $here/unpack.py $here/corpora.tsv "$out/downloads" "$text"
fi

say "2/7  tokenize (with Moses' escapes), clean"
for name in parallel.en parallel.fr mono.fr dev.en dev.fr test.en test.fr; do
    [ -s "$text/$name.tok" ] || timed "tokenize $name" nmt-tokenize --language "${name##*.}" --escape -i "$text/$name" -o "$text/$name.tok"
done
[ -s "$text/clean.fr" ] || timed clean nmt-clean -s "$text/parallel.en.tok" -t "$text/parallel.fr.tok" --max-length 80 --output-source "$text/clean.en" --output-target "$text/clean.fr"

say "3/7  select text like the development set: pairs by both sides (348 million words), language model text by one (418 million)"
data=$out/data
mkdir -p "$data"
for part in dev test; do for l in en fr; do cp -f "$text/$part.$l.tok" "$data/$part.$l"; done; done
[ -s "$data/train.fr" ] || timed "select pairs" smt-select --in-domain "$data/dev.en" "$data/dev.fr" -g "$text/clean.en" "$text/clean.fr" -o "$data/train.en" "$data/train.fr" --words "$parallel_words"
[ -s "$text/lm-pool.fr" ] || cat "$text/clean.fr" "$text/mono.fr.tok" > "$text/lm-pool.fr"
[ -s "$data/lm.fr" ] || timed "select text" smt-select --in-domain "$data/dev.fr" -g "$text/lm-pool.fr" -o "$data/lm.fr" --words "$lm_words"

say "4/7  phrase-based model"
report=$out/table-4.1
[ -s "$report/model/moses.ini" ] || timed "phrase-based model" smt-train "$report/model" -s "$data/train.en" -t "$data/train.fr" --lm-text "$data/lm.fr" --memory "$memory" --workers "$workers"

say "5/7  networks of Table 4.1, on $devices device(s)"
networks=$out/networks
mkdir -p "$networks"
for l in en fr; do
    [ -s "$networks/short.$l.vocab" ] || nmt-vocab -q --unescape --size $short -i "$data/train.$l" -o "$networks/short.$l.vocab"
done
train() { # CONFIG NAME section.key=value ...
    config=$1 name=$2; shift 2
    torchrun --standalone --nproc-per-node "$devices" --no-python nmt-train "$config" run="$networks/$name" device=$device "$@" ${small[@]+"${small[@]}"}
}
shrink=() shrink_cslm=()
if [ -n "$sample" ]; then
    shrink=(model.hidden=32 model.maxout=16 model.embedding=16 model.output_rank=16)
    shrink_cslm=(lm.embedding=16 "lm.layers=[32]" training.validate_every=0)
fi
train $here/phrases.yaml short-translation data.phrase_table="$report/model/phrase-table.gz" data.source.language=en data.target.language=fr \
    data.source.vocab_file="$networks/short.en.vocab" data.target.vocab_file="$networks/short.fr.vocab" ${shrink[@]+"${shrink[@]}"}
train $here/cslm.yaml cslm data.train_text="$data/lm.fr" data.dev_text="$data/dev.fr" data.target.language=fr ${shrink_cslm[@]+"${shrink_cslm[@]}"}

say "6/7  Table 4.1"
quick=()
[ -n "$sample" ] && quick=(--quick)
recipes/phrase_scores/run.sh --engine "$engine" --data "$data" --networks "$networks" --out "$report" --lm-text "$data/lm.fr" --workers "$(nproc)" ${quick[@]+"${quick[@]}"}

say "7/7  Table 6.1: sentence models of Cho et al. 2014b, pairs of up to 30 words"
sentences() { # NAME section.key=value ...
    name=$1; shift
    reduce=()
    [ -n "$sample" ] && reduce=(model.hidden=32 model.maxout=16 model.embedding=16 training.validate_every=0)
    torchrun --standalone --nproc-per-node "$devices" --no-python nmt-train recipes/properties/wmt14.yaml run="$networks/$name" device=$device \
        data.train_source="$data/train.en" data.train_target="$data/train.fr" data.dev_source="$data/dev.en" data.dev_target="$data/dev.fr" \
        data.source.tokenize=false data.target.tokenize=false data.source.normalize=false data.target.normalize=false \
        "$@" ${reduce[@]+"${reduce[@]}"} ${small[@]+"${small[@]}"}
    [ -s "$networks/$name.test" ] || nmt-translate "$networks/$name" --tokenized --beam-size 10 -i "$data/test.en" -o "$networks/$name.test"
}
wide=2000
[ -n "$sample" ] && wide=32
sentences rnnenc
sentences grconv model.encoder=grconv model.encoder_hidden=$wide
nmt-analyze by-length --source "$data/test.en" --reference "$data/test.fr" --hypothesis "$networks/rnnenc.test" "$networks/grconv.test" \
    "$report/rows/baseline.seed-1.test" --names RNNenc grConv SMT --bleu-tokenize none --least 20 --output "$out/table-6.1"
echo "Table 4.1: $report/table.tsv and report.html; Table 6.1: $out/table-6.1"
