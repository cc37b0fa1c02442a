#!/usr/bin/env bash
# Back-translation (Sennrich et al. 2016), tagged (Caswell et al. 2019): of the second half of the training text only the target side is used. A reverse model
# translates it, and a model is trained on both halves. For comparison: the first half alone, and the whole parallel text.
# usage: back_translation.sh [options as in common.sh]
set -euo pipefail
name=back_translation
. "$(dirname "$0")/common.sh"
mono=$texts/mono
[ -s "$mono.fr" ] || tail -n +$((pairs / 2 + 1)) "$whole.fr" > "$mono.fr"

say "a reverse model, and the baseline: the first half alone"
train reverse fr en data.train_source="$half.fr" data.train_target="$half.en"
train half en fr data.train_source="$half.en" data.train_target="$half.fr"

say "1/2  translate the monolingual text back"
translate reverse "$mono.fr" "$mono.en"

say "2/2  train on both"
train back-translation en fr "data.corpora=[{name: parallel, source: $half.en, target: $half.fr}, {name: back, source: $mono.en, target: $mono.fr, tag: <bt>}]"

say "what the second half would be worth as parallel text"
train whole en fr data.train_source="$whole.en" data.train_target="$whole.fr"
report half back-translation whole
