#!/usr/bin/env bash
# The experiment of Cho et al. 2014b: BLEU of fixed-vector models and of attention by length and by unknown words (van Merriënboer 2018, table 6.1, figure 6.4).
# usage: run.sh [CORPUS [VARIANT [WORDS [SMT [section.key=value ...]]]]]     (overrides of train.yaml, for all three models)
#   CORPUS  multi30k (default) | tatoeba | generated       the first two are read from $NMT_DATA
#   VARIANT long (default): 1 to 4 consecutive lines joined | short: as they are
#   WORDS   1500 (default) | 3000 ...: short-list of each side
#   SMT     output of an SMT system for the test lines, tokenized; default for multi30k: that of Moses in $NMT_DATA, if it exists
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
corpus=${1:-multi30k}
variant=${2:-long}
words=${3:-1500}
smt=${4:-}
overrides=("${@:5}")
text=runs/properties/$corpus-$variant
out=$text-$words
moses=${NMT_DATA:-}/moses-multi30k/out/test_2016_flickr.tuned.fr
if [ -z "$smt" ] && [ "$corpus" = multi30k ] && [ -f "$moses" ]; then smt=$moses; fi

if [ ! -s "$text/test.fr" ]; then
    python recipes/properties/corpus.py "$corpus" "$text" $([ "$variant" = long ] && echo --long) ${smt:+--smt "$smt"}
fi
mkdir -p "$out"
for side in en fr; do nmt-vocab --size "$words" -i "$text/train.$side" -o "$out/$side.vocab"; done

train() { # NAME model.key=value ...
    name=$1; shift
    nmt-train recipes/properties/train.yaml run="$out/$name" data.train_source="$text/train.en" data.train_target="$text/train.fr" \
        data.dev_source="$text/dev.en" data.dev_target="$text/dev.fr" \
        data.source.vocab_file="$out/en.vocab" data.target.vocab_file="$out/fr.vocab" "$@" ${overrides[@]+"${overrides[@]}"}
}
train rnnenc
train grconv model.encoder=grconv
train attention model.encoder=birnn model.encoder_hidden=256 model.attention=512

systems=() names=()
if [ -s "$text/test.smt" ]; then systems+=("$text/test.smt"); names+=(SMT); fi
for name in rnnenc grconv attention; do
    nmt-translate "$out/$name" --tokenized --beam-size 10 < "$text/test.en" > "$out/$name.fr"
    systems+=("$out/$name.fr") names+=("$name")
done
files=(--source "$text/test.en" --reference "$text/test.fr" --bleu-tokenize none)
lists=(--vocabulary "$out/en.vocab" "$out/fr.vocab")
nmt-analyze subsets "${files[@]}" "${lists[@]}" --hypothesis "${systems[@]}" --names "${names[@]}" --output "$out/analysis"
nmt-analyze by-length "${files[@]}" --hypothesis "${systems[@]}" --names "${names[@]}" --least 20 --output "$out/analysis"
nmt-analyze by-unknown "${files[@]}" "${lists[@]}" --hypothesis "${systems[@]}" --names "${names[@]}" --least 20 --output "$out/analysis"
nmt-analyze samples "${files[@]}" "${lists[@]}" --hypothesis "${systems[@]}" --names "${names[@]}" --output "$out/analysis"
nmt-analyze curves "$out/rnnenc" "$out/grconv" "$out/attention" --names rnnenc grconv attention --output "$out/analysis"
nmt-analyze parse "$out/grconv" --line "$(awk 'NF >= 8 && NF <= 12' "$text/test.en" | head -n 1)" --tokenized --output "$out/analysis"
nmt-analyze report "${systems[@]}" --names "${names[@]}" "${files[@]}" "${lists[@]}" --title "Properties: $corpus, $variant, $words words" \
    --output "$out/report.html"
