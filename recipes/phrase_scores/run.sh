#!/usr/bin/env bash
# Cho et al. 2014a; van Merriënboer 2018, table 4.1: a phrase-based system, with the RNN's phrase scores, with a CSLM inside the search,
# with a word penalty. Every row is tuned by decoding, then again with three seeds on all its n-best lists.
# usage: run.sh [--engine embedded|moses] [--data DIR|generated] [--networks DIR] [--out DIR] [--lm-text FILE] [--controls] [--rows "ROW ..."] [--workers N] [--quick]
#   --data      folder with train, dev and test .en and .fr, tokenized and escaped; or `generated`: the corpus of the quickstart's grammar (default)
#   --networks  run directories of networks.sh: short-translation, cslm ...; without it they are trained
#   --lm-text   text of the count model; the target side of train unless given
#   --controls  also: + inverse RNN, + proposals, the networks with all words
#   --rows      rows to tune; default: all
#   --quick     two iterations of tuning, for a dry run
# The script can be stopped and started again; finished steps are not repeated.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=recipes/phrase_scores
engine=embedded data=generated networks= out= controls= workers=2 rows= lm_text= quick=
while [ $# -gt 0 ]; do
    case $1 in
        --engine) engine=$2; shift 2 ;;
        --data) data=$2; shift 2 ;;
        --networks) networks=$2; shift 2 ;;
        --out) out=$2; shift 2 ;;
        --rows) rows=$2; shift 2 ;;
        --workers) workers=$2; shift 2 ;;
        --lm-text) lm_text=$2; shift 2 ;;
        --controls) controls=yes; shift ;;
        --quick) quick=yes; shift ;;
        *) echo "run.sh: unknown option $1; see the head of $here/run.sh" >&2; exit 2 ;;
    esac
done
[ "$engine" = embedded ] || [ "$engine" = moses ] || { echo "run.sh: --engine $engine: expected embedded or moses" >&2; exit 2; }
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
name=$(basename "$data")
out=${out:-runs/table-4.1-$name-$engine}
minutes=40 short=1500 tuning=(--stack 100 --iterations 10)
if [ "$data" = generated ]; then
    export PHRASE_EPOCHS=2 CSLM_EPOCHS=8 # no limit of time: the same bytes on any machine, killed or not
    minutes=0 short=400 tuning=(--stack 50 --iterations 6 --restarts 10)
    data=$out/corpus
    [ -s "$data/test.fr" ] || nmt-init "$data" --sample-corpus
    if [ ! -s "$data/small/test.fr" ]; then # 4,000 pairs to train on, 300 to tune on, 500 to test on: takes minutes, and test has unknown words
        mkdir -p "$data/small"
        for l in en fr; do
            head -n 4000 "$data/train.$l" > "$data/small/train.$l"
            head -n 300 "$data/dev.$l" > "$data/small/dev.$l"
            head -n 500 "$data/test.$l" > "$data/small/test.$l"
        done
    fi
    data=$data/small
fi
[ -z "$quick" ] || tuning=(--stack 20 --iterations 2 --restarts 3)
for part in train dev test; do for l in en fr; do
    [ -s "$data/$part.$l" ] || { echo "run.sh: $data/$part.$l does not exist; give --data a folder with train, dev and test .en and .fr" >&2; exit 2; }
done; done
mkdir -p "$out"
say() { printf '\n== %s\n' "$*"; }

say "model: alignment, tables, language model"
smt-train "$out/model" -s "$data/train.en" -t "$data/train.fr" ${lm_text:+--lm-text "$lm_text"} --memory 2

say "networks"
if [ -z "$networks" ]; then
    networks=$out/networks
    CONTROLS=${controls:-no} $here/networks.sh "$data" "$out/model/phrase-table.gz" "$networks" "$minutes" "$short"
fi

# The pairs that dev and test can use: a tenth of the work for everything that follows.
say "tables: filtered, then one more column for each feature"
base=$out/tables/baseline reordering=reordering-table.wbe-msd-bidirectional-fe.gz
mkdir -p "$base"
[ -s "$base/phrase-table.gz" ] || smt-filter-table "$out/model/phrase-table.gz" -i "$data/dev.en" "$data/test.en" -o "$base/phrase-table.gz" \
    --reordering "$out/model/$reordering" --reordering-output "$base/$reordering"
cp -f "$out/model/moses.ini" "$out/model/lm.arpa.gz" "$base"

# table NEW OLD FEATURE: the table of OLD with one more column
table() {
    new=$out/tables/$1 old=$out/tables/$2
    mkdir -p "$new"
    [ -s "$new/phrase-table.gz" ] || smt-score-table "$old/phrase-table.gz" -f "$3" -o "$new/phrase-table.gz" --checkpoint last --workers "$workers" --resume \
        $(case $3 in translation=*) echo --report "$out/analysis/$1" ;; esac) # scatter, best phrases, coverage: the analyses of chapter 4
    cp -f "$old/lm.arpa.gz" "$old/$reordering" "$new"
    cp -f "$old/moses.ini" "$new/before.ini" # in its own folder, so that its paths name the tables there
    smt-ini add-feature "$new/before.ini" --name TranslationModel0 --weight 0.2 -o "$new/moses.ini"
}
# add_cslm ROW: the same tables, and the CSLM in the search
add_cslm() {
    smt-ini add-feature "$out/tables/$1/moses.ini" --line "CSLM name=CSLM0 factor=0 path=$(cd "$networks/cslm" && pwd) normalized=true" --weight 0.25 \
        -o "$out/tables/$1/cslm.ini"
}
# The row + proposals: the network's own options beside the table's, with the RNN column for all of them.
propose() {
    new=$out/tables/proposals
    mkdir -p "$new"
    if [ ! -s "$new/phrase-table.gz" ]; then
        smt-propose "$base/phrase-table.gz" "$networks/full-translation" --inverse "$networks/full-inverse" --checkpoint last --lexical "$out/model/lex" \
            -i "$data/dev.en" "$data/test.en" -o "$new/proposed.gz" --reordering "$base/$reordering" --reordering-output "$new/$reordering"
        smt-score-table "$new/proposed.gz" -f "translation=$networks/full-translation" --checkpoint last -o "$new/phrase-table.gz" --workers "$workers"
    fi
    cp -f "$base/lm.arpa.gz" "$new"
    cp -f "$base/moses.ini" "$new/before.ini"
    smt-ini add-feature "$new/before.ini" --name TranslationModel0 --weight 0 --weight 0.2 -o "$new/moses.ini"
}
table rnn baseline "translation=$networks/short-translation"
table rnn-wp rnn "unknown-words=$networks/short-translation"
add_cslm rnn
add_cslm rnn-wp
plan="baseline rnn cslm-rnn cslm-rnn-wp"
if [ -n "$controls" ]; then
    table rnn-inverse rnn "inverse=$networks/short-inverse"
    table full-rnn baseline "translation=$networks/full-translation"
    table full-rnn-inverse full-rnn "inverse=$networks/full-inverse"
    add_cslm full-rnn
    add_cslm full-rnn-inverse
    add_cslm rnn-inverse
    propose
    plan="$plan rnn-inverse cslm-rnn-inverse proposals full-rnn full-cslm-rnn full-cslm-rnn-inverse"
fi
row_ini() { # ROW -> its configuration
    case $1 in
        cslm-*) echo "$out/tables/${1#cslm-}/cslm.ini" ;;
        full-cslm-*) echo "$out/tables/full-${1#full-cslm-}/cslm.ini" ;;
        *) echo "$out/tables/$1/moses.ini" ;;
    esac
}
mkdir -p "$out/rows"
for row in ${rows:-$plan}; do
    say "row $row: tune, then translate the test set with each seed's weights"
    $here/row.sh "$engine" "$row" "$(row_ini "$row")" "$data" "$out/rows" "$workers" "${tuning[@]}"
done

say "report"
systems=() names=()
for row in $plan; do
    if [ -s "$out/rows/$row.seed-1.test" ]; then systems+=("$out/rows/$row.seed-1.test"); names+=("$row"); fi
done
nmt-analyze report "${systems[@]}" --names "${names[@]}" --source "$data/test.en" --reference "$data/test.fr" --tokenized --bleu-tokenize none \
    --vocabulary "$networks/short.en.vocab" "$networks/short.fr.vocab" --title "Table 4.1: $name, $engine engine" --output "$out/report.html" --quiet
python $here/table.py "$out/rows" "$data/test.fr" "${names[@]}" | tee "$out/table.tsv"
