#!/usr/bin/env bash
# The networks of table 4.1 of van Merriënboer 2018: phrase models on a phrase table, both directions, with a short-list and with all words; a CSLM of the target text.
# usage: networks.sh DATA TABLE OUT [MINUTES [SHORT]]
#   DATA     folder with train.en, train.fr, dev.fr       TABLE  phrase table      OUT  one run directory a network
#   MINUTES  of training a network, at most (default 40)  SHORT  words of the short-list (default 1500, 93% of Multi30k as in Cho et al. 2014a)
# PHRASE_EPOCHS (4) and CSLM_EPOCHS (20): at most so many; small numbers and MINUTES 0 make the result independent of the machine's speed.
# PHRASES=no: the CSLM alone; CONTROLS=no: and the phrase model of one direction with the short-list.
# One thread a network, two at a time. Finished trainings are not repeated, interrupted ones are resumed.
set -euo pipefail
cd "$(dirname "$0")/../.."
data=$1 table=$2 out=$3 minutes=${4:-40} short=${5:-1500}
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
mkdir -p "$out"
for l in en fr; do
    [ -s "$out/short.$l.vocab" ] || nmt-vocab -q --unescape --size "$short" -i "$data/train.$l" -o "$out/short.$l.vocab"
    [ -s "$out/full.$l.vocab" ] || nmt-vocab -q --unescape --size 30000 -i "$data/train.$l" -o "$out/full.$l.vocab"
done

phrases() { # VARIANT DIRECTION SOURCE TARGET
    nmt-train recipes/phrase_scores/train.yaml run="$out/$1-$2" threads=1 data.phrase_table="$table" training.max_minutes="$minutes" training.max_epochs="${PHRASE_EPOCHS:-4}" \
        data.source.vocab_file="$out/$1.$3.vocab" data.target.vocab_file="$out/$1.$4.vocab" \
        data.inverse=$([ "$2" = inverse ] && echo true || echo false) data.source.language="$3" data.target.language="$4"
}
cslm() {
    nmt-train recipes/phrase_scores/cslm.yaml run="$out/cslm" threads=1 data.train_text="$data/train.fr" data.dev_text="$data/dev.fr" \
        data.target.language=fr training.max_minutes="$minutes" training.max_epochs="${CSLM_EPOCHS:-20}"
}

[ "${PHRASES:-yes}" = yes ] || { cslm; exit 0; }
phrases short translation en fr & first=$!
cslm & second=$!
wait $first; wait $second
[ "${CONTROLS:-yes}" = yes ] || exit 0
phrases short inverse fr en & first=$!
phrases full translation en fr & second=$!
wait $first; wait $second
phrases full inverse fr en
