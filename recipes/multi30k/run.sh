#!/usr/bin/env bash
# The fixed-vector model of Cho et al. 2014 on Multi30k English-French: train, translate, score, report. Needs NMT_DATA.
# usage: run.sh [section.key=value ...]     (overrides of train.yaml)
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -d "${NMT_DATA:-}/multi30k" ] || { echo "set NMT_DATA to the folder that holds multi30k/ (train, val, test_2016_flickr; .en and .fr)" >&2; exit 2; }
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
run=runs/multi30k
out=runs/multi30k-report
data=$NMT_DATA/multi30k
mkdir -p $out

nmt-train recipes/multi30k/train.yaml "$@"

# BLEU is measured on lower-cased, tokenized text, as the model reads it.
for part in val test_2016_flickr; do
    nmt-tokenize -l en --lower < "$data/$part.en" > $out/$part.en
    nmt-tokenize -l fr --lower < "$data/$part.fr" > $out/$part.ref.fr
    nmt-translate $run --tokenized --beam-size 10 < $out/$part.en > $out/$part.fr
    nmt-analyze by-length --source $out/$part.en --reference $out/$part.ref.fr --hypothesis $out/$part.fr \
        --bleu-tokenize none --least 20 --title "Multi30k $part, RNN encoder-decoder, beam 10" --output $out/$part
done
nmt-score $run --tokenized --source $out/test_2016_flickr.en --target $out/test_2016_flickr.ref.fr > $out/test_2016_flickr.scores
