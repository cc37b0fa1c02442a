#!/usr/bin/env bash
# Neural features in a Moses system (van Merriënboer 2018, chapter 4) on the real Multi30k system: train phrase models on its table, rescore its
# n-best lists, tune, compare. Needs NMT_DATA and kenlm; about 40 CPU minutes a model, four models.
# usage: rescoring.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${NMT_DATA:-}/moses-multi30k
[ -d "$data" ] || { echo "set NMT_DATA to the folder that holds moses-multi30k/ (a Moses system with its n-best lists)" >&2; exit 2; }
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
out=runs/phrase_scores
mkdir -p $out

# Vocabularies of the training corpus: all its words, and the 1,500 most frequent ones, which cover 93% of it as in Cho et al. 2014a.
for l in en fr; do
    nmt-vocab --unescape --size 1500 -i "$data/corpus/train.tok.$l" -o runs/short.$l.vocab
    nmt-vocab --unescape --size 30000 -i "$data/corpus/train.tok.$l" -o runs/full.$l.vocab
done

# Two directions of each. One thread a model: two at a time on two cores.
train() { # VARIANT DIRECTION SOURCE TARGET
    nmt-train recipes/phrase_scores/train.yaml run=runs/phrases-$1-$2 threads=1 data.source.vocab_file=runs/$1.$3.vocab data.target.vocab_file=runs/$1.$4.vocab \
        data.inverse=$([ "$2" = inverse ] && echo true || echo false) data.source.language="$3" data.target.language="$4"
}
for variant in short full; do
    train $variant translation en fr & one=$!
    train $variant inverse fr en & two=$!
    wait $one; wait $two
done

[ -s $out/reverse.arpa ] || python recipes/phrase_scores/reverse_lm.py "$data/corpus/train.tok.fr" > $out/reverse.arpa

for variant in short full; do
    unknown=()
    [ $variant = short ] && unknown=(-f unknown-words=runs/phrases-short-translation)
    for part in val test_2016_flickr; do
        smt-rescore "$data/out/$part.100best.segalign.gz" -s "$data/corpus/$part.tok.en" --by-phrase --checkpoint last --workers 2 \
            -f translation=runs/phrases-$variant-translation -f inverse=runs/phrases-$variant-inverse ${unknown[@]+"${unknown[@]}"} \
            -f reverse-lm=$out/reverse.arpa --decoder-weights "$data/moses.tuned.ini" -o $out/$part.$variant.all
    done
    recipes/phrase_scores/tune.sh $variant
    systems=(rnn rnn-inverse reverse-lm all)
    [ $variant = short ] && systems+=(rnn-inverse-wp)
    nmt-analyze compare -r "$data/corpus/test_2016_flickr.tok.fr" --baseline $out/$variant.control.test --hypothesis $(printf "$out/$variant.%s.test " "${systems[@]}") \
        --bleu-tokenize none | tee $out/$variant.tsv
done
