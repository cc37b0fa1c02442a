#!/usr/bin/env bash
# Words of the Penn Treebank: Kneser-Ney, feed-forward 7-grams, LSTM. Needs NMT_DATA.
# usage: run.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# = 0 ] || { echo "run.sh: $1: takes no arguments; leave it out" >&2; exit 2; }
data=${NMT_DATA:-}/ptb
[ -d "$data" ] || { echo "set NMT_DATA to the folder that holds ptb/" >&2; exit 2; }
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
out=runs/ptb
mkdir -p $out
[ -s $out/kn.arpa.gz ] || nmt-ngram --order 5 -i "$data/ptb.train.txt" -o $out/kn.arpa.gz
for kind in cslm recurrent; do
    nmt-train recipes/ptb_words/$kind.yaml data.train_text="$data/ptb.train.txt" data.dev_text="$data/ptb.valid.txt"
done
for model in kn.arpa.gz cslm recurrent; do
    for part in valid test; do nmt-perplexity -q $out/$model -i "$data/ptb.$part.txt" -o $out/$model.$part.perplexity; done
    echo "$model: $(sed -n 's/\tperplexity per unit.*//p' $out/$model.valid.perplexity) on valid, $(sed -n 's/\tperplexity per unit.*//p' $out/$model.test.perplexity) on test"
done
