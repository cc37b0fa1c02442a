#!/usr/bin/env bash
# Language models: the character-aware model against a word LSTM of as many parameters and updates (Jernite 2018, table 2.2),
# and the perplexities that Joulin and Grave list: Kneser-Ney 141, neural n-grams 140, RNN 125, LSTM 115.
# usage: language_models.sh [--quick] [characters] [list] [mix]      (default: all three)
#   characters   word and characters, 8 epochs each: two trainings of up to 90 minutes on 2 cores
#   list         kn5, ngrams, rnn, lstm: three trainings of up to 90 minutes
#   mix          interpolates the trained models, with weights by EM on the development text
#   --quick      a dry run of minutes: generated text, small models, 40 updates
# The Penn Treebank is read from $NMT_DATA/ptb; without it, text is generated, whose figures cannot be compared with the
# published ones.
set -euo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
quick=false parts=()
for word in "$@"; do
    case $word in
    --quick) quick=true ;;
    characters | list | mix) parts+=("$word") ;;
    *) echo "expected --quick, characters, list or mix, found $word" >&2; exit 2 ;;
    esac
done
[ ${#parts[@]} -gt 0 ] || parts=(characters list mix)

epoch=1328 # updates: 929,589 words in 20 tracks, 35 steps at a time
small=()
if [ -d "${NMT_DATA:-}/ptb" ] && ! $quick; then
    out=runs/seeds/lm
    train=$NMT_DATA/ptb/ptb.train.txt dev=$NMT_DATA/ptb/ptb.valid.txt test=$NMT_DATA/ptb/ptb.test.txt
else
    out=runs/seeds/lm_generated
    if $quick; then out=runs/seeds/lm_quick; fi
    mkdir -p $out
    [ -s $out/text/train.fr ] || nmt-init $out/text --sample-corpus > $out/corpus.log
    lines=20000
    if $quick; then lines=300; fi
    for name in train dev test; do
        head -n $lines $out/text/$name.fr | nmt-tokenize -q -l fr -o $out/$name.txt
    done
    train=$out/train.txt dev=$out/dev.txt test=$out/test.txt
    epoch=20
    if $quick; then
        epoch=5
        small=(lm.embedding=24 training.batch_size=8 threads=1)
    fi
fi
mkdir -p $out

learn() { # NAME EPOCHS section.key=value ...
    local name=$1 epochs=$2
    shift 2
    nmt-train recipes/seeds/language_models.yaml run=$out/"$name" data.train_text="$train" data.dev_text="$dev" \
        training.max_steps=$((epochs * epoch)) "$@" ${small[@]+"${small[@]}"}
}

measure() { # NAME FILE: a line of perplexities.tsv
    local text row=$1
    for text in "$dev" "$test"; do
        nmt-perplexity -q "$2" -i "$text" -o $out/perplexity
        row+=$'\t'$(sed -n 's/\tperplexity per unit.*//p' $out/perplexity)
    done
    echo "$row" | tee $out/"$1".row
}

# Jernite 2018, section 2.3: rate 1, the sum over the steps of a track, clipping at 5, U(-0.05, 0.05). The thesis has 25 epochs,
# dropout 0.5 and a rate that is halved (training.decay_below=1 training.decay=0.5); here 8 epochs have less dropout,
# and a rate that ends at 0.
sgd=(training.optimizer=sgd training.learning_rate=1.0 training.cost=sentence training.clip=5 training.batch_size=20
    lm.carry=true lm.dropout=0.3 lm.init_scale=0.05)
adam=(training.optimizer=adam training.learning_rate=0.002 training.cost=word training.clip=0.25 training.batch_size=20
    lm.carry=true lm.init_scale=0.05)

for part in "${parts[@]}"; do
    case $part in
    characters) # 5.3 million parameters each: the small models of table 2.2, where word has 200 units
        learn word 8 "${sgd[@]}" lm.embedding=225 lm.hidden=225 lm.depth=2
        learn characters 8 "${sgd[@]}" lm.type=characters lm.embedding=0
        for name in word characters; do measure $name $out/$name; done
        queries=(while his you richard trading computer-aided misinformed looooook)
        nmt-analyze neighbors $out/characters --words "${queries[@]}" -o $out/neighbors > $out/neighbors.log
        nmt-analyze neighbors $out/characters --words "${queries[@]}" --before-highway -o $out/neighbors-before > $out/neighbors-before.log
        ;;
    list)
        [ -s $out/kn5.arpa.gz ] || nmt-ngram -q --order 5 --discount-fallback -i "$train" -o $out/kn5.arpa.gz
        # untied with one layer of 400, dropout 0.25: 157 on the development text after 7 epochs, where this has 151
        learn ngrams 12 lm.type=cslm lm.order=6 lm.tied=true lm.embedding=300 "lm.layers=[500,300]" lm.activation=tanh \
            lm.dropout=0.3 lm.init=glorot training.optimizer=adam training.learning_rate=0.001 training.cost=word \
            training.batch_size=32 $($quick && echo "lm.layers=[32,24]")
        size=(lm.embedding=300 lm.hidden=$($quick && echo 24 || echo 300) lm.tied=true)
        learn rnn 10 "${adam[@]}" lm.cell=elman "${size[@]}" lm.dropout=0.3
        learn lstm 10 "${adam[@]}" "${size[@]}" lm.dropout=0.4
        measure kn5 $out/kn5.arpa.gz
        for name in ngrams rnn lstm; do measure $name $out/$name; done
        ;;
    mix)
        models=()
        for name in kn5.arpa.gz ngrams rnn lstm word characters; do
            if [ -e $out/$name ]; then models+=($out/$name); fi
        done
        [ ${#models[@]} -gt 1 ] || { echo "mix: expected two models or more in $out; train them first" >&2; exit 2; }
        nmt-interpolate "${models[@]}" -i "$dev" -o $out/mix
        nmt-interpolate "${models[@]}" -i "$dev" --contexts "$train" -o $out/mix_by_context
        for name in mix mix_by_context; do measure $name $out/$name; done
        ;;
    esac
done
printf 'model\tdev\ttest\n' > $out/perplexities.tsv
cat $out/*.row >> $out/perplexities.tsv
echo "$out/perplexities.tsv"
