"""Every reader with a valid file for it."""

import gzip
import shutil
from pathlib import Path

import numpy as np
import torch

from nmt.analysis import curves, statistics, systems
from nmt.data import binarized
from nmt.errors import DataError
from nmt.formats import nbest, parallel_text, pharaoh, phrase_table
from nmt.io import files, manifest
from nmt.ngram import count_models
from nmt.papers.multiscale.dictionary import Dictionary
from nmt.runs import run
from nmt.text import subwords, truecase
from nmt.text.lexicon import Lexicon
from nmt.text.subwords import LearnSettings, TrainingText
from nmt.text.subwords.sentencepiece import Unigram
from nmt.text.vocab import Vocab
from nmt.training import config_file, state
from smt_bridge import jobs
from smt_bridge.decoder import system, xml_input
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.table import PhraseTable
from smt_bridge.decoder.text_tables import read_table
from smt_bridge.moses import check as check_system
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses import ini as weights
from smt_bridge.tables import propose, score
from smt_bridge.tuning import loop, pool, tuner
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.registry import TuneConfig
from tests.conftest import ROOT
from tests.fuzz.cases import NBEST, TABLE, Reader, drained, text
from tests.smt_bridge.decoder.models import write_model

# ---- nmt ---------------------------------------------------------------------------------------------------


VOCAB = ["#version: 1 vocabulary size=3", "the\t10", "cat\t7", "l'\t5", "sat\t1"]
ARPA = [
    "\\data\\", "ngram 1=5", "ngram 2=3", "", "\\1-grams:", "-1.5\t<unk>", "0\t<s>\t-0.5", "-0.7\t</s>",
    "-0.6\tp\t-0.25", "-0.9\tq\t-0.1", "",
    "\\2-grams:", "-0.3\t<s> p", "-0.4\tp q", "-0.2\tq </s>", "", "\\end\\",
]  # fmt: skip
CONFIG = [
    "run: runs/x", "seed: 3", "data:", "  train_source: a.en", "  train_target: a.fr", "  max_length: 40",
    "  source: {language: en, case: lower}",
    "model: {embedding: 16, hidden: 24, maxout: 12, dropout: 0.1}", "training:", "  learning_rate: 0.01",
    "  max_steps: 60", "  cost: word",
]  # fmt: skip


def write_curves(folder: Path) -> None:
    for name in ("train", "dev"):
        files.write_text(
            folder / f"{name}.tsv", ["step\tcost\tbleu\tchrf", "10\t3.5\t1.5\t30", "20\t3.25\tnan\tnan"]
        )


def read_arpa(path: Path) -> None:
    count_models.load_count_model(path).scores([["p", "q", "x"], []])


def write_unigram(folder: Path) -> None:
    sentences = TrainingText(sentences=True)
    for word in ("lower", "newest", "wide"):
        sentences.add([word] * 9)
    Unigram.learn(sentences, LearnSettings(0, 0, True, "nfkc")).save(folder / "file")


def write_tmx(folder: Path) -> None:
    files.write_text(
        folder / "file.tmx",
        [
            '<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">',
            '<tmx version="1.4"><body><tu><tuv xml:lang="en"><seg>the <hi>cat</hi><ph x="1"/></seg></tuv>',
            '<tuv xml:lang="fr"><seg>le chat</seg></tuv></tu></body></tmx>',
        ],
    )


def read_pairs(path: Path) -> None:
    drained(parallel_text.choose_reader(str(path))([str(path)], parallel_text.Wanted(("en", "fr"))))


def read_codes(path: Path) -> None:
    subwords.load(path).apply(["the", "lower", "newest"])


def read_overrides(path: Path) -> None:
    text = (
        path.read_bytes().decode("utf-8", "surrogateescape").replace("\0", "")
    )  # as the system hands over arguments
    config_file.load(str(path.parent / "config.yaml"), list(filter(None, text.split("\n")[:5])))


def overrides(folder: Path) -> None:
    files.write_text(folder / "config.yaml", CONFIG)
    files.write_text(
        folder / "overrides",
        ["model.hidden=32", "training.learning_rate=1e-4", "data.source.case=keep", "seed=7"],
    )


def write_run(folder: Path) -> None:
    """A run that is quick to load."""
    shutil.copytree(ROOT / "tests" / "models" / "translator", folder / "run")
    place = folder / "run" / "config.yaml"
    place.write_text(place.read_text(encoding="utf-8").replace("ize: true", "ize: false"), encoding="utf-8")
    list_files(folder / "run")


def list_files(run_folder: Path) -> None:
    """Write the manifest of a run as its files are now."""
    manifest.write(run_folder, [path.name for path in run_folder.iterdir() if path.name != manifest.FILE])


def read_run(path: Path) -> None:
    run.Run.of(path.parent)


def read_listed_run(path: Path) -> None:
    """Read a run whose damage the checksums do not show."""
    list_files(path.parent)
    read_run(path)


def train_state(folder: Path) -> None:
    progress = {"step": 600, "epoch": 1, "batch": 0, "best": 1.0, "best_step": 600, "saved": [600]}
    optimizer = {"state": {0: {"mean": torch.ones(3)}}, "param_groups": [{"lr": 0.1, "params": [0]}]}
    state = {
        "progress": progress,
        "optimizer": optimizer,
        "random": torch.get_rng_state(),
        "random_cuda": [],
        "sizes": [0, 0],
        "extra": {},
    }
    write_run(folder)
    torch.save(state, folder / "run" / "training.pt")
    list_files(folder / "run")


def ids(folder: Path) -> None:
    words = Vocab({"a": 3, "b": 2}, 10)
    pairs = [(["a", "b"], ["b"]), (["b"], ["a", "a"]), (["a"], ["a"])]
    binarized.binarize(pairs, words, words, folder / "data", 10, "stamp")


def read_corpus(path: Path) -> None:
    found = binarized.open_corpus(path.parent, 5, 5)
    for number in range(min(100, len(found))):
        found.pair(number)


def hypotheses(folder: Path) -> None:
    files.write_text(folder / "source", ["a b", "c"])
    files.write_text(folder / "file", NBEST)


READERS: dict[str, Reader] = {
    "text": Reader(text("a b c", "", "été"), "file", lambda path: drained(files.read_lines(path))),
    "gzip": Reader(
        lambda folder: (folder / "file").write_bytes(gzip.compress(b"a b\n" * 50)),
        "file",
        lambda path: drained(files.read_lines(path)),
    ),
    "translation memory": Reader(write_tmx, "file.tmx", read_pairs),
    "vocabulary": Reader(text(*VOCAB), "file", Vocab.load),
    "codes": Reader(text("#version: 0.2", "l o", "lo w</w>", "e r</w>"), "file", read_codes),
    "sentencepiece": Reader(write_unigram, "file", read_codes),
    "truecase": Reader(text("the (12/14) The (2)", "Paris (3/3)"), "file", truecase.load),
    "dictionary": Reader(
        text("#version: 1 dictionary size=3", "a\t5", "b\t3", "a b\t2"), "file", Dictionary.load
    ),
    "arpa": Reader(text(*ARPA), "file", read_arpa),
    "lexicon": Reader(text("chat cat 0.5", "le the 0.25", "NULL the 1"), "file", Lexicon.load),
    "n-best list": Reader(text(*NBEST), "file", lambda path: drained(nbest.read(path))),
    "phrase table": Reader(text(*TABLE), "file", lambda path: drained(phrase_table.read_strict(path))),
    "hypotheses": Reader(
        hypotheses,
        "file",
        lambda path: systems.read_systems(
            str(path.parent / "source"), [str(path.parent / "source")], [str(path)], None, "none"
        ),
    ),
    "scores": Reader(
        text("-1.5 ||| -1 -0.5", "-2", "-3.25"), "file", lambda path: statistics.read_scores(str(path))
    ),
    "train.tsv": Reader(
        write_curves,
        "train.tsv",
        lambda path: list(curves.TrainingHistory({"run": curves.read_curves(path.parent)}).table().lines()),
    ),
    "configuration": Reader(text(*CONFIG), "file", lambda path: config_file.load(str(path), [])),
    "overrides": Reader(overrides, "overrides", read_overrides, named=False),
    "training.pt": Reader(train_state, "run/training.pt", lambda path: state.load_state(path.parent)),
    "stamp.json": Reader(ids, "data/stamp.json", read_corpus),
    "ids": Reader(ids, "data/source.ids", read_corpus),
    "offsets": Reader(ids, "data/target.offsets", read_corpus),
}
PARTS = "version config.yaml checkpoints.json source.vocab target.codes source.truecase step-500.pt".split()
READERS |= {f"listed run: {name}": Reader(write_run, f"run/{name}", read_listed_run, 4) for name in PARTS}
READERS |= {
    f"run: {name}": Reader(write_run, f"run/{name}", read_run, 4) for name in (*PARTS, "manifest.json")
}


# ---- smt_bridge --------------------------------------------------------------------------------------------


WEIGHTS = ["# weights", "LM0= 0.5", "TM0= 0.2 -0.1", "UnknownWordPenalty0= 1"]
INI = [
    "[input-factors]", "0", "[mapping]", "0 T 0", "[distortion-limit]", "6", "[feature]",
    "UnknownWordPenalty", "Distortion",
    "PhraseDictionaryMemory name=TM0 num-features=4 path=table input-factor=0 output-factor=0 table-limit=20",
    "KENLM name=LM0 factor=0 path=lm order=3",
    "[weight]", "Distortion0= 0.3", "TM0= 0.2 0.2 0.2 0.2", "LM0= 0.5",
]  # fmt: skip
FEATURES = ["FEATURES_TXT_BEGIN_0 0 2 2 LM0_0 TM0_0", "-1 0.5", "-2 0.25", "FEATURES_TXT_END_0"]
SCORES = ["SCORES_TXT_BEGIN_0 0 2 9 BLEU", "4 4 3 3 2 2 1 1 4", "3 4 1 3 1 2 1 1 4", "SCORES_TXT_END_0"]


def pools(folder: Path) -> None:
    files.write_text(folder / "features", FEATURES)
    files.write_text(folder / "scores", SCORES)


def read_pool(path: Path) -> None:
    pool.read_moses([str(path.parent / "features")], [str(path.parent / "scores")]).pool()


def read_ini(path: Path) -> None:
    ini = moses_ini.read(str(path))
    drained(check_system.problems(ini, [str(path.parent)]))


def scored(folder: Path) -> None:
    files.write_text(folder / "table", TABLE)
    score.write_columns(str(folder / "table"), [{"identity": "a", "column": 4}])


def model(folder: Path) -> None:
    write_model(folder / "model", 1)


def read_model(path: Path) -> None:
    system.load(str(path.parent), use_cache=False)


def cached(folder: Path) -> None:
    """The one entry of a cache, with a file under another name; the reader gives it back the name it had."""
    model(folder)
    keep(folder)
    next((folder / "cache").glob("*.*/starts.npy")).rename(folder / "cached")


def keep(folder: Path) -> None:
    table = str(folder / "model" / "table")
    Cache(folder / "cache").keep([table], lambda: read_table(table, 4, None), PhraseTable)


def read_cached(path: Path) -> None:
    entry = next((path.parent / "cache").glob("*.*/contents.json")).parent
    (entry / "starts.npy").write_bytes(path.read_bytes())
    keep(path.parent)


def read_markup(path: Path) -> None:
    for number, line in enumerate(files.read_lines(path), 1):
        try:
            xml_input.parse_markup(line, xml_input.Markup("exclusive"))
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from error  # as the decoder does


def begun_job(folder: Path) -> None:
    begun = jobs.open_job(str(folder / "out"), {"table": "t", "features": ["a"]}, 2, resume=False)
    begun.add(np.ones((3, 2)))
    begun.add(np.zeros((2, 2)))


def read_job(path: Path) -> None:
    resumed = jobs.open_job(
        str(path.parent.parent / "out"), {"table": "t", "features": ["a"]}, 2, resume=True
    )
    drained(resumed.finished())


def tuned(folder: Path) -> None:
    (folder / "work").mkdir()
    loop.open_folder(folder / "work", {"model": "m"}, TuneConfig(), Mert())
    made = loop.Iteration(np.ones(2), 0.5, np.array([0, 0, 1]), np.ones((3, 2)), np.ones((3, 9)))
    loop.Tuning(folder / "work", ["LM0_0", "TM0_0"], 2, TuneConfig(), Mert()).save(made)


def read_tuned(path: Path) -> None:
    loop.open_folder(path.parent, {"model": "m"}, TuneConfig(), Mert())
    begun = loop.Tuning(path.parent, ["LM0_0", "TM0_0"], 2, TuneConfig(), Mert())
    begun.load()
    begun.pool()


READERS |= {
    "word translation table": Reader(
        text("chat cat 0.5", "le the 0.25", "NULL the 1"),
        "file",
        lambda path: propose.read_lexicon(str(path)),
    ),
    "alignments": Reader(text("0-0 1-2", "", "0-0"), "file", lambda path: drained(pharaoh.read(path))),
    "weights": Reader(text(*WEIGHTS), "file", weights.read_weights),
    "starting weights": Reader(
        text("0.5 0.25 0.25"), "file", lambda path: tuner.read_start(str(path), ["LM0_0", "TM0_0", "TM0_1"])
    ),
    "moses.ini": Reader(text(*INI), "file", read_ini),
    "scores.json": Reader(
        scored,
        "table.scores.json",
        lambda path: score.OldTable(str(path).removesuffix(".scores.json"), ["a"]),
    ),
    "table of proposals": Reader(text(*TABLE), "file", lambda path: propose.read_table(str(path), None)),
    "features of mert": Reader(pools, "features", read_pool),
    "scores of mert": Reader(pools, "scores", read_pool),
    "decoder: moses.ini": Reader(model, "model/moses.ini", read_model),
    "decoder: table": Reader(model, "model/table", read_model),
    "decoder: reordering": Reader(model, "model/reordering", read_model),
    "decoder: lm": Reader(model, "model/lm0", read_model),
    "decoder: cache": Reader(cached, "cached", read_cached),
    "markup": Reader(
        text(
            'a <np translation="big house||mansion" prob="0.8||0.2">grosses haus</np> b',
            "<zone> a b </zone> c",
            'a <wall/> <x translation="y" span="0-0"/>',
        ),
        "file",
        read_markup,
    ),
    "job.json": Reader(begun_job, "out.job/job.json", read_job),
    "scores of a job": Reader(begun_job, "out.job/scores", read_job),
    "tune.json": Reader(tuned, "work/tune.json", read_tuned),
    "NN.npz": Reader(tuned, "work/00.npz", read_tuned),
}
