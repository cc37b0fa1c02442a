#!/usr/bin/env bash
# RNNsearch on Multi30k English-French: train, translate, report. Needs NMT_DATA.
# usage: attention.sh [section.key=value ...]     (overrides of attention.yaml)
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${NMT_DATA:-}/multi30k/tok
[ -d "$data" ] || { echo "set NMT_DATA to the folder that holds multi30k/tok/ (train, val, test_2016_flickr; .lc.norm.tok.en and .fr)" >&2; exit 2; }
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
run=runs/multi30k-attention
out=$run-report
mkdir -p $out

nmt-train recipes/multi30k/attention.yaml --preset small "$@"
for part in val test_2016_flickr; do
    source=$data/$part.lc.norm.tok.en
    for step in 453 1359 2718 4530; do
        nmt-translate $run --checkpoint $step --tokenized --beam-size 5 < "$source" > $out/$part.$step.fr
    done
    nmt-analyze compare -r "$data/$part.lc.norm.tok.fr" --baseline $out/$part.4530.fr --hypothesis $out/$part.{453,1359,2718}.fr --bleu-tokenize none --output $out/$part
done
nmt-analyze by-length --source "$data/test_2016_flickr.lc.norm.tok.en" --reference "$data/test_2016_flickr.lc.norm.tok.fr" \
    --hypothesis $out/test_2016_flickr.4530.fr --bleu-tokenize none --least 20 --title "Multi30k test_2016_flickr, RNNsearch" --output $out
nmt-analyze curves $run --output $out
