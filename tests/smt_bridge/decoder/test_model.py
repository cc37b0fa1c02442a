"""What hypotheses are scored by: whether compiled search can read it, and what stands in for features."""

import numpy as np

from smt_bridge.decoder.automaton import silent
from smt_bridge.decoder.features.protocol import StatefulFeature
from smt_bridge.decoder.model import SearchModel, WeightedFeature
from smt_bridge.decoder.word_lm import AnyWordLM, AutomatonLM


class Opaque(AutomatonLM):
    """A language model without arrays, as a binary one of KenLM."""

    def __init__(self) -> None:
        super().__init__(silent())
        self.automaton = None  # type: ignore[assignment]


class Feature:
    stand_in = 0.5


def model_of(*lms: AnyWordLM, weights: tuple[tuple[float, ...], ...] = ()) -> SearchModel:
    feature: StatefulFeature = Feature()  # type: ignore[assignment]
    stateful = [WeightedFeature(feature, np.array(row)) for row in weights]
    return SearchModel(word_lms=lms, lm_weights=np.ones(len(lms)), stateful=stateful, beam=0)


def test_one_unreadable_language_model_is_enough() -> None:
    one, other = AutomatonLM(silent()), Opaque()
    found = model_of(one, one).automata
    assert found is not None and len(found) == 2 and found[0] is one.automaton
    assert model_of(one, other).automata is None and model_of(other).automata is None


def test_the_first_language_model_stands_in() -> None:
    """By the first weight of each feature, added up."""
    lm = AutomatonLM(silent())
    assert model_of(lm).stand_in == 0
    assert model_of(lm, weights=((0.25, 9.0), (-0.5,))).stand_in == 0.5 * 0.25 + 0.5 * -0.5
