#!/usr/bin/env bash
# Rescore the 100 best translations of a system with more networks, or choose from them by minimum Bayes risk. Writes outputs for three seeds, as row.sh does:
# OUT/rows/ROW:NAME.seed-{1,2,3}.{dev,test}
# usage: lists.sh rescore ROW NAME OUT DATA WORKERS FEATURE ...        FEATURE as for smt-rescore, translation:NMT0=RUN
#        lists.sh mbr ROW NAME OUT DATA WORKERS
set -euo pipefail
what=$1 row=$2 name=$3 out=$4 data=$5 workers=$6
shift 6
rows=$out/rows lists=$out/lists
mkdir -p "$lists"

list() { # WEIGHTS PART FILE: the 100 best by a system's weights
    [ -s "$3" ] || smt-decode "$rows/$row.tuned.ini" -w "$1" -i "$data/$2.en" -o "$3.1best" --n-best-list "$3" --distinct --stack 100 --workers "$workers"
}
if [ "$what" = rescore ]; then
    features=()
    for feature in "$@"; do features+=(-f "$feature"); done
    for part in dev test; do
        list "$rows/$row.tuned.ini" $part "$lists/$row.$part"
        [ -s "$lists/$row:$name.$part" ] || smt-rescore "$lists/$row.$part" -s "$data/$part.en" "${features[@]}" -o "$lists/$row:$name.$part" --workers "$workers" --resume
    done
    for seed in 1 2 3; do
        new=$rows/$row:$name.seed-$seed
        [ -s "$new.weights" ] || smt-tune-nbest -q --n-best "$lists/$row:$name.dev" -r "$data/dev.fr" --init "$rows/$row.tuned.ini" --seed $seed -o "$new.weights"
        for part in dev test; do
            [ -s "$new.$part" ] || smt-rescore -q "$lists/$row:$name.$part" -s "$data/$part.en" -w "$new.weights" --best "$new.$part"
        done
    done
    exit 0
fi
for seed in 1 2 3; do
    new=$rows/$row:$name.seed-$seed
    for part in dev test; do list "$rows/$row.seed-$seed.weights" $part "$lists/$row.seed-$seed.$part"; done
    [ -s "$new.dev" ] || smt-rescore -q "$lists/$row.seed-$seed.dev" -s "$data/dev.en" --mbr bleu --mbr-tune "$data/dev.fr" --mbr-scale-output "$new.scale" --best "$new.dev"
    [ -s "$new.test" ] || smt-rescore -q "$lists/$row.seed-$seed.test" -s "$data/test.en" --mbr bleu --mbr-scale "$(cat "$new.scale")" --best "$new.test"
done
