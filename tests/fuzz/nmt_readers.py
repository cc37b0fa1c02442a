"""Every reader of nmt with a valid file for it."""

import gzip
import shutil
from pathlib import Path

import torch

from nmt.analysis import curves, statistics, systems
from nmt.data import binarized
from nmt.formats import nbest, parallel_text, phrase_table
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
from tests.conftest import ROOT
from tests.fuzz.cases import NBEST, TABLE, Reader, drained, text

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


def write_model(folder: Path) -> None:
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
    "sentencepiece": Reader(write_model, "file", read_codes),
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
