#!/usr/bin/env bash
# The row + proposals: the network's own options beside the table's, with the RNN column for all of them.
# usage: proposals.sh OUT NETWORKS DATA WORKERS       (run.sh --controls calls it)
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1 networks=$2 data=$3 workers=$4
old=$out/tables/baseline new=$out/tables/proposals
mkdir -p "$new"
if [ ! -s "$new/phrase-table.gz" ]; then
    smt-propose "$old/phrase-table.gz" "$networks/full-translation" --inverse "$networks/full-inverse" --checkpoint last --lexical "$out/model/lex" \
        -i "$data/dev.en" "$data/test.en" -o "$new/proposed.gz" \
        --reordering "$old/reordering-table.wbe-msd-bidirectional-fe.gz" --reordering-output "$new/reordering-table.wbe-msd-bidirectional-fe.gz"
    smt-score-table "$new/proposed.gz" -f "translation=$networks/full-translation" --checkpoint last -o "$new/phrase-table.gz" --workers "$workers"
fi
cp -f "$old/lm.arpa.gz" "$new/lm.arpa.gz"
cp -f "$old/moses.ini" "$new/before.ini"
smt-ini add-feature "$new/before.ini" --name TranslationModel0 --weight 0 --weight 0.2 -o "$new/moses.ini"
