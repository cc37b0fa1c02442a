#!/usr/bin/env bash
# The networks of the hybrid systems: two attention models of different seeds (checkpoints averaged), a joint model, a CSLM; with a table also the phrase
# model of its column. One thread a network, two at a time. Finished trainings are not repeated, interrupted ones are resumed.
# usage: networks.sh DATA OUT [TABLE]
#   DATA     folder with train and dev .en and .fr, tokenized and escaped          OUT  one run directory a network
# JOINTS=yes: also a joint model from right to left, and one of the other direction.
# EPOCHS (10) of the attention models; ATTENTION, JOINT: more options of nmt-train; see ../phrase_scores/networks.sh for the others.
set -euo pipefail
cd "$(dirname "$0")/../.."
data=$1 out=$2 table=${3:-}
here=recipes/hybrid
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
mkdir -p "$out"
texts=(data.train_source="$data/train.en" data.train_target="$data/train.fr" data.dev_source="$data/dev.en" data.dev_target="$data/dev.fr"
    data.source.language=en data.target.language=fr threads=1)
batches=$(($(wc -l < "$data/train.en") / 64))

attention() { # SEED
    [ ! -f "$out/attention-$1-mean/version" ] || return 0
    # shellcheck disable=SC2086 # options are words
    nmt-train $here/attention.yaml --preset small run="$out/attention-$1" seed="$1" "${texts[@]}" training.max_steps=$((${EPOCHS:-10} * (batches > 0 ? batches : 1))) ${ATTENTION:-}
    nmt-average -q "$out/attention-$1" --last 5 --output "$out/attention-$1-mean"
}
align() {
    if [ ! -s "$out/dev.align" ]; then # aligned together: a development set alone is too small
        for l in en fr; do cat "$data/train.$l" "$data/dev.$l" > "$out/all.$l"; done
        smt-align -q -s "$out/all.en" -t "$out/all.fr" -o "$out/all.align"
        lines=$(wc -l < "$data/train.en")
        head -n "$lines" "$out/all.align" > "$out/train.align"
        tail -n +"$((lines + 1))" "$out/all.align" > "$out/dev.align.part" && mv "$out/dev.align.part" "$out/dev.align"
    fi
}
joint() { # NAME MORE ...
    name=$1
    shift
    # shellcheck disable=SC2086
    nmt-train $here/joint.yaml run="$out/$name" "${texts[@]}" data.alignment="$out/train.align" data.dev_alignment="$out/dev.align" ${JOINT:-} "$@"
}
inverse() { # both sides exchanged, and the points of the alignment
    for part in train dev; do sed -E 's/([0-9]+)-([0-9]+)/\2-\1/g' "$out/$part.align" > "$out/$part.inverse.align"; done
    joint joint-inverse data.train_source="$data/train.fr" data.train_target="$data/train.en" data.dev_source="$data/dev.fr" data.dev_target="$data/dev.en" \
        data.source.language=fr data.target.language=en data.alignment="$out/train.inverse.align" data.dev_alignment="$out/dev.inverse.align"
}
attention 1 & first=$!
attention 2 & second=$!
wait $first; wait $second
align
joint joint & first=$!
CONTROLS=no PHRASES=$([ -n "$table" ] && echo yes || echo no) recipes/phrase_scores/networks.sh "$data" "$table" "$out" "${MINUTES:-40}" "${SHORT:-1500}" & second=$!
wait $first; wait $second
[ "${JOINTS:-no}" = yes ] || exit 0
joint joint-backward model.direction=right-to-left & first=$!
inverse & second=$!
wait $first; wait $second
