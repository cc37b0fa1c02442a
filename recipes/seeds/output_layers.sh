#!/usr/bin/env bash
# Output layers (000, table 3.3 and eq. 2.6): learned tree against Huffman tree, random tree and flat softmax; classes
# and NCE beside them. One small language model, the same updates for all.
# usage: output_layers.sh [--quick] [LAYER ...]      (all layers unless some are named)
#   LAYER     flat learned huffman random classes clusters nce
#   --quick   a dry run of minutes: little generated text, 40 updates
# The Penn Treebank is read from $NMT_DATA/ptb, in at most 90 minutes of 2 cores; without it, text of known entropy
# is generated: its perplexity is what no model can beat.
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
quick=false chosen=()
all=(flat learned huffman random classes clusters nce)
for word in "$@"; do
    case " ${all[*]} --quick " in
    *" $word "*) if [ "$word" = --quick ]; then quick=true; else chosen+=("$word"); fi ;;
    *) echo "expected --quick or one of ${all[*]}, found $word" >&2; exit 2 ;;
    esac
done
[ ${#chosen[@]} -gt 0 ] || chosen=("${all[@]}")

small=() updates=5260 rebuild=66 # 8 epochs of 42,068 lines, 64 a batch; the tree is built anew ten times an epoch
if [ -d "${NMT_DATA:-}/ptb" ] && ! $quick; then
    out=runs/seeds/output
    train=$NMT_DATA/ptb/ptb.train.txt dev=$NMT_DATA/ptb/ptb.valid.txt test=$NMT_DATA/ptb/ptb.test.txt
    mkdir -p $out
else
    out=runs/seeds/output_generated words=10000 lines=40000
    if $quick; then
        out=runs/seeds/output_quick words=300 lines=400 updates=40 rebuild=5
        small=(lm.embedding=16 "lm.layers=[16]" threads=1 training.log_every=10)
    fi
    mkdir -p $out
    [ -s $out/text/test.txt ] ||
        python recipes/seeds/generated_text.py $out/text --words $words --classes 30 --lines $lines > $out/entropy
    cat $out/entropy
    train=$out/text/train.txt dev=$out/text/dev.txt test=$out/text/test.txt
fi

layer() { # NAME: its settings
    case $1 in
    flat) echo lm.output=softmax ;;
    learned) echo "lm.output=learned-tree lm.output_rebuild=$rebuild lm.output_rebuild_until=$((updates / 2))" ;;
    huffman) echo "lm.output=tree lm.output_tree=huffman" ;;
    random) echo "lm.output=tree lm.output_tree=random" ;;
    classes) echo lm.output=classes ;;
    clusters) echo "lm.output=classes lm.output_classes=clusters" ;;
    nce) echo lm.output=nce ;;
    esac
}

for name in "${chosen[@]}"; do
    read -ra settings <<< "$(layer "$name")"
    nmt-train recipes/seeds/output_layers.yaml run=$out/"$name" data.train_text="$train" data.dev_text="$dev" \
        training.max_steps=$updates "${settings[@]}" ${small[@]+"${small[@]}"}
done

printf 'layer\tdev\ttest\twords/s in training\n' > $out/perplexities.tsv
for name in "${all[@]}"; do
    [ -s $out/"$name"/checkpoints.json ] || continue
    found=$name
    for text in "$dev" "$test"; do
        nmt-perplexity -q $out/"$name" -i "$text" -o $out/perplexity
        found+=$'\t'$(sed -n 's/\tperplexity a unit.*//p' $out/perplexity)
    done
    printf '%s\t%s\n' "$found" "$(tail -n 1 $out/"$name"/train.tsv | cut -f 8)" >> $out/perplexities.tsv
done
cat $out/perplexities.tsv
