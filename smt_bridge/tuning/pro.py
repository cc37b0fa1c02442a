"""Pairwise ranked optimization (Hopkins and May 2011): a classifier that tells the better of two hypotheses
from the worse."""

from dataclasses import dataclass

import numpy as np

from smt_bridge.tuning.bleu import ORDER
from smt_bridge.tuning.mert import Point
from smt_bridge.tuning.pool import Floats, Pool, normalize


@dataclass
class ProConfig:
    samples: int = 5000  # pairs drawn a sentence
    kept: int = 50  # of them, those that differ most
    least: float = 0.05  # and by at least this much of sentence BLEU
    ridge: float = 1e-3  # of the logistic regression, for each pair


def pro(pool: Pool, seed: int, config: ProConfig | None = None) -> Point:
    """Weights of a logistic regression on differences of feature vectors; there is no start."""
    config = config or ProConfig()
    rng = np.random.default_rng(seed)
    free = ~pool.constant()
    gains = smoothed_bleu(pool.stats)
    differences = []
    for first, last in zip(pool.starts[:-1], pool.starts[1:], strict=True):
        one, other = rng.integers(first, last, config.samples), rng.integers(first, last, config.samples)
        gap = gains[one] - gains[other]
        order = np.argsort(-np.abs(gap), kind="stable")[: config.kept]
        order = order[np.abs(gap[order]) >= config.least]
        differences.append(
            (pool.features[one[order]] - pool.features[other[order]]) * np.sign(gap[order])[:, None]
        )
    weights = normalize(np.where(free, logistic(np.vstack(differences), config.ridge), 0.0))
    return Point(weights, pool.bleu(weights))


def smoothed_bleu(stats: Floats) -> Floats:
    """BLEU+1 of each row: one more match and total for orders above 1."""
    matches, totals = stats[:, 0 : 2 * ORDER : 2].copy(), stats[:, 1 : 2 * ORDER : 2].copy()
    matches[:, 1:] += 1
    totals[:, 1:] += 1
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(matches / totals).mean(1) + np.minimum(0.0, 1 - stats[:, -1] / stats[:, 1])
    return np.where(matches[:, 0] > 0, np.exp(logs), 0.0)


def logistic(rows: Floats, ridge: float, steps: int = 50) -> Floats:
    """argmin Σ log(1 + exp(-x w)) + ridge n |w|² / 2 by Newton's method; columns are scaled, so that the
    ridge treats all alike."""
    scale = np.sqrt((rows**2).mean(0))
    scale[scale == 0] = 1
    x = rows / scale
    weights = np.zeros(x.shape[1])
    for _ in range(steps):
        p = 1 / (1 + np.exp(np.clip(x @ weights, -50, 50)))
        gradient = ridge * len(x) * weights - x.T @ p
        step = np.linalg.solve((x.T * (p * (1 - p))) @ x + ridge * len(x) * np.eye(len(weights)), gradient)
        weights -= step
        if np.abs(step).max() < 1e-9:
            break
    return np.asarray(weights / scale)
