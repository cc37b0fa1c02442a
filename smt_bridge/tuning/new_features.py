"""Weights to start from for features that were added to a tuned system: each is where it alone is best on
lists that were decoded without it."""

from collections.abc import Sequence

import numpy as np

from smt_bridge.tuning.mert import LineSearch
from smt_bridge.tuning.pool import Floats, Pool

LIMITS = 0.01, 1.0  # of a weight, where Σ |w| of the tuned system is 1: search with it, but not by it alone


def fit_alone(pool: Pool, weights: Floats, columns: Sequence[int]) -> Floats:
    """Find the weight of each new feature by a line search (Och 2003, section 5) along it alone, with the
    other new features at 0; with several new ones each gets its share, a weight divided by their number.

    `weights`: of the tuned system, (D,), with any value for the new features; `columns`: the indices of
    these. Returns all weights, (D,)."""
    search, tuned = LineSearch(pool), weights.copy()
    tuned[list(columns)] = 0.0
    values, fitted = search.values(tuned), tuned.copy()
    size = np.abs(tuned).sum() or 1.0
    low, high = (size * limit for limit in LIMITS)
    for column in columns:
        step, _ = search.best(values, np.eye(len(weights))[column], (low, high))
        fitted[column] = step / len(columns)
    return fitted
