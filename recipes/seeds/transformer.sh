#!/usr/bin/env bash
# A Transformer against RNNsearch on Multi30k English-French: two seeds side by side, one core each, the last ten checkpoints
# averaged, val and test translated. 90 minutes on 2 cores. Needs NMT_DATA.
# usage: transformer.sh [section.key=value ...]     (overrides of transformer.yaml)
#        SEEDS="1 2" (default)   OUT=runs/seeds-transformer (default)   PARTS="val test_2016_flickr" (default; val while you tune)
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${NMT_DATA:-}/multi30k/tok
[ -d "$data" ] || { echo "set NMT_DATA to the folder that holds multi30k/tok/ (train, val, test_2016_flickr; .lc.norm.tok.en and .fr)" >&2; exit 2; }
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
out=${OUT:-runs/seeds-transformer}
mkdir -p "$out"

jobs=()
for seed in ${SEEDS:-1 2}; do
    nmt-train recipes/seeds/transformer.yaml --preset transformer-small run="$out/$seed" seed="$seed" "$@" 2> "$out/$seed.log" &
    jobs+=($!)
done
for job in "${jobs[@]}"; do wait "$job"; done

for seed in ${SEEDS:-1 2}; do
    [ -f "$out/$seed-mean/version" ] || nmt-average "$out/$seed" --last 10 --output "$out/$seed-mean"
done
for part in ${PARTS:-val test_2016_flickr}; do
    for seed in ${SEEDS:-1 2}; do
        nmt-translate "$out/$seed" --tokenized --beam-size 5 < "$data/$part.lc.norm.tok.en" > "$out/$part.$seed.best.fr"
        nmt-translate "$out/$seed-mean" --tokenized --beam-size 5 < "$data/$part.lc.norm.tok.en" > "$out/$part.$seed.mean.fr"
    done
    baseline=runs/multi30k-attention-report/$part.mean.fr  # RNNsearch, of recipes/multi30k/attention.sh
    [ -f "$baseline" ] || baseline=$(ls "$out/$part".*.best.fr | head -1)
    nmt-analyze compare -r "$data/$part.lc.norm.tok.fr" --baseline "$baseline" --hypothesis "$out/$part".*.mean.fr --bleu-tokenize none --output "$out/$part"
done
