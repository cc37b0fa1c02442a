#!/usr/bin/env bash
# A Transformer against RNNsearch on Multi30k English-French: two seeds side by side, one core each for 85 minutes, the last ten
# checkpoints averaged, BLEU on lower-cased tokens of val and test. RNNsearch is that of recipes/multi30k/attention.sh, if it is there.
# usage: transformer.sh [--quick] [section.key=value ...]     (overrides of transformer.yaml)
#        SEEDS="1 2"  OUT=runs/seeds/transformer  PARTS="val test_2016_flickr"     (defaults; PARTS=val while you tune)
#   --quick      a dry run of minutes: generated text, a small model, 40 updates
# Multi30k is read from $NMT_DATA/multi30k/tok; without it, text is generated.
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
quick=false overrides=()
for word in "$@"; do
    case $word in
    --quick) quick=true ;;
    *) overrides+=("$word") ;;
    esac
done
SEEDS=${SEEDS:-1 2}
out=${OUT:-runs/seeds/transformer}
parts=(${PARTS:-val test_2016_flickr})
ending=lc.norm.tok
if [ -d "${NMT_DATA:-}/multi30k/tok" ] && ! $quick; then
    data=$NMT_DATA/multi30k/tok
else
    out=${OUT:-runs/seeds/transformer_generated}
    if $quick; then out=${OUT:-runs/seeds/transformer_quick}; fi
    data=$out/text ending=tok parts=(val)
    mkdir -p "$data"
    [ -s "$data/train.fr" ] || nmt-init "$data" --sample-corpus > "$out/corpus.log"
    lines=20000
    if $quick; then lines=300; fi
    for side in en fr; do
        head -n $lines "$data/train.$side" | nmt-tokenize -q -l $side --lower -o "$data/train.tok.$side"
        head -n $lines "$data/dev.$side" | nmt-tokenize -q -l $side --lower -o "$data/val.tok.$side"
    done
    if $quick; then
        overrides+=(training.max_steps=40 training.batch_size=16 training.warmup=10 model.embedding=16 model.encoder_layers=1 threads=1)
    fi
fi
mkdir -p "$out"
for part in train dev; do
    for side in source target; do
        overrides+=("data.${part}_$side=$data/${part/dev/val}.$ending.$([ $side = source ] && echo en || echo fr)")
    done
done

jobs=()
for seed in $SEEDS; do
    nmt-train recipes/seeds/transformer.yaml --preset transformer-small run="$out/$seed" seed="$seed" "${overrides[@]}" 2> "$out/$seed.log" &
    jobs+=($!)
done
for job in "${jobs[@]}"; do wait "$job"; done

for seed in $SEEDS; do
    [ -f "$out/$seed-mean/version" ] || nmt-average "$out/$seed" --last 10 --output "$out/$seed-mean"
done
for part in "${parts[@]}"; do
    for seed in $SEEDS; do
        nmt-translate "$out/$seed" --tokenized --beam-size 5 < "$data/$part.$ending.en" > "$out/$part.$seed.best.fr"
        nmt-translate "$out/$seed-mean" --tokenized --beam-size 5 < "$data/$part.$ending.en" > "$out/$part.$seed.mean.fr"
    done
    baseline=runs/multi30k-attention-report/$part.4530.fr
    if [ ! -f "$baseline" ] || [ $ending != lc.norm.tok ]; then baseline=$out/$part.${SEEDS%% *}.best.fr; fi
    nmt-analyze compare -r "$data/$part.$ending.fr" --baseline "$baseline" --hypothesis "$out/$part".*.mean.fr \
        --bleu-tokenize none --output "$out/$part"
done
