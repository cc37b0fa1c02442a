"""Totals of n-best entries: weights x features, and what the decoder adds for unknown words."""

import math

from nmt.errors import ConfigError
from nmt.formats import nbest
from nmt.formats.nbest import Hypothesis
from smt_bridge.moses.weights import Weights, tuned

UNKNOWN_WORD = -100.0  # what Moses adds for each, with weight 1, and does not print (UnknownWordPenalty0)
CLOSE = 0.01  # printed totals have six digits


def beyond_features(hypothesis: Hypothesis, weights: Weights | None) -> float:
    """The part of a total for unknown words, where the entry comes from the decoder of these weights."""
    if weights and nbest.UNLABELED in hypothesis.features:
        raise ConfigError(
            f"sentence {hypothesis.sentence}: features without names, which --decoder-weights cannot check; "
            "let Moses write them (-labeled-n-best-list true)"
        )
    if weights and set(hypothesis.features) >= tuned(weights):
        return unknown_words(hypothesis, weights)
    return 0.0


def total(features: dict[str, list[float]], weights: Weights) -> float:
    """Σ weight x feature; a feature that a hypothesis lacks (a sparse one) counts 0."""
    return math.fsum(
        weight * value
        for name, values in features.items()
        for weight, value in zip(weights[name], values, strict=True)
    )


def unknown_words(hypothesis: Hypothesis, weights: Weights) -> float:
    """What the decoder's total has beyond the printed features: -100 for each unknown word.

    `weights` are those of the decoder. ConfigError when the rest is not a multiple of that: these are not its
    weights.
    """
    try:
        rest = hypothesis.total - total(
            {name: values for name, values in hypothesis.features.items() if name in weights}, weights
        )
    except ValueError as error:
        raise ConfigError(
            "the decoder's weights have another number of values than the list's features"
        ) from error
    count = round(rest / UNKNOWN_WORD)
    if abs(rest - count * UNKNOWN_WORD) > CLOSE or count < 0:
        raise ConfigError(
            f"sentence {hypothesis.sentence}: weights x features give {hypothesis.total - rest:.6g}, but the "
            f"list says {hypothesis.total:.6g}; "
            "these are not the weights that its decoder used"
        )
    return count * UNKNOWN_WORD


def check_weights(features: dict[str, list[float]], weights: Weights) -> None:
    """ConfigError when weights and features do not match."""
    for name, values in features.items():
        if name not in weights:
            raise ConfigError(
                f"no weight for feature {name}; tune with it (smt-tune-nbest), or write '{name}= "
                f"{'0 ' * len(values)}'"
            )
        if len(weights[name]) != len(values):
            raise ConfigError(f"feature {name} has {len(values)} values, but {len(weights[name])} weights")
    for name in sorted(tuned(weights)):
        if name not in features:
            raise ConfigError(f"a weight for {name}, which no list has and no --feature computes")
