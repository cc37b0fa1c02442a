"""The scoring model of a search, shared by compiled and plain search."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from smt_bridge.decoder.arrays import Floats, OptionArrays, SearchParameters
from smt_bridge.decoder.automaton import Automaton
from smt_bridge.decoder.features.protocol import SearchFeature, SentenceScorer, StatefulFeature, beam_of
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.word_lm import AnyWordLM

F = TypeVar("F", bound=SearchFeature)


@dataclass(frozen=True)
class WeightedFeature(Generic[F]):
    """A feature and its weights (K,)."""

    feature: F
    weights: Floats


@dataclass(frozen=True)
class SearchModel:
    """Language models and stateful features with their weights: everything that depends on the words before.
    Features with weight 0 are left out."""

    word_lms: Sequence[AnyWordLM]
    lm_weights: Floats  # (L,)
    stateful: Sequence[WeightedFeature[StatefulFeature]]
    beam: int  # candidates of a stack that stateful features score; 0: all

    @property
    def automata(self) -> tuple[Automaton, ...] | None:
        """The language models as compiled search reads them; None if one of them is not an automaton."""
        found = tuple(lm.automaton for lm in self.word_lms if lm.automaton is not None)
        return found if len(found) == len(self.word_lms) else None

    @property
    def stand_in(self) -> float:
        """Additional weight of the first language model for stateful features that have not scored yet."""
        return sum(map(self.stand_in_of, range(len(self.stateful))))

    def stand_in_of(self, number: int) -> float:
        """Share of one stateful feature in `stand_in`."""
        one = self.stateful[number]
        return float(one.feature.stand_in * one.weights[0])

    @cached_property
    def order(self) -> list[int]:
        """Indices of the stateful features in the order of scoring: the wider the beam, the sooner."""
        beams = [beam_of(one.feature) or math.inf for one in self.stateful]
        return sorted(range(len(beams)), key=lambda number: -beams[number])


@dataclass(frozen=True)
class SearchTask:
    """A sentence prepared for the search."""

    sentence: Sentence
    options: OptionArrays
    parameters: SearchParameters
    model: SearchModel
    scorers: Sequence[SentenceScorer]  # of model.stateful, in this order
