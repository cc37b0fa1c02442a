#!/usr/bin/env bash
# Characters: the plain LSTM against the multi-scale LSTM with a learned dictionary, at equal parameters (van Merriënboer 2018, tables 8.1 and 8.2, figure 8.4).
# usage: run.sh [ptb|generated [section.key=value ...]]
#   ptb        Penn Treebank, $NMT_DATA/ptb (default)
#   generated  the corpus of the quickstart's grammar
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
corpus=${1:-ptb}
overrides=("${@:2}")
out=runs/multiscale_$corpus
mkdir -p "$out"
case $corpus in
ptb)
    [ -d "${NMT_DATA:-}/ptb" ] || { echo "set NMT_DATA to the folder that holds ptb/, or use: run.sh generated" >&2; exit 2; }
    train=$NMT_DATA/ptb/ptb.char.train.txt.gz dev=$NMT_DATA/ptb/ptb.char.valid.txt.gz test=$NMT_DATA/ptb/ptb.char.test.txt.gz
    ;;
generated)
    [ -s "$out/text/train.en" ] || nmt-init "$out/text" --sample-corpus
    for part in train dev test; do sed 's/ /_/g; s/./& /g; s/ $//' "$out/text/$part.en" > "$out/$part.chars"; done
    train=$out/train.chars dev=$out/dev.chars test=$out/test.chars
    ;;
*) echo "expected ptb or generated, found $corpus" >&2; exit 2 ;;
esac

learn() { # NAME lm.key=value ...
    name=$1; shift
    nmt-train recipes/multiscale_ptb/train.yaml run="$out/$name" data.train_text="$train" data.dev_text="$dev" "$@" ${overrides[@]+"${overrides[@]}"}
}
learn multiscale lm.type=multiscale lm.dictionary=1024
learn recurrent lm.type=recurrent lm.hidden=377 # as many parameters

for name in multiscale recurrent; do nmt-perplexity -q "$out/$name" -i "$test" -o "$out/$name.perplexity"; done
nmt-dictionary table -q "$out/multiscale" -o "$out/dictionary.tsv"
nmt-dictionary arcs -q "$out/multiscale" -i "$test" -o "$out/arcs.tsv"
nmt-sample -q "$out/multiscale" --count 10 --boundaries "·" -o "$out/samples.txt"
nmt-analyze curves -q "$out/multiscale" "$out/recurrent" --names multiscale recurrent --output "$out/analysis"
for name in multiscale recurrent; do
    awk -F '\t' -v name=$name '$2 ~ /^perplexity per unit/ {printf "%s\t%.4f bits per character on the test text\n", name, log($1) / log(2)}' "$out/$name.perplexity"
done
