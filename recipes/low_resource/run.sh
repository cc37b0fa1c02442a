#!/usr/bin/env bash
# Learning curves over the number of sentence pairs, of a phrase-based system, an attention model alone, and the hybrid of
# both. All three come from one smt-build for each size (Koehn and Knowles 2017; Sennrich and Zhang 2019).
# usage: run.sh [--data multi30k|tatoeba|generated|DIR] [--sizes "N ..."] [--seeds "N ..."] [--budget TIME] [--out DIR] [--workers N]
#   --data    multi30k or tatoeba of NMT_DATA (default multi30k if it exists); generated: the corpus of the quickstart's grammar; DIR: train, dev and test .en and .fr, raw text
#   --sizes   pairs to train on; default "1000 2000 5000 10000 20000 29000", as many as there are
#   --seeds   of networks and tuning; default: three at 1,000, 5,000 and 29,000 pairs, else one
#   --budget  of each build; default 90m
# The script can be stopped and started again; finished steps are not repeated. dev is used for tuning, and is the same for all sizes; test is translated once.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=recipes/low_resource
data= sizes="1000 2000 5000 10000 20000 29000" seeds= budget=90m out= workers=2
while [ $# -gt 0 ]; do
    case $1 in
        --data) data=$2; shift 2 ;;
        --sizes) sizes=$2; shift 2 ;;
        --seeds) seeds=$2; shift 2 ;;
        --budget) budget=$2; shift 2 ;;
        --out) out=$2; shift 2 ;;
        --workers) workers=$2; shift 2 ;;
        *) echo "run.sh: unknown option $1; see the head of $here/run.sh" >&2; exit 2 ;;
    esac
done
[ -n "$data" ] || data=$([ -d "${NMT_DATA:-}/multi30k" ] && echo multi30k || echo generated)
out=${out:-runs/low-resource-$(basename "$data")}
texts=$out/data
mkdir -p "$texts"
say() { printf '\n== %s\n' "$*"; }

say "texts"
# shellcheck disable=SC2086 # sizes and seeds are words
python $here/corpora.py "$data" "$texts" $sizes

# output FILE COMMAND ...: what the command writes to stdout, whole or not at all
output() {
    file=$1
    shift
    [ -f "$file" ] || { "$@" > "$file.part" && mv "$file.part" "$file"; }
}
words() { python $here/words.py source "$1" < "$texts/test.en"; }
phrase_based() { # SYSTEM: its whole tables under the weights that it has without networks
    smt-decode "$1/build/model/moses.ini" -w "$1/build/dev/phrase-based.ini" -i "$1.words" --stack 100 --workers "$workers" | python $here/words.py target "$1"
}
neural() { nmt-translate "$2" --escaped --beam-size 5 --threads "$workers" -i "$1.words" | python $here/words.py target "$1"; }
alone() { # SYSTEM SIZE SEED: an attention model, where the system has none
    corpus=$1/build/corpus run=$1.attention
    [ -f "$run-mean/version" ] || {
        nmt-train $here/neural.yaml --preset small run="$run" seed="$3" threads=1 training.max_steps=$((60 * ($2 / 64 + 1))) training.validate_every=$((3 * ($2 / 64 + 1))) \
            data.train_source="$corpus/train.source" data.train_target="$corpus/train.target" data.dev_source="$corpus/dev.source" data.dev_target="$corpus/dev.target"
        nmt-average -q "$run" --output "$run-mean"
    }
}
hybrid() { smt-decode "$1" -i "$texts/test.en" --workers "$workers"; }

for size in $sizes; do
    [ -s "$texts/train-$size.en" ] || continue
    case $size in 1000|5000|29000) some="1 2 3" ;; *) some=1 ;; esac
    for seed in ${seeds:-$some}; do
        system=$out/$size.seed-$seed first=$out/$size.seed-1
        say "$size pairs, seed $seed"
        plan=() # other seeds by the same plan
        [ "$system" = "$first" ] || [ ! -s "$first/build/plan.json" ] || plan=(--plan "$first/build/plan.json")
        [ -s "$system.hybrid" ] || smt-build --source "$texts/train-$size.en" --target "$texts/train-$size.fr" --dev-source "$texts/dev.en" --dev-target "$texts/dev.fr" \
            --output "$system" --budget "$budget" --keep-plan --seed "$seed" --workers "$workers" "${plan[@]}"
        output "$system.words" words "$system"
        output "$system.phrase-based" phrase_based "$system"
        run=$system/networks/attention
        [ -d "$run" ] || run=$system/build/networks/attention # trained, but the system is better without it
        [ -d "$run" ] || { alone "$system" "$size" "$seed"; run=$system.attention-mean; }
        output "$system.neural" neural "$system" "$run"
        output "$system.hybrid" hybrid "$system"
    done
done

say "table and figure"
python $here/curve.py "$out" "$texts/test.fr" "$(basename "$data")"
