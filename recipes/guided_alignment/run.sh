#!/usr/bin/env bash
# Measure guided alignment: the alignment error rate of attention, and BLEU, with and without it, on the
# quickstart's grammar, which knows the true links. Each training takes one to two minutes of one core.
#     bash recipes/guided_alignment/run.sh [--quick] [NAME ...]
# --quick: a few updates, as a test of the script. NAME: trainings to run; default: all.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=recipes/guided_alignment
out=runs/guided
corpus=$out/corpus
steps=300
more=()
[ "${1:-}" = --quick ] && { steps=6; out=runs/guided_quick; more=(training.warmup=1); shift; }
names=(rnn rnn-gold rnn-model1 transformer transformer-mean transformer-head transformer-head-model1)
for name in "$@"; do
  [[ " ${names[*]} " = *" $name "* ]] || { echo "run.sh: no training $name, expected some of ${names[*]}" >&2; exit 2; }
done
[ $# = 0 ] || names=("$@")
mkdir -p $out

say() { printf '\n== %s\n' "$*" >&2; }

say "corpus, and the alignment of smt-align, which learns from the text alone"
[ -f $corpus/test.gold ] || nmt-init $corpus --sample-corpus
if [ ! -f $corpus/train.model1 ]; then
  for language in en fr; do
    for part in train test; do
      nmt-tokenize -q -l $language --lower -i $corpus/$part.$language -o $corpus/$part.tokens.$language
    done
    cat $corpus/train.tokens.$language $corpus/test.tokens.$language > $corpus/all.tokens.$language
  done
  smt-align -q -s $corpus/all.tokens.en -t $corpus/all.tokens.fr -o $corpus/all.model1
  head -n "$(wc -l < $corpus/train.en)" $corpus/all.model1 > $corpus/train.model1
  tail -n "$(wc -l < $corpus/test.en)" $corpus/all.model1 > $corpus/test.model1
fi

rnn="model.encoder=birnn model.embedding=64 model.hidden=128 model.encoder_hidden=64 model.attention=64 model.maxout=64
  model.bias=true model.init=glorot model.dropout=0.1 training.learning_rate=0.004"
transformer="model.type=transformer model.encoder_layers=2 model.decoder_layers=2 model.embedding=128
  model.feed_forward=256 model.heads=4 model.norm=pre training.learning_rate=0.002 training.beta2=0.98"

train() {  # name, alignment or none, settings
  local name=$1 links=$2; shift 2
  [[ " ${names[*]} " = *" $name "* ]] || return 0
  if [ "$links" != none ]; then set -- "$@" data.alignment=$corpus/train.$links; fi
  say "$name"
  nmt-train -q $here/train.yaml run=$out/$name training.max_steps=$steps training.validate_every=$((steps / 3)) ${more[@]+"${more[@]}"} "$@"
  nmt-score -q $out/$name -s $corpus/test.en -t $corpus/test.fr --alignments $out/$name.align -o $out/$name.scores
  nmt-translate -q $out/$name --beam-size 10 -i $corpus/test.en -o $out/$name.fr
}

train rnn none $rnn
train rnn-gold align $rnn training.guided_alignment=0.1
train rnn-model1 model1 $rnn training.guided_alignment=0.1
train transformer none $transformer
train transformer-mean align $transformer training.guided_alignment=0.1
train transformer-head align $transformer training.guided_alignment=0.1 model.attention_heads=1
train transformer-head-model1 model1 $transformer training.guided_alignment=0.1 model.attention_heads=1

say "alignment error rates"
runs=("${names[@]/#/$out/}")
nmt-analyze alignment-error -q --gold $corpus/test.gold --names smt-align "${names[@]}" \
  --hypothesis $corpus/test.model1 "${runs[@]/%/.align}" > $out/aer.tsv
python $here/table.py $out $corpus/test.fr | tee $out/table.tsv
