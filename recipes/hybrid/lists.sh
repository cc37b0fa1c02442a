#!/usr/bin/env bash
# What n-best lists are for: rescore a system's 100 best with an attention model, as was done before it could search; or choose from them by minimum Bayes risk.
# Each for three seeds, as the rows: OUT/rows/ROW:rescored.seed-{1,2,3}.{dev,test}, OUT/rows/ROW:mbr.seed ...
# usage: lists.sh rescore|mbr ROW OUT DATA ATTENTION_RUN WORKERS
set -euo pipefail
what=$1 row=$2 out=$3 data=$4 attention=$5 workers=$6
rows=$out/rows lists=$out/lists
mkdir -p "$lists"

list() { # WEIGHTS PART FILE: the 100 best by a system's weights
    [ -s "$3" ] || smt-decode "$rows/$row.tuned.ini" -w "$1" -i "$data/$2.en" -o "$3.1best" --n-best-list "$3" --distinct --stack 100 --workers "$workers"
}
if [ "$what" = rescore ]; then
    for part in dev test; do
        list "$rows/$row.tuned.ini" $part "$lists/$row.$part"
        [ -s "$lists/$row.$part.scored" ] ||
            smt-rescore "$lists/$row.$part" -s "$data/$part.en" -f "translation:NMT0=$attention" -o "$lists/$row.$part.scored" --workers "$workers" --resume
    done
    for seed in 1 2 3; do
        new=$rows/$row:rescored.seed-$seed
        [ -s "$new.weights" ] || smt-tune-nbest -q --n-best "$lists/$row.dev.scored" -r "$data/dev.fr" --init "$rows/$row.tuned.ini" --seed $seed -o "$new.weights"
        for part in dev test; do
            [ -s "$new.$part" ] || smt-rescore -q "$lists/$row.$part.scored" -s "$data/$part.en" -w "$new.weights" --best "$new.$part"
        done
    done
    exit 0
fi
for seed in 1 2 3; do
    new=$rows/$row:mbr.seed-$seed
    for part in dev test; do list "$rows/$row.seed-$seed.weights" $part "$lists/$row.seed-$seed.$part"; done
    [ -s "$new.dev" ] || smt-rescore -q "$lists/$row.seed-$seed.dev" -s "$data/dev.en" --mbr bleu --mbr-tune "$data/dev.fr" --mbr-scale-output "$new.scale" --best "$new.dev"
    [ -s "$new.test" ] || smt-rescore -q "$lists/$row.seed-$seed.test" -s "$data/test.en" --mbr bleu --mbr-scale "$(cat "$new.scale")" --best "$new.test"
done
