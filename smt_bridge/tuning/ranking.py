"""Tuners that rank hypotheses: pairwise ranked optimization (Hopkins and May 2011), in which a classifier
learns which of two hypotheses is better, and rankers with a margin loss or a logistic loss.

s(x) is the score of hypothesis x, the weighted sum of its features; D is the number of features.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nmt.config.settings import choice, number
from smt_bridge.tuning.bleu import COLUMNS, ORDER
from smt_bridge.tuning.kbmira import sentence_bleu
from smt_bridge.tuning.pool import Floats, Ints, Pool, first_of_highest, normalize
from smt_bridge.tuning.tuner import Progress, TuningPoint, silent

# ---- losses ------------------------------------------------------------------------------------------------
# Losses of weights that do not score the better of two hypotheses, or the best of a list, highest. Each
# returns its value and a gradient for the weights.


Loss = Callable[[Floats], tuple[float, Floats]]  # weights (D,) -> value, (sub)gradient (D,)


class LogLoss(NamedTuple):
    """A loss, its gradient (D,), and its curvature, the second derivatives (D, D)."""

    value: float
    gradient: Floats
    curvature: Floats


def log_loss(weights: Floats, differences: Floats, shares: Floats) -> LogLoss:
    """Σ share · log(1 + exp(-(s(x) - s(x')))) over pairs. `differences`: features of the better hypothesis x
    minus those of the other x', (N, D); `shares`: weight of each pair in the sum, (N,)."""
    leads = differences @ weights
    wrong = 1 / (1 + np.exp(np.clip(leads, -50, 50)))  # the probability of the wrong order
    gradient = -(differences.T @ (shares * wrong))
    curvature = (differences.T * (shares * wrong * (1 - wrong))) @ differences
    return LogLoss(float(shares @ np.logaddexp(0, -leads)), gradient, curvature)


def pairwise_hinge(differences: Floats, margins: Floats) -> Loss:
    """The loss that is the mean of max(0, margin - (s(x) - s(x'))) over pairs; 0 if there are none.
    `differences`: features of the better one x minus those of x', (N, D); `margins`: (N,)."""
    pairs = max(1, len(margins))

    def loss(weights: Floats) -> tuple[float, Floats]:
        short = margins - differences @ weights
        late = short > 0
        return float(short[late].sum() / pairs), -differences[late].sum(0) / pairs

    return loss


def structured_hinge(features: Floats, starts: Ints, wanted: Ints, margins: Floats) -> Loss:
    """The loss that is the mean over lists of max over y' of margin(y') + s(y') - s(y), where y is the wanted
    row of the list. The margin of y itself is 0, so that the loss is never negative. `features`: (N, D);
    `starts`: offsets of the lists (S + 1,); `wanted`: row of y for each list (S,); `margins`: (N,)."""

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = features @ weights
        worst = first_of_highest(margins + scores, starts)
        value = (margins[worst] + scores[worst] - scores[wanted]).mean()
        return float(value), (features[worst] - features[wanted]).mean(0)

    return loss


# ---- pairwise ranked optimization --------------------------------------------------------------------------


@dataclass
class Pro:
    """Pairwise ranked optimization: weights from a logistic regression on differences of feature vectors. No
    starting point is needed."""

    samples: int = number(5000, least=1, help="pairs that pro draws for each sentence")
    kept: int = number(50, least=1, help="pairs that pro keeps of them: those whose BLEU differs most")
    min_difference: float = number(
        0.05, least=0, help="sentence BLEU by which a pair kept by pro must differ"
    )
    ridge: float = number(1e-3, above=0, help="L2 regularization of pro and logistic, for each pair")

    def tune(self, pool: Pool, start: Floats | None, seed: int, **unused: object) -> TuningPoint:
        """Fit the regression on sampled pairs. As `Tuner.tune`, which uses only `pool` and `seed` here."""
        rng = np.random.default_rng(seed)
        free = ~pool.constant()
        gains = smoothed_bleu(pool.stats)
        differences = []
        for first, last in pairwise(pool.starts):
            left, right = rng.integers(first, last, self.samples), rng.integers(first, last, self.samples)
            gap = gains[left] - gains[right]
            order = np.argsort(-np.abs(gap), kind="stable")[: self.kept]
            order = order[np.abs(gap[order]) >= self.min_difference]
            differences.append(
                (pool.features[left[order]] - pool.features[right[order]]) * np.sign(gap[order])[:, None]
            )
        weights = normalize(np.where(free, logistic(np.vstack(differences), self.ridge), 0.0))
        return TuningPoint(weights, pool.bleu(weights))


def smoothed_bleu(stats: Floats) -> Floats:
    """BLEU+1, 0 to 1, of each row of statistics: (N, 9) -> (N,) (Lin and Och 2004). Matches and totals of
    orders above 1 are increased by one."""
    matches, totals = stats[:, 0 : 2 * ORDER : 2].copy(), stats[:, 1 : 2 * ORDER : 2].copy()
    matches[:, 1:] += 1
    totals[:, 1:] += 1
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(matches / totals).mean(1) + np.minimum(0.0, 1 - stats[:, -1] / stats[:, 1])
    return np.where(matches[:, 0] > 0, np.exp(logs), 0.0)


NEWTON_STEPS = 50  # at most


def logistic(rows: Floats, ridge: float, shares: Floats | None = None) -> Floats:
    """Minimize Σ share · log(1 + exp(-x w)) + ridge n |w|² / 2 over the rows x (N, D) by Newton's method,
    where n is the sum of the shares (N,), by default 1 each; returns w (D,).
    Columns are scaled first, so that the ridge treats them alike. All 0 without any rows."""
    if not len(rows):
        return np.zeros(rows.shape[1])
    scale = np.sqrt((rows**2).mean(0))
    scale[scale == 0] = 1
    x, shares = rows / scale, np.ones(len(rows)) if shares is None else shares
    pull = ridge * shares.sum()
    weights = np.zeros(x.shape[1])
    for _ in range(NEWTON_STEPS):
        loss = log_loss(weights, x, shares)
        gradient = pull * weights + loss.gradient
        step = np.linalg.solve(loss.curvature + pull * np.eye(len(weights)), gradient)
        weights -= step
        if np.abs(step).max() < 1e-9:
            break
    return np.asarray(weights / scale)


# ---- the bundle method -------------------------------------------------------------------------------------
# The minimum of a convex loss that has corners, with a certificate (Teo et al. 2010).
#
# The loss is bounded from below by the tangents of all points seen so far. The next point is the minimum of
# that bound and the regularization; the difference between the least value seen and the bound is the largest
# error.


def bundle_minimum(loss: Loss, size: int, ridge: float, tolerance: float, steps: int = 150) -> Floats:
    """Minimize loss(w) + ridge |w|² / 2 for a convex loss that is never negative, from w = 0: returns w,
    (size,).

    Ends when the smallest value so far is above the minimum by at most `tolerance` times that value, or after
    `steps` tangents; returns the best point visited.
    """
    slopes, heights, shares = np.zeros((0, size)), np.zeros(0), np.zeros(0)
    weights = best = np.zeros(size)
    lowest = np.inf
    for step in range(steps):
        value, slope = loss(weights)
        penalty = ridge * float(weights @ weights) / 2
        if value + penalty < lowest:
            best, lowest = weights, value + penalty
        if step and lowest - ((slopes @ weights + heights).max() + penalty) <= tolerance * lowest:
            break
        slopes = np.vstack([slopes, slope])
        heights = np.append(heights, value - slope @ weights)
        shares = mix_tangents(slopes, heights, ridge, np.append(shares, 0.0 if step else 1.0))
        weights = -(slopes.T @ shares) / ridge
    return best


MOST_MOVES = 2000  # of shares between tangents


def mix_tangents(slopes: Floats, heights: Floats, ridge: float, shares: Floats) -> Floats:
    """Find the shares (T,) of T tangents at the minimum of their maximum plus ridge |w|² / 2. Shares are not
    negative and sum to 1; they maximize shares·heights - |slopesᵀ shares|² / (2 ridge). Each step moves a
    share from the worst tangent that has any to the best one. `slopes`: (T, size); `heights`: (T,); `shares`:
    where to start, changed in place."""
    products = slopes @ slopes.T / ridge
    gains = heights - products @ shares
    for _ in range(MOST_MOVES):
        to, origin = int(gains.argmax()), int(np.where(shares > 0, gains, np.inf).argmin())
        rise = gains[to] - gains[origin]
        bend = products[to, to] + products[origin, origin] - 2 * products[to, origin]
        if rise <= 1e-10 or bend <= 0:
            break
        move = min(shares[origin], rise / bend)
        shares[to] += move
        shares[origin] -= move
        gains -= move * (products[:, to] - products[:, origin])
    return shares


# ---- rankers -----------------------------------------------------------------------------------------------
# Rankers: weights that put the hypotheses of a list in the order of their sentence BLEU, by a margin loss or
# a logistic one.
#
# Only the hypotheses near the top of a list can become its best. So both rank in rounds, and the weights of a
# round decide what the next one compares. The result is the round with the best BLEU on the pool. Each round
# is a convex problem with one solution, so there is no starting point.


@dataclass
class Ranker:
    """Base class of margin and logistic: the rounds, and the pairs that each round compares."""

    rounds: int = number(8, least=1, help="rounds in which margin and logistic choose the pairs to compare")
    pairs: int = number(20, least=1, help="pairs that margin and logistic draw for each sentence and round")
    top: int = number(
        3, least=2, help="entries of each list, by score, that pairs are drawn from after round 1"
    )

    def tune(
        self, pool: Pool, start: Floats | None, seed: int, progress: Progress = silent, **unused: object
    ) -> TuningPoint:
        """Rank in rounds, and return the result of the round with the best BLEU on the pool; parameters as in
        `Tuner.tune`, of which `start`, `others` and `threads` are not used."""
        rng = np.random.default_rng(seed)
        lists, scale = scale_lists(pool)
        best = TuningPoint(np.zeros(len(scale)), -1.0)
        weights = None
        for done in range(1, self.rounds + 1):
            weights = self.rank(lists, weights, rng)
            score = pool.bleu(weights / scale)
            if score > best.bleu:
                best = TuningPoint(normalize(weights / scale), score)
            progress(done, self.rounds)
        return best

    def rank(self, lists: "ScaledLists", previous: Floats | None, rng: np.random.Generator) -> Floats:
        """New weights of the scaled features from those of the previous round, None in the first: (D,)"""
        raise NotImplementedError


@dataclass
class Margin(Ranker):
    """Hinge loss. structured: the hope (the entry with the highest sum of score and BLEU) should lead each
    other entry of its list by at least their difference in BLEU. pairs: the better entry of each pair should
    lead the other one likewise."""

    hinge: str = choice("structured", "pairs", help="margin: one entry against its whole list, or pairs")
    regularization: float = number(0.1, above=0, help="L2 regularization of margin")
    tolerance: float = number(
        0.01, above=0, below=1, help="margin: stop within this fraction of the minimum of its cost"
    )

    def rank(self, lists: "ScaledLists", previous: Floats | None, rng: np.random.Generator) -> Floats:
        """Minimize the regularized hinge loss by the bundle method; returns weights as in `Ranker.rank`."""
        if self.hinge == "pairs":
            pairs = lists.draw(previous, self.pairs, self.top, rng)
            loss = pairwise_hinge(lists.differences(pairs), pairs.gaps)
        else:
            hopes = first_of_highest(lists.gains + lists.scores(previous), lists.starts)
            margins = lists.repeat(lists.gains[hopes]) - lists.gains
            loss = structured_hinge(lists.features, lists.starts, hopes, margins)
        return bundle_minimum(loss, lists.features.shape[1], self.regularization, self.tolerance)


@dataclass
class Logistic(Ranker):
    """Logistic loss on pairs, each weighted by its difference in BLEU."""

    ridge: float = number(1e-3, above=0, help="L2 regularization of pro and logistic, for each pair")

    def rank(self, lists: "ScaledLists", previous: Floats | None, rng: np.random.Generator) -> Floats:
        """Fit the logistic loss by Newton's method; returns weights as in `Ranker.rank`."""
        pairs = lists.draw(previous, self.pairs, self.top, rng)
        return logistic(lists.differences(pairs), self.ridge, pairs.gaps)


class Pairs(NamedTuple):
    """Pairs of entries of one list each, as rows of the pool; the first has the higher BLEU."""

    better: Ints  # (N,)
    worse: Ints  # (N,)
    gaps: Floats  # (N,) differences in gain, above 0


@dataclass
class ScaledLists:
    """The lists of a pool with scaled features and gains, so that results do not depend on their units."""

    features: Floats  # (N, D), centered in each list, with the root mean square 1; 0 if constant in all lists
    gains: Floats  # (N,), sentence BLEU, scaled: an entry is 1 below the best of its list on average
    starts: Ints  # (S + 1,)

    def repeat(self, values: Floats) -> Floats:
        """Repeat the value of each list for all its entries: (S,) -> (N,)"""
        return np.repeat(values, np.diff(self.starts))

    def scores(self, weights: Floats | None) -> Floats:
        """Score of each entry, (N,); all equal if `weights` is None."""
        return np.zeros(len(self.features)) if weights is None else self.features @ weights

    def differences(self, pairs: Pairs) -> Floats:
        """Scaled features of the better entries minus those of the worse: (N, D)"""
        return self.features[pairs.better] - self.features[pairs.worse]

    def draw(self, weights: Floats | None, count: int, top: int, rng: np.random.Generator) -> Pairs:
        """Draw `count` random pairs from each list, among the entries with the `top` highest scores under
        `weights`, or among all entries if `weights` is None; pairs of equal BLEU are left out."""
        sizes = np.diff(self.starts)
        order = np.arange(len(self.features))
        if weights is not None:
            order = np.lexsort((-self.scores(weights), np.repeat(np.arange(len(sizes)), sizes)))
            sizes = np.minimum(sizes, top)
        first, second = order[self.starts[:-1] + rng.integers(0, sizes, (2, count, len(sizes)))].reshape(
            2, -1
        )
        gaps = self.gains[first] - self.gains[second]
        first, second = np.where(gaps > 0, first, second), np.where(gaps > 0, second, first)
        unequal = gaps != 0
        return Pairs(first[unequal], second[unequal], np.abs(gaps[unequal]))


def scale_lists(pool: Pool) -> tuple[ScaledLists, Floats]:
    """Scale the lists of a pool; also returns the divisors of the features, (D,)."""
    starts, sizes = pool.starts[:-1], np.diff(pool.starts)
    means = np.add.reduceat(pool.features, starts) / sizes[:, None]
    features = np.where(pool.constant(), 0.0, pool.features - np.repeat(means, sizes, 0))
    scale = np.sqrt((features**2).mean(0))
    scale[scale == 0] = 1
    gains = sentence_bleu(pool.stats, np.ones(COLUMNS))
    regret = (np.repeat(np.maximum.reduceat(gains, starts), sizes) - gains).mean()
    return ScaledLists(features / scale, gains / (regret or 1.0), pool.starts), scale
