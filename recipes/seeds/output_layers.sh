#!/usr/bin/env bash
# Output layers (Jernite 2018, table 3.3 and eq. 2.6): learned tree against Huffman tree, random tree and flat softmax; classes
# and NCE beside them. One small language model, the same updates for all.
# usage: output_layers.sh [--quick] [--large] [LAYER ...]      (default: all layers)
#   LAYER     flat learned huffman random classes clusters nce
#   --large   an LSTM over 30,000 words: the French sentences of Tatoeba and Multi30k
#   --quick   a dry run of minutes: little generated text, 40 updates
# UPDATES=N: number of updates, instead of 8 epochs (--large: 3).
# The Penn Treebank is read from $NMT_DATA/ptb (--large: tatoeba-enfr, multi30k), in at most 90 minutes of 2 cores a
# training; without it, text of known entropy is generated, whose perplexity is the best that a model can reach.
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
quick=false large=false chosen=()
all=(flat learned huffman random classes clusters nce)
for word in "$@"; do
    case $word in
    --quick) quick=true ;;
    --large) large=true ;;
    *)
        [[ " ${all[*]} " == *" $word "* ]] || { echo "expected --quick, --large or one of ${all[*]}, found $word" >&2; exit 2; }
        chosen+=("$word")
        ;;
    esac
done
[ ${#chosen[@]} -gt 0 ] || chosen=("${all[@]}")

model=output_layers small=()
updates=5260 rebuild=66 # 8 epochs of 42,068 lines, 64 a batch; the tree is built anew ten times an epoch
if $large; then model=output_layers_large; fi
out=runs/seeds/$model
if $large && [ -d "${NMT_DATA:-}/tatoeba-enfr" ] && ! $quick; then
    updates=9042 rebuild=300 # 3 epochs of 192,859 lines
    mkdir -p $out
    french() { nmt-tokenize -q -l fr -o "$out/$1.txt"; }
    [ -s $out/test.txt ] || {
        { gzip -dc "$NMT_DATA/tatoeba-enfr/train.fr.gz" && cat "$NMT_DATA/multi30k/train.fr"; } | french train
        cat "$NMT_DATA/tatoeba-enfr/dev.fr" "$NMT_DATA/multi30k/val.fr" | french dev
        cat "$NMT_DATA/tatoeba-enfr/test.fr" "$NMT_DATA/multi30k/test_2016_flickr.fr" | french test
    }
    train=$out/train.txt dev=$out/dev.txt test=$out/test.txt
elif [ -d "${NMT_DATA:-}/ptb" ] && ! $large && ! $quick; then
    mkdir -p $out
    train=$NMT_DATA/ptb/ptb.train.txt dev=$NMT_DATA/ptb/ptb.valid.txt test=$NMT_DATA/ptb/ptb.test.txt
else
    out+=_generated words=10000 lines=40000
    if $large; then words=30000 lines=80000; fi
    if $quick; then
        out=runs/seeds/${model}_quick words=300 lines=400 updates=40 rebuild=5
        small=(lm.embedding=16 threads=1 training.log_every=10)
        if $large; then small+=(lm.hidden=16); else small+=("lm.layers=[16]"); fi
    fi
    mkdir -p $out
    [ -s $out/text/test.txt ] ||
        python recipes/seeds/generated_text.py $out/text --words $words --classes 30 --lines $lines > $out/entropy
    cat $out/entropy
    train=$out/text/train.txt dev=$out/text/dev.txt test=$out/text/test.txt
fi
updates=${UPDATES:-$updates}

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
    nmt-train recipes/seeds/$model.yaml run=$out/"$name" data.train_text="$train" data.dev_text="$dev" \
        training.max_steps=$updates "${settings[@]}" ${small[@]+"${small[@]}"}
done

printf 'layer\tdev\ttest\twords/s in training\n' > $out/perplexities.tsv
for name in "${all[@]}"; do
    [ -s $out/"$name"/checkpoints.json ] || continue
    row=$name
    for text in "$dev" "$test"; do
        nmt-perplexity -q $out/"$name" -i "$text" -o $out/perplexity
        row+=$'\t'$(sed -n 's/\tperplexity per unit.*//p' $out/perplexity)
    done
    printf '%s\t%s\n' "$row" "$(tail -n 1 $out/"$name"/train.tsv | cut -f 8)" >> $out/perplexities.tsv
done
cat $out/perplexities.tsv
