#!/usr/bin/env bash
# Neural language models in a real Moses system: log p of each hypothesis by a CSLM and by a recurrent model as new features of the 100-best
# lists, tuned on val. Needs NMT_DATA.
# usage: run.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# = 0 ] || { echo "run.sh: $1: takes no arguments; leave it out" >&2; exit 2; }
data=${NMT_DATA:-}/moses-multi30k
[ -d "$data" ] || { echo "set NMT_DATA to the folder that holds moses-multi30k/ (a Moses system with its n-best lists)" >&2; exit 2; }
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
out=runs/moses-lm-report
mkdir -p $out
for kind in cslm recurrent; do
    nmt-train recipes/moses_lm/$kind.yaml data.train_text="$data/corpus/train.tok.fr" data.dev_text="$data/corpus/val.tok.fr"
done
for part in val test_2016_flickr; do
    for model in "$data/lm.fr.arpa.gz" runs/moses-cslm runs/moses-recurrent-lm; do
        nmt-perplexity -q "$model" -i "$data/corpus/$part.tok.fr" -o "$out/$part.$(basename "$model").perplexity"
    done
    cp -f "$data/out/$part.100best.segalign.gz" $out/$part.control.gz
    rescore() { # LISTS NEW OPTION ...
        smt-rescore -q "$out/$part.$1.gz" -s "$data/corpus/$part.tok.en" "${@:3}" -o "$out/$part.$2.gz"
    }
    rescore control cslm --decoder-weights "$data/moses.tuned.ini" -f neural-lm:CSLM=runs/moses-cslm
    rescore control recurrent --decoder-weights "$data/moses.tuned.ini" -f neural-lm:LSTM=runs/moses-recurrent-lm
    rescore cslm both -f neural-lm:LSTM=runs/moses-recurrent-lm
done
for name in control cslm recurrent both; do
    for method in kbmira mert; do
        smt-tune-nbest -q --n-best $out/val.$name.gz --reference "$data/corpus/val.tok.fr" --init "$data/moses.tuned.ini" --method $method \
            $([ $method = kbmira ] && echo --runs 3) -o $out/$name.$method.weights > $out/$name.$method.tuning
        for part in val test_2016_flickr; do
            smt-rescore -q $out/$part.$name.gz -s "$data/corpus/$part.tok.en" -w $out/$name.$method.weights --best $out/$part.$name.$method
        done
    done
done
for part in val test_2016_flickr; do
    nmt-analyze compare -r "$data/corpus/$part.tok.fr" --baseline $out/$part.control.kbmira --hypothesis $out/$part.{control.mert,cslm.kbmira,cslm.mert,recurrent.kbmira,recurrent.mert,both.kbmira,both.mert} \
        --bleu-tokenize none --output $out/$part
done
