#!/usr/bin/env bash
# Sequence-level distillation (Kim and Rush 2016): a teacher translates the training source, and a small student learns from its translations.
# For comparison: the same student on the text as it is.
# usage: distillation.sh [options as in common.sh]
set -euo pipefail
name=distillation
. "$(dirname "$0")/common.sh"
small=(model.embedding=128 model.hidden=256 model.encoder_hidden=128 model.attention=256 model.maxout=128)
if $quick; then small=(model.hidden=16); fi

say "the teacher, and a student without one"
train whole en fr data.train_source="$whole.en" data.train_target="$whole.fr"
train student en fr data.train_source="$whole.en" data.train_target="$whole.fr" "${small[@]}"

say "1/2  the teacher translates the training text"
translate whole "$whole.en" "$texts/distilled.fr"

say "2/2  a student learns from it"
train distilled en fr data.train_source="$whole.en" data.train_target="$texts/distilled.fr" "${small[@]}"
report student distilled whole
