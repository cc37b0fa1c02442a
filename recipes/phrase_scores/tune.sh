#!/usr/bin/env bash
# Tune each system on the development lists and translate the test lists with it; one row of the result each.
# usage: tune.sh VARIANT   (after rescoring.sh; VARIANT is short or full)
set -euo pipefail
cd "$(dirname "$0")/../.."
data=$NMT_DATA/moses-multi30k
out=runs/phrase_scores
variant=$1
new="RNN0 InverseRNN0 ReverseLM0"
[ "$variant" = short ] && new="$new UnknownWords0"

# system NAME KEPT...: features of $new that are kept
system() {
    name=$1; shift
    drop=()
    for feature in $new; do case " $* " in *" $feature "*) ;; *) drop+=("$feature") ;; esac; done
    smt-tune-nbest -q --n-best $out/val.$variant.all --reference "$data/corpus/val.tok.fr" --init "$data/moses.tuned.ini" --method kbmira --runs 3 \
        ${drop[@]+--drop "${drop[@]}"} -o $out/$variant.$name.weights > $out/$variant.$name.tuning
    smt-rescore -q $out/test_2016_flickr.$variant.all -s "$data/corpus/test_2016_flickr.tok.en" -w $out/$variant.$name.weights --best $out/$variant.$name.test
    smt-rescore -q $out/val.$variant.all -s "$data/corpus/val.tok.en" -w $out/$variant.$name.weights --best $out/$variant.$name.val
}

system control
system rnn RNN0
system rnn-inverse RNN0 InverseRNN0
[ "$variant" = short ] && system rnn-inverse-wp RNN0 InverseRNN0 UnknownWords0
system reverse-lm ReverseLM0
system all $new
