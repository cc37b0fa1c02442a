"""A feature inside the phrase-based search, like Moses' FeatureFunction: columns of n-best lists with
weights.

`of_options` scores an option by itself, once a sentence. A stateful feature adds what depends on the words
before while the stacks are filled: it scores all candidates of a stack in one call, so that a network needs
one matrix product (van Merriënboer 2018, section 4.4.1).

O options of a sentence, K scores of the feature, N candidates. Scores are natural logarithms where they are
probabilities."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, Self, TypeGuard

import numpy as np

from nmt.errors import ConfigError
from nmt.io.numbers import count
from smt_bridge.decoder.arrays import Floats, Int32s, Int64s
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.sections import truth
from smt_bridge.decoder.sentence import Sentence


@dataclass(frozen=True)
class SearchFeatureLine:
    """A feature's line in [feature] of a moses.ini."""

    name: str
    options: Mapping[str, str]  # path= is the file or folder that was found
    where: str  # moses.ini:12, for messages

    def truth(self, key: str, default: bool = False) -> bool:
        """Parse a boolean option. ConfigError for another value."""
        try:
            return truth(self.options[key]) if key in self.options else default
        except ValueError as error:
            raise ConfigError(f"{self.where}: {key}={error}") from error

    def count(self, key: str, default: int = 0) -> int:
        """Parse an option that is an integer of 0 or more. ConfigError for another value."""
        try:
            return count(self.options[key]) if key in self.options else default
        except ValueError as error:
            raise ConfigError(f"{self.where}: {key}={error}, expected 0 or more") from error


class SearchFeature(Protocol):
    """A feature of the search, shared by several threads. Commands set up torch for a class with `needs_torch
    = True`."""

    arguments: ClassVar[Set[str]]  # options of its line besides name=, num-features= and tuneable=
    scores: ClassVar[int]  # K
    name: str

    @classmethod
    def load(cls, line: SearchFeatureLine, config: DecoderConfig) -> Self:
        """The feature of a line. ConfigError for one that cannot be used."""
        ...

    def of_options(self, sentence: Sentence) -> Floats:
        """Score of each option wherever it is used: (O, K). Like Moses' EvaluateWithSourceContext it is
        applied after the table limit."""
        ...


class StatefulFeature(SearchFeature, Protocol):
    """A feature whose score depends on the words before; candidates are scored when their stack is
    complete."""

    stand_in: ClassVar[float]  # its score until then, as a multiple of the first language model's

    def start(self, sentence: Sentence) -> "SentenceScorer":
        """Create the scorer of one sentence."""
        ...


class Candidates(NamedTuple):
    """Hypotheses extended by an option, all of one stack."""

    option: Int64s  # (N,) the option that is added
    state: Int64s  # (N,) the feature's state before it
    complete: bool  # is every source word translated? Then the end of the sentence is scored too


class Gains(NamedTuple):
    """Score gains of candidates, and the feature's states after them."""

    values: Floats  # (N, K)
    states: Int64s  # (N,) numbers the feature gives, such as a word id, a hash, or a row of its own memory
    keys: Int64s | None = None  # (N,) what hypotheses must share to be recombined; without it the states

    @property
    def recombined(self) -> Int64s:
        return self.states if self.keys is None else self.keys


class SentenceScorer(Protocol):
    """A stateful feature's scorer for one sentence."""

    begin: int  # the state before the first word

    def gains(self, candidates: Candidates) -> Gains:
        """Score added by each candidate. Equal states and options must give equal gains."""
        ...


class DerivationScorer(SentenceScorer, Protocol):
    """A scorer with a way of its own to score whole derivations."""

    def of_derivations(self, paths: Sequence[Int32s]) -> Floats:
        """Values of a stateful feature for derivations: (derivations, K). Steps through all of them in
        parallel, unless the scorer has its own method."""
        ...


class PreviewScorer(SentenceScorer, Protocol):
    """A scorer that can cheaply compute part of a candidate's score: better than a stand-in where its feature
    has a beam of its own."""

    def preview(self, candidates: Candidates) -> tuple[Floats, Floats]:
        """The known part of the values (N, K), and the share of the stand-in that still represents the rest
        (N,)."""
        ...


def is_stateful(feature: SearchFeature) -> TypeGuard[StatefulFeature]:
    """Whether a feature depends on the words before."""
    return hasattr(feature, "start")


def is_lossy(feature: SearchFeature) -> bool:
    """Whether the feature's gains in the search may differ from its values: hypotheses recombine although its
    states differ, or the search takes an approximation. n-best lists then have the values of
    `of_derivations`, and are sorted by the exact totals."""
    return bool(getattr(feature, "lossy", False))


def beam_of(feature: SearchFeature) -> int:
    """Number of candidates of a stack that a feature scores; 0: no limit of its own."""
    return int(getattr(feature, "beam", 0))


def can_preview(scorer: SentenceScorer) -> TypeGuard[PreviewScorer]:
    return hasattr(scorer, "preview")


def scores_derivations(scorer: SentenceScorer) -> TypeGuard[DerivationScorer]:
    return hasattr(scorer, "of_derivations")


def of_derivations(scorer: SentenceScorer, paths: Sequence[Int32s], scores: int) -> Floats:
    """The values of a stateful feature for derivations: (derivations, K). All are scored phrase by phrase in
    parallel, unless the scorer has a way of its own."""
    if scores_derivations(scorer):
        return scorer.of_derivations(paths)
    total, lengths = np.zeros((len(paths), scores)), np.array([len(path) for path in paths])
    states = np.full(len(paths), scorer.begin, np.int64)
    for step in range(int(lengths.max())):
        for complete in (False, True):
            rows = np.flatnonzero((lengths == step + 1) if complete else (lengths > step + 1))
            if len(rows):
                options = np.array([paths[number][step] for number in rows.tolist()], np.int64)
                gains = scorer.gains(Candidates(options, states[rows], complete))
                total[rows] += gains.values
                states[rows] = gains.states
    return total


def checked(feature: SearchFeature, values: Floats, rows: int) -> Floats:
    """Return a feature's values if they have shape (rows, K) and are finite, else raise ConfigError."""
    if np.shape(values) != (rows, feature.scores):
        raise ConfigError(
            f"{feature.name}: gives scores of shape {np.shape(values)}, expected {(rows, feature.scores)}"
        )
    if not np.isfinite(values).all():
        raise ConfigError(f"{feature.name}: gives a score that is not a finite number")
    return values
