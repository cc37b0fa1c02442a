#!/usr/bin/env bash
# Discourse objectives (Jernite 2018, chapter 5) as pre-training: an encoder that has learned on plain text which sentences
# stand together, and a translator of 5,000 pairs that starts from it, against one from scratch.
# usage: discourse.sh [--quick] [section.key=value ...]      (the latter for all trainings)
#   --quick   a dry run of minutes on generated text, 12 updates each
# Pairs are 5,000 of $NMT_DATA/tatoeba-enfr, every 32nd: the corpus is sorted by length. The plain text is $TEXT (one
# lower-cased, tokenized sentence a line, an empty line between paragraphs; with OBJECTIVES="order next conj" if it has
# commas), else the Penn Treebank of $NMT_DATA, whose lines are in order, a dozen as a paragraph. Without NMT_DATA,
# text is generated.
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
quick=false overrides=() pairs=5000
for word in "$@"; do
    case $word in
    --quick) quick=true ;;
    *.*=*) overrides+=("$word") ;;
    *) echo "expected --quick or section.key=value, found $word" >&2; exit 2 ;;
    esac
done

blocks() { awk '{print} NR % 12 == 0 {print ""}'; }

words() { nmt-tokenize -q -l "$1" | sed 's/.*/\L&/'; }

if [ -d "${NMT_DATA:-}/tatoeba-enfr" ] && ! $quick; then
    out=runs/seeds/discourse
    mkdir -p $out
    for side in en fr; do
        gzip -dc "$NMT_DATA/tatoeba-enfr/train.$side.gz" | awk -v n=$pairs 'NR % 32 == 1 && k++ < n' | words $side > $out/train.$side
        words $side < "$NMT_DATA/tatoeba-enfr/dev.$side" > $out/dev.$side
    done
    plain() { cat "$NMT_DATA/ptb/ptb.$1.txt"; }
else
    out=runs/seeds/discourse_generated
    if $quick; then
        out=runs/seeds/discourse_quick pairs=200
        overrides+=(model.embedding=16 model.hidden=16 model.encoder_hidden=8 model.attention=8 model.maxout=8
            training.max_steps=12 threads=1)
    fi
    mkdir -p $out
    [ -s $out/text/train.en ] || nmt-init $out/text --sample-corpus > $out/corpus.log
    for side in en fr; do
        head -n $pairs $out/text/train.$side | words $side > $out/train.$side
        head -n $pairs $out/text/dev.$side | words $side > $out/dev.$side
    done
    plain() { case $1 in train) tail -n 2000 $out/text/train.en ;; valid) head -n 240 $out/text/test.en ;; esac | words en; }
fi
if [ -n "${TEXT:-}" ] && ! $quick; then
    awk -v RS= -v ORS='\n\n' -v out=$out '{print > (out (NR % 50 ? "/plain.en" : "/plain-dev.en"))}' "$TEXT"
else
    plain train | blocks > $out/plain.en
    plain valid | blocks > $out/plain-dev.en
fi

learn() { # NAME section.key=value ...
    local name=$1
    shift
    nmt-train recipes/seeds/discourse.yaml run=$out/"$name" "$@" ${overrides[@]+"${overrides[@]}"}
}

updates() { awk -v every="$1" -v lines="$(wc -l < "$2")" 'BEGIN {n = int(lines / 32 / every); print n < 3 ? 3 : n}'; }

texts=(data.train_source=$out/train.en data.train_target=$out/train.fr data.dev_source=$out/dev.en
    data.dev_target=$out/dev.fr training.validate_every="$(updates 1 $out/train.en)")
learn pretrained data.train_text=$out/plain.en data.dev_text=$out/plain-dev.en model.type=discourse \
    model.objectives="${OBJECTIVES:-order next}" training.validate_every="$(updates 2 $out/plain.en)"
learn scratch "${texts[@]}"
learn started "${texts[@]}" init_from=$out/pretrained

{
    printf 'model\tupdate\tdev cost\n'
    for name in scratch started; do
        awk -F '\t' -v name=$name 'NR == 1 {for (i = 1; i <= NF; i++) column[$i] = i; next}
            best == "" || $column["cost"] < best {best = $column["cost"]; at = $column["step"]}
            END {printf "%s\t%s\t%s\n", name, at, best}' $out/$name/dev.tsv
    done
} | tee $out/discourse.tsv
