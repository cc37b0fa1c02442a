"""A feature inside the phrase-based search, like Moses' FeatureFunction: columns of n-best lists with
weights.

`of_options` scores an option by itself, once a sentence. A stateful feature adds what depends on the words
before while the stacks are filled: it scores all candidates of a stack in one call, so that a network needs
one matrix product (van Merriënboer 2018, section 4.4.1).

O options of a sentence, K scores of the feature, N candidates. Scores are natural logarithms where they are
probabilities."""

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from typing import ClassVar, NamedTuple, Self

import numpy as np

from nmt.errors import ConfigError
from smt_bridge.decoder.arrays import Floats, Int32s, Int64s
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.moses.ini import FeatureLine


class SearchFeature(ABC):
    """A feature of the search, shared by several threads."""

    arguments: ClassVar[Set[str]]  # options of its line besides name=, num-features= and tuneable=
    scores: ClassVar[int]  # K
    needs_torch: ClassVar[bool] = False  # whether commands set up torch for it
    name: str

    @classmethod
    @abstractmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        """The feature of a line in [feature], whose path= is the file or folder that was found. ConfigError
        for one that cannot be used."""

    def of_options(self, sentence: Sentence) -> Floats:
        """Score of each option wherever it is used: (O, K). Like Moses' EvaluateWithSourceContext it is
        applied after the table limit."""
        return np.zeros((sentence.size, self.scores))


class StatefulFeature(SearchFeature):
    """A feature whose score depends on the words before; candidates are scored when their stack is
    complete."""

    stand_in: ClassVar[float]  # its score until then, as a multiple of the first language model's
    beam = 0  # candidates of a stack that it scores; 0: no limit of its own
    # Whether its gains in the search may differ from its values: hypotheses recombine although its states
    # differ, or the search takes an approximation. n-best lists then have the values of `of_derivations`, and
    # are sorted by the exact totals.
    lossy = False

    @abstractmethod
    def start(self, sentence: Sentence) -> "SentenceScorer":
        """Create the scorer of one sentence."""


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


class SentenceScorer(ABC):
    """A stateful feature's scorer for one sentence."""

    begin = 0  # the state before the first word

    @abstractmethod
    def gains(self, candidates: Candidates) -> Gains:
        """Score added by each candidate. Equal states and options must give equal gains."""

    def preview(self, candidates: Candidates) -> tuple[Floats, Floats] | None:
        """A cheap part of the candidates' scores, better than a stand-in where the feature has a
        beam of its own: the known part of the values (N, K), and the share of the stand-in that still
        represents the rest (N,). None: nothing."""
        return None

    def of_derivations(self, paths: Sequence[Int32s]) -> Floats:
        """Values for derivations, each of at least one phrase: (derivations, K). All are scored phrase by
        phrase in parallel, unless the scorer has a way of its own."""
        lengths, states = np.array([len(path) for path in paths]), np.full(len(paths), self.begin, np.int64)
        total = None
        for step in range(int(lengths.max())):
            for complete in (False, True):
                rows = np.flatnonzero((lengths == step + 1) if complete else (lengths > step + 1))
                if len(rows):
                    options = np.array([paths[number][step] for number in rows.tolist()], np.int64)
                    gains = self.gains(Candidates(options, states[rows], complete))
                    if total is None:
                        total = np.zeros((len(paths), np.shape(gains.values)[1]))
                    total[rows] += gains.values
                    states[rows] = gains.states
        assert total is not None
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
