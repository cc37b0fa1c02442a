#!/usr/bin/env bash
# Both systems' lists together, under all features: the phrase-based system's 100 best and an attention model's own ten, each entry scored by
# the attention model and the language models. Weights are tuned on dev by two methods; dev decides between them.
# usage: union.sh OUT ROW ATTENTION_RUN NETWORKS DATA [WORKERS]      (after run.sh; ROW e.g. cslm-rnn)
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1 row=$2 attention=$3 networks=$4 data=$5 workers=${6:-2}
here=$out/union
mkdir -p "$here"
ini=$out/rows/$row.tuned.ini
folder=$out/tables/${row#cslm-}
for part in dev test; do
    # The tuned ini stands beside the rows; its tables beside the ini that was tuned.
    [ -s "$here/$part.smt" ] || smt-decode "$([ -s "$folder/cslm.ini" ] && [ "$row" != "${row#cslm-}" ] && echo "$folder/cslm.ini" || echo "$folder/moses.ini")" -w "$ini" \
        -i "$data/$part.en" -o "$here/$part.smt.1best" --n-best-list "$here/$part.smt" --distinct --stack 100 --workers "$workers"
    [ -s "$here/$part.attention" ] || nmt-translate "$attention" --escaped -i "$data/$part.en" -o "$here/$part.attention" --n-best 10 --beam-size 10
    # The list alone with the attention model's score, and the union, where each entry gets the scores that can be computed from its text.
    [ -s "$here/$part.scored" ] || smt-rescore "$here/$part.smt" -s "$data/$part.en" -f "translation:Attention=$attention" -o "$here/$part.scored" --workers "$workers"
    [ -s "$here/$part.union" ] || smt-rescore "$here/$part.smt" "$here/$part.attention" -s "$data/$part.en" --escape --fill-missing -o "$here/$part.union" --workers "$workers" \
        -f "translation:Attention=$attention" -f "lm:LM0=$folder/lm.arpa.gz" -f "neural-lm:CSLM0=$networks/cslm" --assume-normalized
done
for name in scored union; do
    for method in kbmira mert; do
        smt-tune-nbest -q --n-best "$here/dev.$name" -r "$data/dev.fr" --method $method --runs 3 -o "$here/$name.$method.weights" > "$here/$name.$method.tuning"
        for part in dev test; do smt-rescore -q "$here/$part.$name" -s "$data/$part.en" -w "$here/$name.$method.weights" --best "$here/$part.$name.$method"; done
    done
done
for part in dev test; do
    nmt-analyze compare -r "$data/$part.fr" --baseline "$here/$part.smt.1best" --hypothesis "$here/$part".{scored,union}.{kbmira,mert} --bleu-tokenize none --output "$here/$part-table"
    cat "$here/$part-table/compare.tsv"
done
