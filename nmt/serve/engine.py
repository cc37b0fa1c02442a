"""What the server asks of an engine, and what an engine may offer beyond that.

An engine translates lines, each on its own. A kind of engine is a class with `reads` and `load`; it is found
in `ENGINES` of nmt/serve/served.py, or through the entry points `nmt.engines` of an installed package.
Words are counted from 0; a span has its first word and its last one. Logarithms are natural.
"""

import re
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from nmt.errors import UserError
from nmt.serve.config import EngineConfig
from nmt.text.scripts import LANGUAGE_CODES

# ---- engines -----------------------------------------------------------------------------------------------


# What an engine may be able to do; a request that asks for anything else gets the answer without it.
N_BEST = "n_best"  # several hypotheses
BEAM_SIZE = "beam_size"  # the beam size of a request
TOKENIZED = "tokenized"  # words between blanks, in and out
ALIGNMENT = "alignment"  # word alignment points
ATTENTION = "attention"  # attention weights
SEGMENTS = "segments"  # phrases
FEATURES = "features"  # the features of a total
PARSE = "parse"  # the soft parse of a gated recursive convolution
SCORE = "score"  # log p of given translations

# What an engine has to be able to do for a request that asks for it.
TERMS = "terms"  # terms and the translations that they must have
AVOID = "avoid"  # phrases that a translation may not contain


@dataclass(frozen=True)
class Options:
    """What is asked for a line."""

    n_best: int = 1  # hypotheses, at most
    beam_size: int = 0  # 0: the engine's
    tokenized: bool = False  # words between blanks, in and out
    distinct: bool = False  # hypotheses of different texts only
    attention: bool = False
    parse: bool = False
    terms: tuple[tuple[str, str], ...] = ()  # source terms, and the translations that they must have
    avoid: tuple[str, ...] = ()  # phrases that the translation may not contain
    prepared: object = field(default=None, compare=False)  # what the engine has made of it, see Preparing


@dataclass
class Segment:
    """A phrase of a translation: the words `first` to `last` of either side."""

    source: tuple[int, int]
    target: tuple[int, int]  # last = first - 1: no words


@dataclass
class Hypothesis:
    """One translation of a line."""

    text: str
    words: list[str]  # tokenized; alignments and segments count these
    score: float  # what hypotheses are ranked by
    log_prob: float | None = None  # natural log p, the end symbol included
    alignment: list[tuple[int, int]] = field(default_factory=list)  # source word, target word
    attention: list[list[float]] = field(default_factory=list)  # of each target word, over the source words
    segments: list[Segment] = field(default_factory=list)  # in target order
    features: dict[str, list[float]] = field(default_factory=dict)


@dataclass
class ParseNode:
    """A node above the words of a soft parse: the words it covers, and the weights of its three candidates,
    which sum to 1."""

    first: int
    last: int
    new: float
    left: float
    right: float


@dataclass
class Parse:
    """The soft parse of a line, level by level from the words up."""

    units: list[str]
    nodes: list[ParseNode]


@dataclass
class Translated:
    """What became of a line. A line that was too long was translated in `parts`; it has one hypothesis,
    without alignment, attention and parse."""

    words: list[str]  # of the source
    hypotheses: list[Hypothesis]  # best first, at least one
    unknown: list[int] = field(default_factory=list)  # source words that the engine does not know
    parts: int = 1
    parse: Parse | None = None


def nothing() -> Translated:
    """The translation of a line without words: a hypothesis without words, of probability 1."""
    return Translated([], [Hypothesis("", [], 0.0, 0.0)])


@dataclass(frozen=True)
class FeatureInfo:
    """A feature of an engine's totals, as `Hypothesis.features` has its values."""

    name: str
    what: str = ""  # count language model
    scores: tuple[str, ...] = ()  # a name of each score; empty where nobody says it
    weights: tuple[float, ...] = ()


@dataclass(frozen=True)
class EngineInfo:
    """What an engine says of itself."""

    kind: str
    description: str
    source: str = ""  # language codes; empty: not known
    target: str = ""
    capabilities: tuple[str, ...] = ()
    beam_size: int = 0  # 0: it has none
    tokenized_only: bool = False  # reads and writes words between blanks only
    tags: tuple[str, ...] = ()  # that a line may begin with
    features: tuple[FeatureInfo, ...] = ()


class Engine(Protocol):
    """Translates lines. Several threads may call it, at most `workers` of them at a time."""

    info: EngineInfo
    workers: int

    def translate(self, line: str, options: Options, stop: threading.Event) -> Translated:
        """The translation of a line. UserError for a line that cannot be translated; any exception once
        `stop` is set."""
        ...

    def fit(self, line: str) -> float:
        """How well a line fits the source language, from 0 to 1: the share of it that is known words."""
        ...


class Session(Protocol):
    """Lines in search, each known by the key that it was added with. One thread works with a session."""

    @property
    def busy(self) -> bool:
        """Is any line not finished?"""
        ...

    def wants(self) -> bool:
        """Would a line that is added now be started at the next step?"""
        ...

    def add(self, key: Hashable, line: str, options: Options) -> None:
        """One more line. UserError for one that cannot be translated."""
        ...

    def step(self) -> Sequence[tuple[Hashable, Translated | UserError]]:
        """Work for a moment; the lines that are finished, each with its translation, or with the reason why
        it has none."""
        ...

    def cancel(self, key: Hashable) -> None:
        """Drop a line that is not finished."""
        ...


@runtime_checkable
class Continuous(Protocol):
    """Translates many lines together, which may begin at different times; `workers` are sessions then."""

    def session(self) -> Session: ...


@runtime_checkable
class Preparing(Protocol):
    """Makes what all lines of a request share, beside the search for other lines."""

    def prepare(self, options: Options) -> object:
        """Make the value that the engine will read from `Options.prepared`. UserError for what cannot be met.
        After the engine has been loaded anew, it may be that of the old one."""
        ...


@runtime_checkable
class Scoring(Protocol):
    """Knows the probability of a given translation."""

    def score(self, pairs: Sequence[tuple[str, str]], tokenized: bool) -> list[list[float]]:
        """Natural log p of each unit of the second text of a pair, and of its end symbol. UserError for a
        pair that is too long."""
        ...


class EngineKind(Protocol):
    """How engines of a kind are recognized and loaded."""

    def reads(self, path: str) -> bool:
        """Is this path an engine of this kind? UserError for one that is, but cannot be used."""
        ...

    def load(self, path: str, config: EngineConfig) -> Engine:
        """UserError in one line for what cannot be loaded."""
        ...


# ---- names of engines --------------------------------------------------------------------------------------
# The names of engines.


ENGINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LANGUAGE_PAIR = re.compile(r"([a-z]{2,3})-([a-z]{2,3})(?![a-z])")


def languages_in_name(name: str) -> tuple[str, str]:
    """The languages that a name such as en-fr or de-en.small says; empty without any."""
    found = LANGUAGE_PAIR.match(name)
    return (found[1], found[2]) if found and {found[1], found[2]} <= LANGUAGE_CODES else ("", "")


def parse_engine_name(text: str) -> tuple[str, str]:
    """NAME=PATH -> name, path. ValueError for anything else."""
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise ValueError(f"{text!r}: expected NAME=PATH")
    if not ENGINE_NAME.fullmatch(name):
        raise ValueError(f"{name!r}: expected a name of letters, digits, '.', '_' and '-'")
    return name, path
