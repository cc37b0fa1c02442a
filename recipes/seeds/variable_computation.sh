#!/usr/bin/env bash
# Units of variable computation on characters (Jernite 2018, section 2.5, table 2.11: VCRNN-1024 needs as many operations as an
# Elman layer of 760, with 1.46 bits per character against 1.47): a model of 512 units that decides how many of them it
# computes, then the plain cell with as many operations.
# usage: variable_computation.sh [--quick] [elman] [gru] [section.key=value ...]      (default: elman)
#   elman     vcrnn and rnn, 12 epochs each: about 90 minutes of 2 cores together, 20 of them to measure them
#   gru       vcgru and gru, the same: twice as long
#   --quick   a dry run of a minute: generated text, small models, 3 short epochs
# The Penn Treebank is read from $NMT_DATA/ptb; without it, text is generated, whose figures cannot be compared with those of
# Jernite 2018.
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
quick=false parts=() overrides=()
for word in "$@"; do
    case $word in
    --quick) quick=true ;;
    elman | gru) parts+=("$word") ;;
    *.*=*) overrides+=("$word") ;;
    *) echo "expected --quick, elman, gru or section.key=value, found $word" >&2; exit 2 ;;
    esac
done
[ ${#parts[@]} -gt 0 ] || parts=(elman)

units=512 epochs=12 epoch=1568 # updates: 5.02 million characters in 32 tracks, 100 steps at a time
if [ -d "${NMT_DATA:-}/ptb" ] && ! $quick; then
    out=runs/seeds/computation
    train=$NMT_DATA/ptb/ptb.char.train.txt.gz dev=$NMT_DATA/ptb/ptb.char.valid.txt.gz test=$NMT_DATA/ptb/ptb.char.test.txt.gz
else
    out=runs/seeds/computation_generated lines=20000 epoch=250
    if $quick; then
        out=runs/seeds/computation_quick lines=400 units=48 epochs=3 epoch=6
        overrides+=(training.batch_size=32 threads=1)
    fi
    mkdir -p $out
    [ -s $out/text/train.en ] || nmt-init $out/text --sample-corpus > $out/corpus.log
    for name in train dev test; do
        head -n $lines $out/text/$name.en | sed 's/ /_/g; s/./& /g; s/ $//' > $out/$name.chars
    done
    train=$out/train.chars dev=$out/dev.chars test=$out/test.chars
fi
mkdir -p $out

learn() { # NAME UNITS section.key=value ...
    local name=$1 size=$2
    shift 2
    nmt-train recipes/seeds/variable_computation.yaml run=$out/"$name" data.train_text="$train" data.dev_text="$dev" \
        lm.hidden="$size" lm.embedding="$size" training.max_steps=$((epochs * epoch)) "$@" \
        ${overrides[@]+"${overrides[@]}"}
}

measure() { # NAME RNN-d: a line of computation.tsv, from the last checkpoint, whose mask is the sharpest
    local text row=$1$'\t'$2
    for text in "$dev" "$test"; do
        nmt-perplexity -q --checkpoint last $out/"$1" -i "$text" -o $out/perplexity
        row+=$'\t'$(awk -F '\t' '$2 ~ /^perplexity per unit/ {printf "%.4f", log($1) / log(2)}' $out/perplexity)
    done
    echo "$row" | tee $out/"$1".row
}

equivalent() { # NAME: units of an Elman layer with as many operations, on 1,000 lines of the development text
    nmt-analyze computation -q --checkpoint last $out/"$1" <(files "$dev" | head -n 1000) -o $out/"$1".computation \
        > $out/"$1".summary
    sed -n 's/.*an Elman layer of \([0-9]*\)$/\1/p' $out/"$1".summary
}

files() { # FILE: its text
    case $1 in
    *.gz) gzip -dc "$1" ;;
    *) cat "$1" ;;
    esac
}

for part in "${parts[@]}"; do
    case $part in
    elman)
        learn vcrnn $units lm.cell=vcrnn
        size=$(equivalent vcrnn)
        measure vcrnn "$size"
        learn rnn "$size" lm.cell=elman
        measure rnn "$size"
        ;;
    gru)
        learn vcgru $units lm.cell=vcgru
        size=$(equivalent vcgru)
        measure vcgru "$size"
        learn gru "$(awk -v d="$size" 'BEGIN {printf "%.0f", d / sqrt(2)}')" lm.cell=gru
        measure gru "$size"
        ;;
    esac
done
printf 'model\tRNN-d\tdev bits per character\ttest bits per character\n' > $out/computation.tsv
cat $out/*.row >> $out/computation.tsv
echo "$out/computation.tsv"
