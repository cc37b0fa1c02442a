"""A feature inside the phrase-based search, as Moses' FeatureFunction: columns of n-best lists with weights.

A feature scores what it can by looking at an option alone (`of_options`: this costs the search nothing). What
depends on the words before, a stateful feature adds while the stacks are filled: it is asked once a stack,
for all candidates together, so that a network scores them in one product (van Merriënboer 2018, section
4.4.1).

O options of a sentence, K scores of the feature, N candidates. Scores are natural logarithms where they are
probabilities.
"""

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
        """An option that is true or false. ConfigError for another value."""
        try:
            return truth(self.options[key]) if key in self.options else default
        except ValueError as error:
            raise ConfigError(f"{self.where}: {key}={error}") from error

    def count(self, key: str, default: int = 0) -> int:
        """An option that is a number of 0 or more. ConfigError for another value."""
        try:
            return count(self.options[key]) if key in self.options else default
        except ValueError as error:
            raise ConfigError(f"{self.where}: {key}={error}, expected 0 or more") from error


class SearchFeature(Protocol):
    """A feature of the search. Several threads share it. Commands set up torch for a class that says
    `needs_torch = True`."""

    arguments: ClassVar[Set[str]]  # options of its line besides name=, num-features= and tuneable=
    scores: ClassVar[int]  # K
    name: str

    @classmethod
    def load(cls, line: SearchFeatureLine, config: DecoderConfig) -> Self:
        """The feature of a line. ConfigError for one that cannot be used."""
        ...

    def of_options(self, sentence: Sentence) -> Floats:
        """What each option adds wherever it is used: (O, K). Like Moses' EvaluateWithSourceContext it comes
        after the table limit."""
        ...


class StatefulFeature(SearchFeature, Protocol):
    """A feature whose score depends on the words before; these are scored when a stack is complete."""

    stand_in: ClassVar[float]  # its score until then, as a multiple of the first language model's

    def start(self, sentence: Sentence) -> "Scorer":
        """What scores the hypotheses of one sentence."""
        ...


class LossyFeature(StatefulFeature, Protocol):
    """A feature whose gains in the search are not always its values: hypotheses may recombine although its
    states differ, or the search takes an approximation. The values of n-best lists are those of
    `of_derivations`; totals follow them, and the lists are sorted by these."""

    lossy: bool  # false: it is exact as this line of the ini sets it up


class CostlyFeature(StatefulFeature, Protocol):
    """A feature that scores fewer candidates than the others, and after them."""

    beam: int  # the best ones of a stack by all that is known of them then; 0: no limit of its own


class Candidates(NamedTuple):
    """Hypotheses extended by an option, all of one stack."""

    option: Int64s  # (N,) the option that is added
    state: Int64s  # (N,) the feature's state before it
    complete: bool  # is every source word translated? Then the end of the sentence is scored too


class Gains(NamedTuple):
    """What candidates gain by a feature, and its states after them."""

    values: Floats  # (N, K)
    states: Int64s  # (N,) numbers the feature gives, such as a word id, a hash, or a row of its own memory
    keys: Int64s | None = None  # (N,) what hypotheses must share to be recombined; without it the states

    @property
    def recombined(self) -> Int64s:
        return self.states if self.keys is None else self.keys


class Scorer(Protocol):
    """A stateful feature at work on one sentence."""

    begin: int  # the state before the first word

    def gains(self, candidates: Candidates) -> Gains:
        """What each candidate adds to the score. Equal states and options must give equal gains."""
        ...


class DerivationScorer(Scorer, Protocol):
    """A scorer with a way of its own to score whole derivations."""

    def of_derivations(self, paths: Sequence[Int32s]) -> Floats:
        """The values of derivations, given by their options in target order: (derivations, K)"""
        ...


class PreviewScorer(Scorer, Protocol):
    """A scorer that knows something of a candidate at little cost: better than a stand-in where its feature
    has a beam of its own."""

    def preview(self, candidates: Candidates) -> tuple[Floats, Floats]:
        """The part of the values that is known (N, K), and which share of the stand-in goes on speaking for
        the rest (N,)."""
        ...


def is_stateful(feature: SearchFeature) -> TypeGuard[StatefulFeature]:
    """Does a feature look at the words before?"""
    return hasattr(feature, "start")


def is_lossy(feature: SearchFeature) -> TypeGuard[LossyFeature]:
    return bool(getattr(feature, "lossy", False))


def beam_of(feature: SearchFeature) -> int:
    """How many candidates of a stack a feature scores; 0: no limit of its own."""
    return int(getattr(feature, "beam", 0))


def can_preview(scorer: Scorer) -> TypeGuard[PreviewScorer]:
    return hasattr(scorer, "preview")


def scores_derivations(scorer: Scorer) -> TypeGuard[DerivationScorer]:
    return hasattr(scorer, "of_derivations")


def of_derivations(scorer: Scorer, paths: Sequence[Int32s], scores: int) -> Floats:
    """The values of a stateful feature for derivations: (derivations, K). All are scored phrase by phrase in
    parallel, unless the scorer has a way of its own."""
    if scores_derivations(scorer):
        return scorer.of_derivations(paths)
    total, lengths = np.zeros((len(paths), scores)), np.array([len(path) for path in paths])
    states = np.full(len(paths), scorer.begin, np.int64)
    for step in range(int(lengths.max())):
        for complete in (False, True):
            there = np.flatnonzero((lengths == step + 1) if complete else (lengths > step + 1))
            if len(there):
                options = np.array([paths[number][step] for number in there.tolist()], np.int64)
                found = scorer.gains(Candidates(options, states[there], complete))
                total[there] += found.values
                states[there] = found.states
    return total


def checked(feature: SearchFeature, values: Floats, rows: int) -> Floats:
    """Values of a feature, (rows, K). ConfigError for others."""
    if np.shape(values) != (rows, feature.scores):
        raise ConfigError(
            f"{feature.name}: gives scores of shape {np.shape(values)}, expected {(rows, feature.scores)}"
        )
    if not np.isfinite(values).all():
        raise ConfigError(f"{feature.name}: gives a score that is not a finite number")
    return values
