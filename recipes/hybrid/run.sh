#!/usr/bin/env bash
# Neural models inside the phrase-based search, one line per system: count models alone, + CSLM, + joint model (NNJM), + attention model, two of them, + minimum
# Bayes risk; beside them the attention models alone, and the same attention model on the lists of the systems without it.
# usage: run.sh [--data DIR|multi30k|generated] [--networks DIR] [--out DIR] [--column] [--joints] [--rows "ROW ..."] [--workers N] [--quick]
#   --data      folder with train, dev and test .en and .fr, tokenized and escaped; multi30k: that of NMT_DATA (default if it exists); generated: the corpus of the quickstart's grammar
#   --networks  run directories of networks.sh: attention-1-mean, attention-2-mean, joint, cslm ...; missing ones are trained and written there
#   --column    every system's phrase table has the column of an RNN (../phrase_scores), and a row shows what it adds
#   --joints    the list of the best system is also rescored with two more joint models: from right to left, and of the other direction
#   --quick     tiny networks, two iterations of tuning, for a dry run
# The script can be stopped and started again; finished steps are not repeated. Systems are chosen on dev.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=recipes/hybrid
data= networks= out= column= joints= rows= workers=2 quick=
while [ $# -gt 0 ]; do
    case $1 in
        --data) data=$2; shift 2 ;;
        --networks) networks=$2; shift 2 ;;
        --out) out=$2; shift 2 ;;
        --rows) rows=$2; shift 2 ;;
        --workers) workers=$2; shift 2 ;;
        --column) column=yes; shift ;;
        --joints) joints=yes; shift ;;
        --quick) quick=yes; shift ;;
        *) echo "run.sh: unknown option $1; see the head of $here/run.sh" >&2; exit 2 ;;
    esac
done
for network in ${rows//+/ }; do
    case $network in
        cslm | nnjm | attention | attention2) ;;
        *) echo "run.sh: --rows: $network: no network, expected cslm, nnjm, attention or attention2" >&2; exit 2 ;;
    esac
done
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
real=${NMT_DATA:-}/moses-multi30k/corpus
[ -n "$data" ] || data=$([ -d "$real" ] && echo multi30k || echo generated)
name=$(basename "$data")
out=${out:-runs/hybrid-$name}
tuning=(--stack 100 --iterations 8)
pairs=4000 tuned=300 tested=500
if [ -n "$quick" ]; then
    tuning=(--stack 20 --iterations 2 --restarts 3) pairs=600 tuned=60 tested=60
    export EPOCHS=2 PHRASE_EPOCHS=1 CSLM_EPOCHS=1 MINUTES=0 SHORT=200
    export ATTENTION="model.embedding=16 model.hidden=32 model.encoder_hidden=16 model.attention=16 model.maxout=16"
    export JOINT="model.embedding=16 model.layers=[32,16] training.max_epochs=1"
elif [ "$name" = generated ]; then # no limit of time: the same bytes on any machine, killed or not
    export EPOCHS=12 PHRASE_EPOCHS=2 CSLM_EPOCHS=8 MINUTES=0 SHORT=400
    export ATTENTION="model.embedding=128 model.hidden=256 model.encoder_hidden=128 model.attention=128 model.maxout=128"
    export JOINT="model.embedding=96 model.layers=[256,128] training.max_epochs=6"
    tuning=(--stack 50 --iterations 6 --restarts 10)
fi
mkdir -p "$out"
case $data in
    generated)
        [ -s "$out/corpus/test.fr" ] || nmt-init "$out/corpus" --sample-corpus
        data=$out/data
        mkdir -p "$data"
        for l in en fr; do # small: takes minutes, and test has unknown words
            head -n $pairs "$out/corpus/train.$l" > "$data/train.$l"
            head -n $tuned "$out/corpus/dev.$l" > "$data/dev.$l"
            head -n $tested "$out/corpus/test.$l" > "$data/test.$l"
        done ;;
    multi30k)
        [ -d "$real" ] || { echo "run.sh: set NMT_DATA to the folder that holds moses-multi30k/, or give --data" >&2; exit 2; }
        data=$out/data
        mkdir -p "$data"
        for l in en fr; do
            ln -sfn "$(realpath "$real/train.tok.$l")" "$data/train.$l"
            ln -sfn "$(realpath "$real/val.tok.$l")" "$data/dev.$l"
            ln -sfn "$(realpath "$real/test_2016_flickr.tok.$l")" "$data/test.$l"
        done ;;
esac
for part in train dev test; do for l in en fr; do
    [ -s "$data/$part.$l" ] || { echo "run.sh: $data/$part.$l does not exist; give --data a folder with train, dev and test .en and .fr" >&2; exit 2; }
done; done
say() { printf '\n== %s\n' "$*"; }

say "model: alignment, tables, language model"
smt-train "$out/model" -s "$data/train.en" -t "$data/train.fr" --memory 2

say "networks"
networks=${networks:-$out/networks}
JOINTS=${joints:-no} $here/networks.sh "$data" "$networks" ${column:+"$out/model/phrase-table.gz"}
networks=$(cd "$networks" && pwd)

say "tables: the pairs that dev and test can use"
reordering=reordering-table.wbe-msd-bidirectional-fe.gz
base=$out/tables/baseline
mkdir -p "$base" "$out/rows"
[ -s "$base/phrase-table.gz" ] || smt-filter-table "$out/model/phrase-table.gz" -i "$data/dev.en" "$data/test.en" -o "$base/phrase-table.gz" \
    --reordering "$out/model/$reordering" --reordering-output "$base/$reordering"
cp -f "$out/model/moses.ini" "$out/model/lm.arpa.gz" "$base"
row() { # NAME INI: tune, then translate dev and test with each seed's weights
    say "row $1"
    recipes/phrase_scores/row.sh embedded "$1" "$2" "$data" "$out/rows" "$workers" "${tuning[@]}"
}
row baseline "$base/moses.ini"
first=baseline
if [ -n "$column" ]; then
    mkdir -p "$out/tables/rnn"
    [ -s "$out/tables/rnn/phrase-table.gz" ] || smt-score-table "$base/phrase-table.gz" -f "translation=$networks/short-translation" --checkpoint last \
        -o "$out/tables/rnn/phrase-table.gz" --workers "$workers" --resume
    cp -f "$base/lm.arpa.gz" "$base/$reordering" "$out/tables/rnn"
    cp -f "$base/moses.ini" "$out/tables/rnn/before.ini" # in its own folder, so that its paths name the tables there
    smt-ini add-feature "$out/tables/rnn/before.ini" --name TranslationModel0 --weight 0.2 -o "$out/tables/rnn/moses.ini"
    row rnn "$out/tables/rnn/moses.ini"
    first=rnn
fi

# Each system starts with the tuned weights of the one without networks. ROW: the names of its networks, joined by +.
feature_line() { # NETWORK -> its line in the ini
    case $1 in
        cslm) echo "CSLM name=CSLM0 factor=0 path=$networks/cslm normalized=true" ;;
        nnjm) echo "NNJM name=NNJM0 factor=0 path=$networks/joint normalized=true" ;;
        attention) echo "NeuralTranslation name=NMT0 path=$networks/attention-1-mean neural-beam=50" ;;
        attention2) echo "NeuralTranslation name=NMT1 path=$networks/attention-2-mean neural-beam=50" ;;
    esac
}
make_ini() { # ROW -> inis/ROW.ini
    mkdir -p "$out/inis"
    cp -f "$out/rows/$first.tuned.ini" "$out/inis/$1.part"
    for network in ${1//+/ }; do
        smt-ini add-feature "$out/inis/$1.part" --line "$(feature_line "$network")" --weight 0.1 -o "$out/inis/$1.more"
        mv "$out/inis/$1.more" "$out/inis/$1.part"
    done
    mv "$out/inis/$1.part" "$out/inis/$1.ini"
}
rows=${rows:-cslm nnjm cslm+nnjm attention cslm+nnjm+attention cslm+nnjm+attention+attention2}
for system in $rows; do
    make_ini "$system"
    row "$system" "$out/inis/$system.ini"
done

say "the attention models alone, and both as an ensemble"
neural() { # NAME RUN ...: no weights to tune, so one output stands for three seeds
    output=$out/rows/$1
    shift
    for part in dev test; do
        [ -s "$output.seed-3.$part" ] || nmt-translate "$@" --escaped --beam-size 5 --threads "$workers" -i "$data/$part.en" -o "$output.seed-1.$part"
        for seed in 2 3; do cp -f "$output.seed-1.$part" "$output.seed-$seed.$part"; done
    done
}
neural neural-1 "$networks/attention-1-mean"
neural neural-2 "$networks/attention-2-mean"
neural neural-1+2 "$networks/attention-1-mean" "$networks/attention-2-mean"

say "n-best lists: rescored with the attention model; minimum Bayes risk"
one_pass="baseline ${column:+rnn} $rows" # systems of one pass
extra="neural-1 neural-2 neural-1+2"
for system in $first cslm+nnjm; do
    [ -s "$out/rows/$system.tuned.ini" ] || continue
    $here/lists.sh rescore "$system" rescored "$out" "$data" "$workers" "translation:NMT0=$networks/attention-1-mean"
    extra="$extra $system:rescored"
done
best=$(python $here/summary.py best "$out/rows" "$data/dev.fr" $one_pass)
$here/lists.sh mbr "$best" mbr "$out" "$data" "$workers"
extra="$extra $best:mbr"
if [ -n "$joints" ]; then
    $here/lists.sh rescore "$best" joints "$out" "$data" "$workers" "joint:BackwardNNJM0=$networks/joint-backward" "inverse-joint:InverseNNJM0=$networks/joint-inverse"
    extra="$extra $best:joints"
fi

say "report"
systems=()
for system in $one_pass $extra; do systems+=("$out/rows/$system.seed-1.test"); done
nmt-analyze report "${systems[@]}" --names $one_pass $extra --source "$data/test.en" --reference "$data/test.fr" --tokenized --bleu-tokenize none \
    --title "Hybrid systems: $name, seed 1" --output "$out/report.html" --quiet
python recipes/phrase_scores/table.py "$out/rows" "$data/test.fr" $one_pass $extra > "$out/table.tsv"
python $here/summary.py show "$out/rows" "$data/dev.fr" "$data/test.fr" $one_pass $extra > "$out/summary.tsv"
cat "$out/table.tsv" "$out/summary.tsv"
