#!/usr/bin/env bash
# One row of table 4.1 of van Merriënboer 2018: tune a configuration, then tune again with three seeds on all its n-best lists, and translate dev and test with each.
# usage: row.sh ENGINE ROW INI DATA OUT WORKERS [options of smt-tune ...]     -> OUT/ROW.seed-{1,2,3}.{weights,dev,test}; of the embedded engine OUT/ROW.tuned.ini, too
set -euo pipefail
engine=$1 row=$2 ini=$3 data=$4 out=$5 workers=$6
shift 6
if [ "$engine" = embedded ]; then
    [ -s "$out/$row.tuned.ini" ] && [ -s "$out/$row.tuning/seed-3.weights" ] ||
        smt-tune "$ini" -s "$data/dev.en" -r "$data/dev.fr" -o "$out/$row.tuned.ini" --work "$out/$row.tuning" --workers "$workers" --final-seeds 3 "$@"
    for seed in 1 2 3; do
        new=$out/$row.seed-$seed
        cp -f "$out/$row.tuning/seed-$seed.weights" "$new.weights"
        for part in test dev; do
            [ -s "$new.$part" ] || smt-decode "$ini" -w "$new.weights" -i "$data/$part.en" -o "$new.$part" --workers "$workers" --stack 100
        done
    done
    exit 0
fi
# Moses: its own tuning loop and decoder on the same files. It has no CSLM, so that feature rescores its n-best lists, as Schwenk's tools do.
neural=$(sed -n 's/^CSLM name=\([^ ]*\) .*path=\([^ ]*\).*/neural-lm:\1=\2/p' "$ini")
folder=$(cd "$(dirname "$ini")" && pwd)
[ -z "$neural" ] || ini=$folder/moses.ini # without the CSLM
absolute=$out/$row.moses.ini
sed "s#path=\([^/ ]*\)#path=$folder/\1#" "$ini" > "$absolute"
tuned=$out/$row.moses/moses.ini
[ -s "$tuned" ] || smt-moses tune "$absolute" -i "$data/dev.en" -r "$data/dev.fr" --working-dir "$out/$row.moses" --threads "$workers" --iterations 10
for part in dev test; do
    list=$out/$row.$part.nbest
    [ -s "$list" ] || smt-moses decode "$tuned" -i "$data/$part.en" -o "$out/$row.$part.1best" --n-best-list "$list" --threads "$workers"
    [ -z "$neural" ] || [ -s "$list.cslm" ] ||
        smt-rescore "$list" -s "$data/$part.en" -f "$neural" --assume-normalized --decoder-weights "$tuned" -o "$list.cslm"
done
for seed in 1 2 3; do
    new=$out/$row.seed-$seed
    smt-tune-nbest -q --n-best "$out/$row.dev.nbest${neural:+.cslm}" -r "$data/dev.fr" --init "$tuned" --seed $seed -o "$new.weights"
    for part in dev test; do
        smt-rescore -q "$out/$row.$part.nbest${neural:+.cslm}" -s "$data/$part.en" -w "$new.weights" --best "$new.$part"
    done
done
