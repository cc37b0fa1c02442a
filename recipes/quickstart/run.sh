#!/usr/bin/env bash
# The quickstart: corpus, training, translation, analysis, phrase scores. Runs the installed commands, as a user would.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# = 0 ] || { echo "run.sh: $1: takes no arguments; leave it out" >&2; exit 2; }
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
here=recipes/quickstart
out=runs/quickstart
corpus=$out/corpus

say() { printf '\n== %s\n' "$*"; }

say "1/5  a small English-French corpus, written by a grammar"
[ -s $corpus/phrase-table.gz ] || nmt-init $corpus --sample-corpus
head -n 2 $corpus/train.en $corpus/train.fr

say "2/5  train an RNN encoder-decoder (about 4 minutes; if interrupted, it continues when started again)"
nmt-train $here/train.yaml

say "3/5  translate the test set with a beam of 10"
nmt-translate $out/model --beam-size 10 --input $corpus/test.en --output $out/test.fr

say "4/5  BLEU by sentence length"
nmt-analyze by-length --source $corpus/test.en --reference $corpus/test.fr --hypothesis $out/test.fr --least 50 --output $out/analysis

say "5/5  score a small Moses phrase table: one more column, p(target | source)"
smt-score-table $corpus/phrase-table.gz --feature translation=$out/model --output $out/phrase-table.scored.gz

python $here/summary.py $out
