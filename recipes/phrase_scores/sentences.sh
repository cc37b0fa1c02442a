#!/usr/bin/env bash
# The other use of a network: its score of whole sentences, on the same lists. Needs runs/multi30k (recipes/multi30k/run.sh) and
# the control of rescoring.sh.   usage: sentences.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
data=$NMT_DATA/moses-multi30k
out=runs/phrase_scores
for part in val test_2016_flickr; do
    smt-rescore "$data/out/$part.100best.segalign.gz" -s "$data/corpus/$part.tok.en" -f translation=runs/multi30k --workers 2 \
        --decoder-weights "$data/moses.tuned.ini" -o $out/$part.sentence
done
smt-tune-nbest -q --n-best $out/val.sentence --reference "$data/corpus/val.tok.fr" --init "$data/moses.tuned.ini" --method kbmira --runs 3 \
    -o $out/sentence.weights > $out/sentence.tuning
smt-rescore -q $out/test_2016_flickr.sentence -s "$data/corpus/test_2016_flickr.tok.en" -w $out/sentence.weights --best $out/sentence.test
nmt-analyze compare -r "$data/corpus/test_2016_flickr.tok.fr" --baseline $out/full.control.test --hypothesis $out/sentence.test --bleu-tokenize none
