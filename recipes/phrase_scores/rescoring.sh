#!/usr/bin/env bash
# Neural features in a Moses system (van Merriënboer 2018, chapter 4) on the real Multi30k system: train phrase models on its table, rescore its
# n-best lists, tune, compare. Needs NMT_DATA; about 40 CPU minutes a model, four models.
# usage: rescoring.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${NMT_DATA:-}/moses-multi30k
[ -d "$data" ] || { echo "set NMT_DATA to the folder that holds moses-multi30k/ (a Moses system with its n-best lists)" >&2; exit 2; }
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
out=runs/phrase_scores
test=test_2016_flickr
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
    train $variant translation en fr & first=$!
    train $variant inverse fr en & second=$!
    wait $first; wait $second
done

# The control: a 5-gram model of the text from right to left.
[ -s $out/reverse.arpa ] || awk '{for (i = NF; i > 0; i--) printf "%s%s", $i, (i > 1 ? " " : ""); print ""}' "$data/corpus/train.tok.fr" | nmt-ngram -q --order 5 -o $out/reverse.arpa

rescore() { # PART OUTPUT OPTION ...: Moses' lists with more features
    smt-rescore "$data/out/$1.100best.segalign.gz" -s "$data/corpus/$1.tok.en" --workers 2 --decoder-weights "$data/moses.tuned.ini" -o $out/$1.$2 "${@:3}"
}
tune() { # LISTS NAME FEATURE ...: tune the lists without these features, and translate with the weights -> NAME.weights, NAME.val, NAME.test
    smt-tune-nbest -q --n-best $out/val.$1 --reference "$data/corpus/val.tok.fr" --init "$data/moses.tuned.ini" --method kbmira --runs 3 \
        ${3+--drop "${@:3}"} -o $out/$2.weights > $out/$2.tuning
    for part in val $test; do
        smt-rescore -q $out/$part.$1 -s "$data/corpus/$part.tok.en" -w $out/$2.weights --best $out/$2.${part/$test/test}
    done
}
compare() { # BASELINE NAME ...
    nmt-analyze compare -r "$data/corpus/$test.tok.fr" --baseline $out/$1.test --hypothesis $(printf "$out/%s.test " "${@:2}") --bleu-tokenize none
}
for variant in short full; do
    unknown=() column= # the count of unknown words: 0 with all words in the vocabulary
    [ $variant = full ] || { unknown=(-f unknown-words=runs/phrases-short-translation); column=UnknownWords0; }
    for part in val $test; do
        rescore $part $variant.all --by-phrase --checkpoint last -f translation=runs/phrases-$variant-translation \
            -f inverse=runs/phrases-$variant-inverse ${unknown[@]+"${unknown[@]}"} -f reverse-lm=$out/reverse.arpa
    done
    tune $variant.all $variant.control RNN0 InverseRNN0 ReverseLM0 $column
    tune $variant.all $variant.rnn InverseRNN0 ReverseLM0 $column
    tune $variant.all $variant.rnn-inverse ReverseLM0 $column
    [ -z "$column" ] || tune $variant.all $variant.rnn-inverse-wp ReverseLM0
    tune $variant.all $variant.reverse-lm RNN0 InverseRNN0 $column
    tune $variant.all $variant.all
    compare $variant.{control,rnn,rnn-inverse,reverse-lm,all} ${column:+$variant.rnn-inverse-wp} | tee $out/$variant.tsv
done

# The other use of a network: its score of whole sentences, on the same lists.
if [ -d runs/multi30k ]; then
    for part in val $test; do rescore $part sentence -f translation=runs/multi30k; done
    tune sentence sentence
    compare full.control sentence
fi
