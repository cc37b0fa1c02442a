"""What hypotheses are scored by: the value that compiled and plain search both get."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from smt_bridge.decoder.arrays import Floats, Options, SearchParameters
from smt_bridge.decoder.automaton import Automaton
from smt_bridge.decoder.features.protocol import Scorer, SearchFeature, StatefulFeature, beam_of
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.word_lm import AnyWordLM

F = TypeVar("F", bound=SearchFeature)


@dataclass(frozen=True)
class Weighted(Generic[F]):
    """A feature and its weights (K,)."""

    feature: F
    weights: Floats


@dataclass(frozen=True)
class SearchModel:
    """What depends on the words before: language models and stateful features, with their weights; of these
    only features with a weight that is not 0."""

    word_lms: Sequence[AnyWordLM]
    lm_weights: Floats  # (L,)
    stateful: Sequence[Weighted[StatefulFeature]]
    beam: int  # candidates of a stack that stateful features score; 0: all

    @property
    def automata(self) -> tuple[Automaton, ...] | None:
        """The language models as compiled search reads them; None where one of them cannot be."""
        found = tuple(lm.automaton for lm in self.word_lms if lm.automaton is not None)
        return found if len(found) == len(self.word_lms) else None

    @property
    def stand_in(self) -> float:
        """The additional weight of the first language model where stateful features have not scored yet."""
        return sum(map(self.stand_in_of, range(len(self.stateful))))

    def stand_in_of(self, number: int) -> float:
        """The part of one stateful feature in it."""
        one = self.stateful[number]
        return float(one.feature.stand_in * one.weights[0])

    @cached_property
    def order(self) -> list[int]:
        """The stateful features in the order in which they score: the more candidates, the sooner."""
        beams = [beam_of(one.feature) or math.inf for one in self.stateful]
        return sorted(range(len(beams)), key=lambda number: -beams[number])


@dataclass(frozen=True)
class Task:
    """A sentence to be searched."""

    sentence: Sentence
    options: Options
    parameters: SearchParameters
    model: SearchModel
    scorers: Sequence[Scorer]  # of the stateful features, for this sentence
