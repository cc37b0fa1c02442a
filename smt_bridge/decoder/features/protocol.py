"""Base classes for features of the phrase-based search, like Moses' FeatureFunction. A feature has one or
more scores, each with a weight and a column in n-best lists.

`of_options` scores each option on its own, once per sentence. A stateful feature also scores what depends on
the previous words while the stacks are filled: all candidates of a stack in one call, so that a network needs
only one matrix product (van Merriënboer 2018, section 4.4.1).

O: options of a sentence; K: scores of the feature; N: candidates. Probabilities are given as natural
logarithms."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from nmt.errors import ConfigError
from smt_bridge.decoder.arrays import Floats, Int32s, Int64s
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.moses.ini import FeatureLine

REMEMBERED = 1 << 18  # values in a RowCache, after which it is emptied
Value = TypeVar("Value")


class SearchFeature(ABC):
    """A feature of the search, shared by several threads."""

    arguments: ClassVar[Set[str]]  # allowed in its line besides name=, num-features= and tuneable=
    scores: int  # K
    needs_torch: ClassVar[bool] = False  # whether commands set up torch for it
    name: str

    @classmethod
    @abstractmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        """Load the feature of a line in [feature]; its path= has already been resolved. UserError for a
        feature that cannot be used."""

    @classmethod
    def load_cached(cls, line: FeatureLine, config: DecoderConfig, cache: Cache | None) -> Self:
        """Like `load`, for features that keep what they parse in the decoder's cache; None for none."""
        return cls.load(line, config)

    @classmethod
    def count_scores(cls, line: FeatureLine) -> int:
        """The number of scores that a feature has by its line, which num-features= has to give. ConfigError
        for an argument that is malformed."""
        return cls.scores

    def of_options(self, sentence: Sentence) -> Floats:
        """Context-free scores of each option: (O, K). As with Moses' EvaluateWithSourceContext, they do not
        affect which options the table limit keeps."""
        return np.zeros((sentence.size, self.scores))


class RowCache(Generic[Value]):
    """Values of a feature for rows of the phrase table, kept for later sentences. Threads may share it."""

    def __init__(self) -> None:
        self.values: dict[int, Value] = {}  # by row

    def get(self, sentence: Sentence, option: int, compute: Callable[[], Value]) -> Value:
        """The value of an option. `compute`: computes it for an option that is not in the table, or for a row
        that is not in the cache."""
        row = int(sentence.rows[option])
        if row in (values := self.values):  # extra options have negative rows
            return values[row]
        value = compute()
        if row >= 0:
            if len(values) >= REMEMBERED:
                values = self.values = {}
            values[row] = value
        return value


class LinkedPair(NamedTuple):
    """A phrase pair with its word alignment."""

    source: Sequence[str]
    target: Sequence[str]
    points: Sequence[tuple[int, int]]  # (source, target), counted from the start of each phrase


class SparseFeature(SearchFeature):
    """A feature of many named values that depend on a phrase pair alone, of which few differ from 0. Each
    value has a weight of its own, 0 if nothing gives one. The name of a value is that of the feature, `_`,
    and what `events` yields, as in Moses."""

    scores = 0  # that num-features= counts

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = RowCache[tuple[str, ...]]()  # names of values

    @abstractmethod
    def events(self, pair: LinkedPair) -> Iterator[str]:
        """Yield what makes a value 1 in a phrase pair; what comes n times makes it n."""

    def names(self, sentence: Sentence, option: int) -> tuple[str, ...]:
        """The names of the values of an option, each as often as its value says. An unknown word has no
        alignment, as in Moses."""

        def compute() -> tuple[str, ...]:
            extra = sentence.extra(option)
            points = [] if extra is not None and extra.unknown else sentence.points(option)
            pair = LinkedPair(sentence.source(option), sentence.target(option), points)
            return tuple(f"{self.name}_{event}" for event in self.events(pair))

        return self.rows.get(sentence, option, compute)


class SparseSum(SearchFeature):
    """The weighted sum of a sparse feature's values: one score, with weight 1."""

    arguments: ClassVar[Set[str]] = frozenset()
    scores = 1

    def __init__(self, feature: SparseFeature, weights: Mapping[str, float]) -> None:
        """`weights`: by name of the value."""
        self.name, self.feature, self.weights = feature.name, feature, weights
        self.rows = RowCache[float]()  # sums

    @classmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        """No line of an ini has this feature."""
        raise NotImplementedError

    def option_sum(self, sentence: Sentence, option: int) -> float:
        def compute() -> float:
            return sum(self.weights.get(name, 0.0) for name in self.feature.names(sentence, option))

        return self.rows.get(sentence, option, compute)

    def of_options(self, sentence: Sentence) -> Floats:
        """The sum of each option: (O, 1)"""
        if not self.weights:
            return np.zeros((sentence.size, 1))
        return np.array([[self.option_sum(sentence, option)] for option in range(sentence.size)])


class StatefulFeature(SearchFeature):
    """A feature whose scores depend on the previous words. It scores candidates of complete stacks."""

    stand_in: ClassVar[float]  # estimate of its score until then, as a multiple of the first LM's score
    beam = 0  # candidates of a stack that it scores; 0: no limit of its own
    # Whether its gains during the search may differ from its exact values, because hypotheses with different
    # states recombine or because the gains are approximations. n-best lists then contain the values of
    # `of_derivations`, and are sorted by the exact totals.
    lossy = False

    @abstractmethod
    def start(self, sentence: Sentence) -> "SentenceScorer":
        """Create the scorer of one sentence."""


class Candidates(NamedTuple):
    """Hypotheses of one stack, each extended by an option that is to be scored."""

    option: Int64s  # (N,) the option that is added
    state: Int64s  # (N,) the feature's state before it
    complete: bool  # whether all source words are translated, so that the end of the sentence is scored


class Gains(NamedTuple):
    """Contributions of a feature to the scores of candidates, and its states after them."""

    values: Floats  # (N, K)
    states: Int64s  # (N,) numbers chosen by the feature, such as word ids, hashes, or rows of its own memory
    keys: Int64s | None = None  # (N,) hypotheses recombine only if these are equal; default: the states

    @property
    def recombined(self) -> Int64s:
        """The recombination keys (N,): hypotheses recombine only if these are equal."""
        return self.states if self.keys is None else self.keys


class SentenceScorer(ABC):
    """A stateful feature's scorer for one sentence."""

    start_state = 0  # the state before the first word

    @abstractmethod
    def gains(self, candidates: Candidates) -> Gains:
        """Score what each candidate adds. Equal states and options must give equal gains."""

    def preview(self, candidates: Candidates) -> tuple[Floats, Floats] | None:
        """A cheap estimate of the candidates' scores that is better than the stand-in, for features with a
        beam of their own. Returns the part of the values that is known (N, K) and the share of the stand-in
        that still represents the rest (N,), or None if the feature has no such estimate."""
        return None

    def of_derivations(self, paths: Sequence[Int32s]) -> Floats:
        """Exact values for derivations, given by their options in target order, each of at least one:
        (derivations, K). By default this calls `gains` phrase by phrase, for all derivations in parallel."""
        lengths = np.array([len(path) for path in paths])
        states = np.full(len(paths), self.start_state, np.int64)
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


def check_gains(feature: SearchFeature, gains: object) -> Gains:
    """Return what the scorer of a feature has returned. ConfigError for anything but `Gains`."""
    if not isinstance(gains, Gains):
        raise ConfigError(f"{feature.name}: its gains returned {type(gains).__name__}, expected Gains")
    return gains


def check_values(feature: SearchFeature, values: Floats, rows: int) -> Floats:
    """Return the values of a feature. ConfigError unless they are finite and of shape (rows, K)."""
    if np.shape(values) != (rows, feature.scores):
        raise ConfigError(
            f"{feature.name}: gives scores of shape {np.shape(values)}, expected {(rows, feature.scores)}"
        )
    if not np.isfinite(values).all():
        raise ConfigError(f"{feature.name}: gives a score that is not a finite number")
    return values
