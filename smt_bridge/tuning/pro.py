"""Pairwise ranked optimization (Hopkins and May 2011): a classifier learns which of two hypotheses is the
better one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nmt.settings import number
from smt_bridge.tuning.bleu import ORDER
from smt_bridge.tuning.losses import log_loss
from smt_bridge.tuning.pool import Floats, Pool, normalize
from smt_bridge.tuning.tuner import Point, Progress, silent


@dataclass
class Pro:
    """The weights of a logistic regression on differences of feature vectors; there is no starting point."""

    samples: int = number(5000, least=1, help="pairs that pro draws for each sentence")
    kept: int = number(50, least=1, help="pairs that pro keeps of them: those whose BLEU differs most")
    min_difference: float = number(
        0.05, least=0, help="sentence BLEU by which a pair kept by pro must differ"
    )
    ridge: float = number(1e-3, above=0, help="L2 regularization of pro and logistic, for each pair")

    def tune(
        self,
        pool: Pool,
        start: Floats | None,
        seed: int,
        *,
        others: Sequence[Floats] = (),
        threads: int = 1,
        progress: Progress = silent,
    ) -> Point:
        """See Tuner."""
        rng = np.random.default_rng(seed)
        free = ~pool.constant()
        gains = smoothed_bleu(pool.stats)
        differences = []
        for first, last in zip(pool.starts[:-1], pool.starts[1:], strict=True):
            one, other = rng.integers(first, last, self.samples), rng.integers(first, last, self.samples)
            gap = gains[one] - gains[other]
            order = np.argsort(-np.abs(gap), kind="stable")[: self.kept]
            order = order[np.abs(gap[order]) >= self.min_difference]
            differences.append(
                (pool.features[one[order]] - pool.features[other[order]]) * np.sign(gap[order])[:, None]
            )
        weights = normalize(np.where(free, logistic(np.vstack(differences), self.ridge), 0.0))
        return Point(weights, pool.bleu(weights))


def smoothed_bleu(stats: Floats) -> Floats:
    """BLEU+1 of each row (Lin and Och 2004): one is added to matches and totals of orders above 1."""
    matches, totals = stats[:, 0 : 2 * ORDER : 2].copy(), stats[:, 1 : 2 * ORDER : 2].copy()
    matches[:, 1:] += 1
    totals[:, 1:] += 1
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(matches / totals).mean(1) + np.minimum(0.0, 1 - stats[:, -1] / stats[:, 1])
    return np.where(matches[:, 0] > 0, np.exp(logs), 0.0)


def logistic(rows: Floats, ridge: float, shares: Floats | None = None, steps: int = 50) -> Floats:
    """argmin Σ share · log(1 + exp(-x w)) + ridge n |w|² / 2 by Newton's method, where n is the sum of the
    shares; each is 1 unless given. Columns are scaled first, so that the ridge treats them alike. 0 without
    any rows."""
    if not len(rows):
        return np.zeros(rows.shape[1])
    scale = np.sqrt((rows**2).mean(0))
    scale[scale == 0] = 1
    x, shares = rows / scale, np.ones(len(rows)) if shares is None else shares
    pull = ridge * shares.sum()
    weights = np.zeros(x.shape[1])
    for _ in range(steps):
        loss = log_loss(weights, x, shares)
        gradient = pull * weights + loss.gradient
        step = np.linalg.solve(loss.curvature + pull * np.eye(len(weights)), gradient)
        weights -= step
        if np.abs(step).max() < 1e-9:
            break
    return np.asarray(weights / scale)
