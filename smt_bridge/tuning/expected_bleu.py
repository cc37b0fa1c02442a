"""Expected BLEU (Rosti et al. 2010; Och 2003): the weights give each hypothesis of a list a probability, and
the BLEU of the expected statistics is a smooth function of the weights, which its gradient maximizes.

s(x) is the score of hypothesis x, the weighted sum of its features; D is the number of features. Nothing is
random: the result depends on the lists alone, neither on a seed nor on a starting point.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nmt.config.settings import number
from smt_bridge.tuning.bleu import ORDER
from smt_bridge.tuning.pool import Floats, Ints, Pool, normalize
from smt_bridge.tuning.ranking import scale_lists
from smt_bridge.tuning.tuner import Progress, TuningPoint, silent

# ---- the objective -----------------------------------------------------------------------------------------


NO_MATCH = 1e-10  # added to matches, so that an order without any has a logarithm
SHARPNESS = 1000.0  # of the bend where hypotheses are as long as references, as in Rosti et al. 2010
Objective = Callable[[Floats], tuple[float, Floats]]  # weights (D,) -> value, gradient (D,)


def probabilities(scores: Floats, starts: Ints) -> Floats:
    """exp s(x) / Σ exp s(x') over the list of each hypothesis x: (N,), (S + 1,) -> (N,)"""
    sizes = np.diff(starts)
    exponentials = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts[:-1]), sizes))
    return np.asarray(exponentials / np.repeat(np.add.reduceat(exponentials, starts[:-1]), sizes))


def log_bleu(sums: Floats) -> tuple[float, Floats]:
    """The natural logarithm of BLEU from summed statistics (9,), and its gradient for these, (9,). The
    brevity penalty has a smooth bend instead of a corner."""
    matches, totals = sums[0 : 2 * ORDER : 2] + NO_MATCH, sums[1 : 2 * ORDER : 2] + NO_MATCH
    length, reference = sums[1], sums[-1]
    excess = SHARPNESS * (reference / length - 1)
    value = (np.log(matches) - np.log(totals)).mean() - np.logaddexp(0, excess) / SHARPNESS
    short = np.exp(-np.logaddexp(0, -excess))  # 1 where hypotheses are shorter than references, else 0
    gradient = np.zeros(len(sums))
    gradient[0 : 2 * ORDER : 2], gradient[1 : 2 * ORDER : 2] = 1 / (ORDER * matches), -1 / (ORDER * totals)
    gradient[1] += short * reference / length**2
    gradient[-1] = -short / length
    return float(value), gradient


def expected_log_bleu(features: Floats, stats: Floats, starts: Ints) -> Objective:
    """The logarithm of the BLEU of the statistics that are expected under `probabilities`, as a function of
    the weights. `features`: (N, D); `stats`: (N, 9); `starts`: (S + 1,)"""
    sizes = np.diff(starts)

    def objective(weights: Floats) -> tuple[float, Floats]:
        shares = probabilities(features @ weights, starts)
        value, slopes = log_bleu(shares @ stats)
        worth = shares * (stats @ slopes)
        surplus = worth - shares * np.repeat(np.add.reduceat(worth, starts[:-1]), sizes)
        return value, features.T @ surplus

    return objective


def regularize(objective: Objective, ridge: float) -> Objective:
    """ridge |w|² / 2 minus the objective: what is to be minimized."""

    def cost(weights: Floats) -> tuple[float, Floats]:
        value, gradient = objective(weights)
        return ridge * float(weights @ weights) / 2 - value, ridge * weights - gradient

    return cost


# ---- the minimum -------------------------------------------------------------------------------------------


ENOUGH = 1e-4  # share of the decrease that the gradient promises, for a step to be taken
SHORTEST = 1e-10  # as a share of the first step that is tried
FIRST = 0.1  # length of the first step


def quasi_newton(cost: Objective, start: Floats, steps: int, tolerance: float, progress: Progress) -> Floats:
    """Minimize a smooth cost from `start` (D,) by the method of Broyden, Fletcher, Goldfarb and Shanno
    (Nocedal and Wright 2006, algorithm 6.1), with steps halved until they gain. Ends after `steps` steps, or
    one that gains less than `tolerance`; returns the weights (D,)."""
    weights, inverse = start, np.zeros((0, 0))  # the inverse of the second derivatives, estimated
    value, gradient = cost(weights)
    for done in range(1, steps + 1):
        if inverse.size:
            direction = -inverse @ gradient
        else:
            direction = -FIRST * gradient / max(np.linalg.norm(gradient), np.finfo(float).tiny)
        rise, length = float(direction @ gradient), 1.0
        reached = weights + direction
        new_value, new_gradient = cost(reached)
        while not new_value <= value + ENOUGH * length * rise and length > SHORTEST:
            length /= 2
            reached = weights + length * direction
            new_value, new_gradient = cost(reached)
        progress(done, steps)
        if not value - new_value >= tolerance:
            return reached if new_value < value else weights
        inverse = update_inverse(inverse, reached - weights, new_gradient - gradient)
        weights, value, gradient = reached, new_value, new_gradient
    return weights


def update_inverse(inverse: Floats, step: Floats, change: Floats) -> Floats:
    """The inverse of second derivatives (D, D) that explains how the gradient changed along a step, close to
    `inverse`, which is empty before the first step. `step`: of the weights (D,); `change`: of the gradient
    (D,). A step along which the cost bends downwards changes nothing."""
    curvature = float(step @ change)
    if curvature <= SHORTEST * float(step @ step):
        return inverse
    size = len(step)
    if not inverse.size:
        inverse = np.eye(size) * curvature / (change @ change)
    shift = np.eye(size) - np.outer(step, change) / curvature
    return np.asarray(shift @ inverse @ shift.T + np.outer(step, step) / curvature)


# ---- the tuner ---------------------------------------------------------------------------------------------


TOLERANCE = 1e-7  # gain of a step, in the logarithm of BLEU, below which the search ends


@dataclass
class ExpectedBleu:
    """Expected BLEU with a penalty on the squares of the weights. It bounds the scale of the weights, and so
    how much each list's best hypothesis counts: with a small one they count alone, as in MERT."""

    penalty: float = number(1e-3, above=0, help="L2 regularization of xbleu, of weights of scaled features")
    steps: int = number(200, least=1, help="most steps of xbleu")

    def tune(
        self, pool: Pool, start: Floats | None, seed: int, progress: Progress = silent, **unused: object
    ) -> TuningPoint:
        """Maximize from zero weights, where all hypotheses of a list are alike; parameters as in
        `Tuner.tune`, of which only `pool` and `progress` are used."""
        lists, scale = scale_lists(pool)
        objective = expected_log_bleu(lists.features, pool.stats, pool.starts)
        zero = np.zeros(len(scale))
        weights = quasi_newton(regularize(objective, self.penalty), zero, self.steps, TOLERANCE, progress)
        weights = normalize(weights / scale)
        return TuningPoint(weights, pool.bleu(weights))
