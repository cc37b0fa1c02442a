#!/usr/bin/env bash
# An attention model in a real Moses system: its score of whole sentences as one more feature of the 100-best lists, tuned on val; then together
# with the phrase models of recipes/phrase_scores, where those runs exist. Needs NMT_DATA.
# usage: run.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# = 0 ] || { echo "run.sh: $1: takes no arguments; leave it out" >&2; exit 2; }
data=${NMT_DATA:-}/moses-multi30k
[ -d "$data" ] || { echo "set NMT_DATA to the folder that holds moses-multi30k/ (a Moses system with its n-best lists)" >&2; exit 2; }
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
run=runs/moses-attention
out=$run-report
mkdir -p $out

nmt-train recipes/moses_attention/train.yaml --preset small
[ -f $run-mean/version ] || nmt-average $run --last 5 --output $run-mean

parts=(val test_2016_flickr)
system() { # NAME OPTION ...: Moses' lists with more features, then as `tune`
    name=$1; shift
    for part in "${parts[@]}"; do
        if [ $# = 0 ]; then
            cp -f "$data/out/$part.100best.segalign.gz" $out/$part.$name.gz
        else
            smt-rescore -q "$data/out/$part.100best.segalign.gz" -s "$data/corpus/$part.tok.en" "$@" --workers 2 --decoder-weights "$data/moses.tuned.ini" \
                -o $out/$part.$name.gz
        fi
    done
    tune $name
}
tune() { # NAME: weights of these lists tuned on val (batch MIRA: the best on val of three seeds), then test is translated once
    name=$1
    for method in kbmira mert; do
        smt-tune-nbest -q --n-best $out/val.$name.gz --reference "$data/corpus/val.tok.fr" --init "$data/moses.tuned.ini" --method $method \
            $([ $method = kbmira ] && echo --runs 3) -o $out/$name.$method.weights > $out/$name.$method.tuning
        for part in "${parts[@]}"; do
            smt-rescore -q $out/$part.$name.gz -s "$data/corpus/$part.tok.en" -w $out/$name.$method.weights --best $out/$part.$name.$method
        done
    done
}
system control
system attention -f translation=$run-mean
[ ! -d runs/multi30k ] || system both -f translation=$run-mean -f translation=runs/multi30k
# The phrase models of recipes/phrase_scores, both directions, summed over the phrases of the same lists.
if [ -d runs/phrases-full-translation ] && [ -s $out/val.both.gz ]; then
    for part in "${parts[@]}"; do
        smt-rescore -q $out/$part.both.gz -s "$data/corpus/$part.tok.en" --by-phrase --checkpoint last --workers 2 -o $out/$part.phrases.gz \
            -f translation:PhraseRNN=runs/phrases-full-translation -f inverse:InversePhraseRNN=runs/phrases-full-inverse
    done
    tune phrases
fi
# Every neural feature: the language models of recipes/moses_lm too.
if [ -d runs/moses-cslm ] && [ -d runs/moses-recurrent-lm ] && [ -s $out/val.phrases.gz ]; then
    for part in "${parts[@]}"; do
        smt-rescore -q $out/$part.phrases.gz -s "$data/corpus/$part.tok.en" --workers 2 -o $out/$part.every.gz \
            -f neural-lm:CSLM=runs/moses-cslm -f neural-lm:LSTM=runs/moses-recurrent-lm
    done
    tune every
fi

for part in "${parts[@]}"; do
    systems=()
    for name in attention both phrases every; do
        for method in kbmira mert; do [ -s $out/$part.$name.$method ] && systems+=("$out/$part.$name.$method"); done
    done
    nmt-analyze compare -r "$data/corpus/$part.tok.fr" --baseline $out/$part.control.kbmira --hypothesis $out/$part.control.mert "${systems[@]}" --bleu-tokenize none \
        --output $out/$part
done
