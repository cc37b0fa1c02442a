"""The interface of an engine of the server, and the capabilities that an engine may have.

An engine translates each line independently of the others. A kind of engine is a class with `reads` and
`load`, registered in `ENGINES` of nmt/serve/served.py or as an entry point of the group `nmt.engines`.
Words are counted from 0; a span is its first and its last word. Logarithms are natural.
"""

import re
import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from nmt.errors import ConfigError, UserError
from nmt.runs.pair import LanguagePair
from nmt.runs.run import BeamTranslation, Run, join_translations
from nmt.search import FinishedHypothesis
from nmt.serve.config import EngineConfig
from nmt.text.scripts import LANGUAGE_CODES
from nmt.text.vocab import UNK

# ---- engines -----------------------------------------------------------------------------------------------


# Optional capabilities; an engine that lacks one ignores this part of a request, and answers the rest.
N_BEST = "n_best"  # several hypotheses
BEAM_SIZE = "beam_size"  # the beam size of a request
TOKENIZED = "tokenized"  # words between blanks, in and out
ALIGNMENT = "alignment"  # word alignment points
ATTENTION = "attention"  # attention weights
SEGMENTS = "segments"  # phrases
FEATURES = "features"  # the features whose weighted sum is the total score
PARSE = "parse"  # the soft parse of a gated recursive convolution

# Capabilities that a request depends on: it is refused for an engine without them.
SCORE = "score"  # log p of given translations
TERMS = "terms"  # terms and the translations that they must have
AVOID = "avoid"  # phrases that a translation may not contain

ALL_RUNS = (N_BEST, BEAM_SIZE, TOKENIZED, SCORE)  # what all engines have that translate with runs


@dataclass(frozen=True)
class TranslateOptions:
    """How a line is to be translated, and what the answer contains."""

    n_best: int = 1  # maximum number of hypotheses
    beam_size: int = 0  # 0: the engine's own
    tokenized: bool = False  # words between blanks, in and out
    distinct: bool = False  # no two hypotheses with the same text
    attention: bool = False  # answer with attention weights
    parse: bool = False  # answer with the encoder's parse of the source
    terms: tuple[tuple[str, str], ...] = ()  # source terms, and the translations that they must have
    avoid: tuple[str, ...] = ()  # phrases that the translation may not contain
    prepared: object = field(default=None, compare=False)  # what Engine.prepare returned

    @property
    def constrained(self) -> bool:
        """Whether the request has terms, or phrases to avoid."""
        return bool(self.terms or self.avoid)


@dataclass
class Segment:
    """A phrase of a translation: the (first, last) words of its source side and of its target side."""

    source: tuple[int, int]
    target: tuple[int, int]  # last = first - 1 if it has no words


@dataclass
class LineHypothesis:
    """One translation of a line."""

    text: str
    words: list[str]  # tokenized; alignments and segments count these
    score: float  # ranks the hypotheses, higher is better
    log_prob: float | None = None  # natural log p, the end symbol included
    alignment: list[tuple[int, int]] = field(default_factory=list)  # source word, target word
    attention: list[list[float]] = field(default_factory=list)  # of each target word, over the source words
    segments: list[Segment] = field(default_factory=list)  # in target order
    features: dict[str, list[float]] = field(default_factory=dict)  # name -> unweighted values


@dataclass
class SoftParseNode:
    """A node of a soft parse: the words `first` to `last` that it covers, and the weights of its three
    candidates, which sum to 1: a new combination of its children, or a copy of the left or right one."""

    first: int
    last: int
    new: float
    left: float
    right: float


@dataclass
class SoftParse:
    """The soft parse of a line, level by level from the words up."""

    units: list[str]
    nodes: list[SoftParseNode]


@dataclass
class TranslatedLine:
    """The translation of a line.

    A line that is too long is translated in several `parts`. Its translation then has a single hypothesis,
    without alignment, attention and parse.
    """

    words: list[str]  # of the source
    hypotheses: list[LineHypothesis]  # best first, at least one
    unknown: list[int] = field(default_factory=list)  # source words that the engine does not know
    parts: int = 1  # of a line of several sentences: the most of any of them
    parse: SoftParse | None = None


def empty_translation() -> TranslatedLine:
    """Build the translation of a line without words: an empty hypothesis of probability 1."""
    return TranslatedLine([], [LineHypothesis("", [], 0.0, 0.0)])


@dataclass(frozen=True)
class FeatureInfo:
    """A feature of an engine's total scores; `LineHypothesis.features` holds its values."""

    name: str
    what: str = ""  # what kind it is, such as: count language model
    scores: tuple[str, ...] = ()  # a name of each score, if known
    weights: tuple[float, ...] = ()


@dataclass(frozen=True)
class EngineInfo:
    """Description and capabilities of an engine."""

    kind: str
    description: str
    source: str = ""  # language code, if known
    target: str = ""
    capabilities: tuple[str, ...] = ()
    beam_size: int = 0  # 0: the engine has no beam
    tokenized_only: bool = False  # reads and writes tokenized text only
    tags: tuple[str, ...] = ()  # tags with which a line may begin
    features: tuple[FeatureInfo, ...] = ()


class Session(Protocol):
    """A search for many lines, each identified by the key with which it was added. One thread uses it."""

    @property
    def busy(self) -> bool:
        """Whether any line is still being translated."""

    def has_room(self) -> bool:
        """Whether the next step would start a line that is added now."""

    def add(self, key: Hashable, line: str, options: TranslateOptions) -> None:
        """Add a line. UserError for one that cannot be translated."""

    def step(self) -> Sequence[tuple[Hashable, TranslatedLine | UserError]]:
        """Advance the search by a short step; returns the keys and answers or errors of finished lines."""

    def cancel(self, key: Hashable) -> None:
        """Drop a line that is still being translated."""


class Engine:
    """Translates lines. At most `workers` threads call it at a time."""

    info: EngineInfo
    workers: int = 1
    continuous = False  # whether `session` translates many lines together; then `workers` counts sessions

    def translate(self, line: str, options: TranslateOptions, stop: threading.Event) -> TranslatedLine:
        """Translate a line. UserError for one that cannot be translated; any exception once `stop` is set."""
        raise NotImplementedError

    def session(self) -> Session:
        """Start a search for many lines. Continuous engines only."""
        raise NotImplementedError

    def fit(self, line: str) -> float:
        """Rate how well a line fits the source language, from 0 to 1, such as its share of known words."""
        raise NotImplementedError

    def prepare(self, options: TranslateOptions) -> object:
        """Compute, while other lines are being searched, what all lines of a constrained request share. The
        engine reads the returned value from `TranslateOptions.prepared`.

        UserError for options that cannot be met. After a reload the value may come from the old engine.
        """
        return None

    def score(self, pairs: Sequence[tuple[str, str]], tokenized: bool) -> list[list[tuple[str, float]]]:
        """Compute natural log p of each unit of each pair's target, and of its end symbol; the units come
        with it. Only for an engine
        with the capability SCORE. `tokenized`: the lines are words between blanks.

        UserError for a pair that is too long.
        """
        raise NotImplementedError


class EngineKind(Protocol):
    """How to recognize and load engines of a kind."""

    def reads(self, path: str) -> bool:
        """Whether this path is an engine of this kind. UserError for an engine that cannot be used."""

    def load(self, path: str, config: EngineConfig) -> Engine:
        """Load the engine at a path. UserError if that fails."""


@runtime_checkable
class TorchUse(Protocol):
    """A kind of engine that says which engines compute with torch; those of other kinds are assumed to."""

    def needs_torch(self, path: str, config: EngineConfig) -> bool:
        """Whether the engine at this path computes with torch. UserError for one that cannot be used."""


@runtime_checkable
class SeveralEngines(Protocol):
    """A kind of engine whose folders may hold further engines."""

    def more(self, path: str) -> Mapping[str, str]:
        """The further engines of a folder: ending of the name -> path. UserError for an unusable folder."""


# ---- names of engines --------------------------------------------------------------------------------------

ENGINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LANGUAGE_PAIR = re.compile(r"([a-z]{2,3})-([a-z]{2,3})(?![a-z])")


def languages_in_name(name: str) -> tuple[str, str]:
    """The (source, target) languages at the start of a name such as en-fr or de-en.small; else empty."""
    match = LANGUAGE_PAIR.match(name)
    return (match[1], match[2]) if match and {match[1], match[2]} <= LANGUAGE_CODES else ("", "")


def parse_engine_name(text: str) -> tuple[str, str]:
    """Split NAME=PATH into name and path. ValueError for anything else."""
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise ValueError(f"{text!r}: expected NAME=PATH")
    if not ENGINE_NAME.fullmatch(name):
        raise ValueError(f"{name!r}: expected a name of letters, digits, '.', '_' and '-'")
    return name, path


def check_names(names: Sequence[str]) -> None:
    """ConfigError if two engines have the same name."""
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{name}: two engines have this name; give each its own")


# ---- engines that translate with trained runs -------------------------------------------------------------
# Shared by the engines that compute with torch and with CTranslate2; torch is not imported here.


class AnyRunEngine(Engine):
    """The base of engines that translate with runs. A session searches many sentences together."""

    continuous = True
    run: Run

    def describe(self, beam_size: int, *capabilities: str) -> EngineInfo:
        """Describe the engine. `beam_size`: that of its searches without one of their own."""
        member = self.run.members[0]
        source, target = member.languages
        return EngineInfo(
            kind="run" if len(self.run.members) == 1 else "ensemble",
            description=" + ".join(member.description for member in self.run.members),
            source=source,
            target=target,
            capabilities=capabilities,
            beam_size=beam_size,
            tags=tuple(member.source.tags),
        )

    def translate(self, line: str, options: TranslateOptions, stop: threading.Event) -> TranslatedLine:
        session = self.session()
        session.add(None, line, options)
        while not stop.is_set():
            for _, answer in session.step():
                if isinstance(answer, UserError):
                    raise answer
                return answer
        raise InterruptedError

    def score(self, pairs: Sequence[tuple[str, str]], tokenized: bool) -> list[list[tuple[str, float]]]:
        run = self.run.for_text(tokenized)
        return [
            list(zip(run.target_units(target), scores, strict=True))
            for (_, target), scores in zip(pairs, run.word_scores(pairs), strict=True)
        ]

    def fit(self, line: str) -> float:
        """Compute the share of known characters; those of a word split into k units count 1/k each."""
        member = self.run.members[0]
        words, fit = member.source.words(line), 0.0
        for word in words:
            units = member.source.cut([word])
            if UNK not in member.source_words.encode(units):
                fit += len(word) / max(1, len(units))
        return fit / sum(map(len, words)) if words else 0.0


def join_parts(run: Run, parts: Sequence[tuple[str, FinishedHypothesis]]) -> TranslatedLine:
    """Join the translations of the parts of a line that was too long. `parts`: (source text, best hypothesis)
    of each. Indices of unknown words count from the start of the line; the alignment is left out."""
    member, words, missing = run.members[0], list[str](), list[int]()
    for text, _ in parts:
        units = member.source.units(text)
        missing += [len(words) + position for position in unknown_words(member, units)]
        words += member.source.join(units)
    joined = join_translations([run.translation(text, best) for text, best in parts], run.target)
    joined.alignment = []
    return TranslatedLine(words, [to_hypothesis(run, joined)], missing, parts=len(parts))


def to_hypothesis(run: Run, translation: BeamTranslation) -> LineHypothesis:
    """Convert a translation of a run to the server's hypothesis."""
    return LineHypothesis(
        text=run.text(translation),
        words=translation.words,
        score=translation.score,
        log_prob=translation.log_prob,
        alignment=translation.alignment,
    )


def unknown_words(member: LanguagePair, units: list[str]) -> list[int]:
    """The indices of the source words that contain a unit unknown to a model."""
    words = member.source.word_numbers(units)
    ids = member.source_words.encode(units)
    return sorted({word for word, token_id in zip(words, ids, strict=True) if token_id == UNK})
