#!/usr/bin/env bash
# One row of table 4.1 of van Merriënboer 2018: tune a configuration, then tune again with three seeds on all its n-best lists, and translate dev and test with each.
# usage: row.sh ENGINE ROW INI DATA OUT WORKERS [options of smt-tune ...]     -> OUT/ROW.tuned.ini, OUT/ROW.seed-{1,2,3}.{weights,test}
set -euo pipefail
engine=$1 row=$2 ini=$3 data=$4 out=$5 workers=$6
shift 6
if [ "$engine" = embedded ]; then
    stack=(--stack 100)
    [ -s "$out/$row.tuned.ini" ] && [ -s "$out/$row.tuning/seed-3.weights" ] ||
        smt-tune "$ini" -s "$data/dev.en" -r "$data/dev.fr" -o "$out/$row.tuned.ini" --work "$out/$row.tuning" --workers "$workers" --final-seeds 3 "$@"
    for seed in 1 2 3; do
        cp -f "$out/$row.tuning/seed-$seed.weights" "$out/$row.seed-$seed.weights"
        [ -s "$out/$row.seed-$seed.test" ] ||
            smt-decode "$ini" -w "$out/$row.seed-$seed.weights" -i "$data/test.en" -o "$out/$row.seed-$seed.test" --workers "$workers" "${stack[@]}"
        [ -s "$out/$row.seed-$seed.dev" ] ||
            smt-decode "$ini" -w "$out/$row.seed-$seed.weights" -i "$data/dev.en" -o "$out/$row.seed-$seed.dev" --workers "$workers" "${stack[@]}"
    done
    exit 0
fi
# Moses: its own tuning loop and decoder on the same files. It has no CSLM, so that feature rescores its n-best lists, as Schwenk's tools do.
neural=$(sed -n 's/^CSLM name=\([^ ]*\) .*path=\([^ ]*\).*/neural-lm:\1=\2/p' "$ini")
plain=$ini
if [ -n "$neural" ]; then
    plain=$(dirname "$ini")/moses.ini
fi
folder=$(cd "$(dirname "$ini")" && pwd)
here=$(pwd)
absolute=$out/$row.moses.ini
sed "s#path=\([^/ ]*\)#path=$folder/\1#" "$plain" > "$absolute"
[ -s "$out/$row.moses/moses.ini" ] || smt-moses tune "$absolute" -i "$data/dev.en" -r "$data/dev.fr" --working-dir "$out/$row.moses" --threads "$workers" --iterations 10
for part in dev test; do
    [ -s "$out/$row.$part.nbest" ] || smt-moses decode "$out/$row.moses/moses.ini" -i "$data/$part.en" -o "$out/$row.$part.1best" --n-best-list "$out/$row.$part.nbest" --threads "$workers"
    lists=$out/$row.$part.nbest
    if [ -n "$neural" ] && [ ! -s "$lists.cslm" ]; then
        smt-rescore "$lists" -s "$data/$part.en" -f "$neural" --assume-normalized --decoder-weights "$out/$row.moses/moses.ini" -o "$lists.cslm"
    fi
done
suffix=$([ -n "$neural" ] && echo .cslm || true)
for seed in 1 2 3; do
    smt-tune-nbest -q --n-best "$out/$row.dev.nbest$suffix" -r "$data/dev.fr" --init "$out/$row.moses/moses.ini" --seed $seed -o "$out/$row.seed-$seed.weights"
    for part in dev test; do
        smt-rescore -q "$out/$row.$part.nbest$suffix" -s "$data/$part.en" -w "$out/$row.seed-$seed.weights" --best "$out/$row.seed-$seed.$part"
    done
done
cd "$here"
