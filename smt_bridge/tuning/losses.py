"""Losses of rankers: what it costs that the better of two hypotheses, or the best of a list, does not score
higher. Each returns its value and a gradient for the weights."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from smt_bridge.tuning.pool import Floats, Ints, first_of_highest

Loss = Callable[[Floats], tuple[float, Floats]]  # weights (D,) -> value, (sub)gradient (D,)


class LogLoss(NamedTuple):
    """A value with its first and second derivatives, (D,) and (D, D)."""

    value: float
    gradient: Floats
    curvature: Floats


def log_loss(weights: Floats, differences: Floats, shares: Floats) -> LogLoss:
    """Σ share · log(1 + exp(-(s(x) - s(x')))) over pairs. `differences`: features of the better hypothesis
    less those of the other, (N, D)."""
    leads = differences @ weights
    wrong = 1 / (1 + np.exp(np.clip(leads, -50, 50)))  # the probability of the wrong order
    gradient = -(differences.T @ (shares * wrong))
    curvature = (differences.T * (shares * wrong * (1 - wrong))) @ differences
    return LogLoss(float(shares @ np.logaddexp(0, -leads)), gradient, curvature)


def pairwise_hinge(differences: Floats, margins: Floats) -> Loss:
    """Mean of max(0, margin - (s(x) - s(x'))) over pairs; 0 without any."""
    pairs = max(1, len(margins))

    def loss(weights: Floats) -> tuple[float, Floats]:
        short = margins - differences @ weights
        late = short > 0
        return float(short[late].sum() / pairs), -differences[late].sum(0) / pairs

    return loss


def structured_hinge(features: Floats, starts: Ints, wanted: Ints, margins: Floats) -> Loss:
    """Mean over lists of max over y' of margin(y') + s(y') - s(y), where y is the wanted row of the list. The
    margin of y itself is 0, so that the loss is never negative. (N, D), (S + 1,), (S,), (N,)"""

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = features @ weights
        worst = first_of_highest(margins + scores, starts)
        value = (margins[worst] + scores[worst] - scores[wanted]).mean()
        return float(value), (features[worst] - features[wanted]).mean(0)

    return loss
