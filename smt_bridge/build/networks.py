"""Settings and costs of the networks of a hybrid system, by the size of the corpus.

They are defined here only. A plan combines a recipe with a number of updates; training.py turns both into a
configuration of nmt-train.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Name = Literal["attention", "joint", "cslm"]
Section = Mapping[str, object]

ORDER: tuple[Name, ...] = ("attention", "joint", "cslm")  # trained in this order: the longest first
START = 0.1  # weight of a network before its lists are seen; Σ |w| of the other features is 1
FEATURES: dict[Name, str] = {  # their lines in [feature] of the ini; neural-beam: docs/search-features.md
    "attention": "NeuralTranslation name=NMT0 path={path} neural-beam=50",
    "joint": "NNJM name=NNJM0 factor=0 path={path} normalized=true",
    "cslm": "CSLM name=CSLM0 factor=0 path={path} normalized=true",
}
DESCRIPTIONS = {
    "attention": "attention model",
    "joint": "joint model (NNJM)",
    "cslm": "neural language model (CSLM)",
}
AVERAGED = 5  # number of last checkpoints of the attention model whose weights are averaged


@dataclass(frozen=True)
class Recipe:
    """Settings of a network for corpora of at least `pairs` pairs."""

    network: Name
    pairs: int  # size of the smallest corpus that gets the recipe
    what: str  # a description
    sections: Mapping[str, Section]  # of the configuration, besides data
    batch: int  # sentences
    most: float  # epochs of a full plan; more gain nothing
    least: int  # updates below which the network is not worth training
    rate: float  # target words per second in training, on one core of the reference machine
    search: float  # seconds per source word that the network adds to the search, on the same core
    preset: str = ""  # of nmt-train; empty for none


DECAYING = {"optimizer": "adam", "learning_rate": 0.001, "cost": "word", "decay": 0.5, "patience": 3}
TO_ZERO = {
    "schedule": "linear",
    "max_epochs": 0,  # no limit: training ends after the plan's updates, at the end of the schedule
    "decay": 1.0,
    "patience": 0,
    "keep": AVERAGED,
    "dev_beam": 1,
    "metric": "cost",
}


GUIDED = "guided_alignment"  # of section `training`


def attention(dropout: float, **training: float) -> dict[str, Section]:
    """Configuration of an attention model, to be merged into its preset. `training`: its further settings."""
    return {"model": {"type": "rnn", "dropout": dropout}, "training": {**TO_ZERO, **training}}


# Smaller corpora need more epochs, but not smaller networks. With half the layer sizes, and about as many
# sentences, results on the development set of Multi30k were worse: the attention model lost 2 to 3 BLEU with
# 10,000 pairs; the joint model had a perplexity of 4.9 instead of 3.2 with 5,000 pairs, and of 9.8 instead of
# 4.6 with 1,000; the CSLM one of 21.4 instead of 19.8 with 10,000.
ATTENTION = Recipe(
    "attention",
    pairs=25_000,
    what="attention model, embeddings of 256, 512 hidden units (--preset small)",
    preset="small",
    sections=attention(dropout=0.4),
    batch=64,
    most=10,  # dev BLEU 59.1 on Multi30k; 16 epochs at a dropout of 0.3 end at 58.8
    least=1800,
    rate=3000,
    search=0.0099,  # 6.5 sentences a second instead of 39
)
JOINT = Recipe(
    "joint",
    pairs=8000,
    what="joint model, layers of 512 and 512",
    sections={
        "model": {"type": "joint", "affiliation": "phrase", "dropout": 0.3, "layers": [512, 512]},
        "training": DECAYING,
    },
    batch=64,
    most=12,
    least=900,
    rate=4450,
    search=0.0019,  # 20 sentences a second instead of 39
)
CSLM = Recipe(
    "cslm",
    pairs=8000,
    what="CSLM of 7-grams, layers of 384 and 256",
    sections={
        "lm": {
            "type": "cslm", "order": 7, "embedding": 128, "layers": [384, 256], "dropout": 0.3,
            "normalizer": 0.1, "init": "glorot",
        },
        "training": DECAYING,
    },
    batch=32,
    most=12,
    least=1800,
    rate=8000,
    search=0.0019,
)  # fmt: skip

# A corpus gets the first recipe of a network whose `pairs` it reaches; a network without one is left out. The
# bounds lie between the measured sizes, not on them, because cleaning removes a few of 10,000 pairs.
RECIPES: tuple[Recipe, ...] = (
    ATTENTION,
    replace(ATTENTION, pairs=15_000, most=15),
    replace(ATTENTION, pairs=8000, most=20),
    # 5,000 pairs: BLEU 45.9 on the development set, 45.5 at a dropout of 0.4. In another comparison 45.4, and
    # 46.8 with guided alignment (recipes/guided_alignment), by which the hybrid gains 0.6; with 28,995 pairs
    # it gains nothing.
    replace(ATTENTION, pairs=4000, most=30, least=500, sections=attention(0.5, guided_alignment=0.1)),
    replace(ATTENTION, pairs=1500, most=60, least=500, sections=attention(0.5, guided_alignment=0.1)),
    JOINT,
    replace(JOINT, pairs=1500, batch=32, most=15, least=400),
    replace(JOINT, pairs=500, batch=16, most=20, least=250, rate=3500),
    CSLM,
    replace(CSLM, pairs=1500, most=15, least=400),
    replace(CSLM, pairs=500, batch=16, most=15, least=250, rate=6000),
)


def recipe(network: Name, pairs: int) -> Recipe | None:
    """The recipe of a network for a corpus of `pairs` pairs; None if the corpus is too small for it."""
    return next((entry for entry in RECIPES if entry.network == network and pairs >= entry.pairs), None)


def feature_name(line: str) -> str:
    """Name of the feature that a line of an ini defines: `CSLM name=CSLM0 ...` -> `CSLM0`"""
    return next(word.removeprefix("name=") for word in line.split() if word.startswith("name="))
