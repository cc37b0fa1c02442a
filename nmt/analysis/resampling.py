"""BLEU of many groups of sentences at once, and confidence intervals by bootstrap resampling (Koehn 2004)."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.buckets import Bucket
from nmt.metrics import BleuStatistics

SAMPLES = 1000  # resampled test sets
SEED = 1
LEVEL = 95  # per cent of the samples lie inside an interval
BLOCK = 1 << 22  # numbers drawn at a time

Floats = NDArray[np.float64]
Interval = tuple[float, float]  # lower and upper end


def bleu_of(sums: NDArray[np.generic], effective_order: bool = False) -> Floats:
    """sacreBLEU's BLEU, 0 to 100, with its smoothing `exp`, of sums of statistics (..., 10) as BleuStatistics
    keeps them. `effective_order`: as for single sentences, orders without n-grams do not count."""
    numbers = np.asarray(sums, np.float64)
    matches, totals, (length, reference) = (
        numbers[..., :4],
        numbers[..., 4:8],
        np.moveaxis(numbers[..., 8:], -1, 0),
    )
    there = totals > 0
    halved = np.cumsum((matches == 0) & there, -1)  # each order without matches counts half of the one before
    smoothed = np.where(matches > 0, matches, 0.5**halved) / np.maximum(totals, 1)
    logs = np.where(there, np.log(smoothed), 0.0 if effective_order else -np.inf).sum(-1)
    orders = np.maximum(there.sum(-1), 1) if effective_order else 4
    brevity = np.exp(np.minimum(0.0, 1 - reference / np.maximum(length, 1)))
    return np.where(matches.any(-1), 100 * brevity * np.exp(logs / orders), 0.0)


def resampled_sums(
    rows: NDArray[np.int64],
    groups: NDArray[np.int64],
    number: int,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Floats:
    """Statistics (sentences, K) added up by group (numbers from 0 to `number` - 1) in test sets of as many
    sentences, drawn with replacement: (samples, number, K).

    The same seed draws the same sentences for every system.
    """
    size = len(rows)
    found = np.empty((samples, number, rows.shape[1]))
    rng, block = np.random.default_rng(seed), max(1, BLOCK // max(1, size))
    members = [np.flatnonzero(groups == group) for group in range(number)]
    for start in range(0, samples, block):
        stop = min(samples, start + block)
        drawn = rng.integers(0, size, (stop - start, size))
        places = (drawn + size * np.arange(stop - start)[:, None]).ravel()
        times = np.bincount(places, minlength=(stop - start) * size).reshape(-1, size).astype(np.float64)
        for group, inside in enumerate(members):
            found[start:stop, group] = times[:, inside] @ rows[inside]
    return found


def interval_of(values: Floats) -> list[Interval]:
    """The middle 95% of the samples (samples, points), for each point."""
    low, high = np.percentile(values, [50 - LEVEL / 2, 50 + LEVEL / 2], axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def bucket_intervals(
    statistics: BleuStatistics, keys: Sequence[int], buckets: Sequence[Bucket], samples: int = SAMPLES
) -> list[Interval]:
    """The 95% interval of each bucket's BLEU; `keys` has a number for each sentence."""
    if not buckets:
        return []
    present, groups = np.unique(np.asarray(keys), return_inverse=True)
    sums = resampled_sums(statistics.rows, groups, len(present), samples).cumsum(1)
    upto = np.concatenate([np.zeros_like(sums[:, :1]), sums], 1)
    first = np.searchsorted(present, [bucket.first for bucket in buckets], "left")
    last = np.searchsorted(present, [bucket.last for bucket in buckets], "right")
    return interval_of(bleu_of(upto[:, last] - upto[:, first]))


def intervals(
    rows: NDArray[np.int64], score: Callable[[Floats], Floats], samples: int = SAMPLES
) -> list[Interval]:
    """The 95% interval of each score that `score` makes of sums of statistics: (samples, ...) in, (samples,
    points) out. `rows` (sentences, ...) has the statistics of each sentence."""
    size = len(rows)
    sums = resampled_sums(rows.reshape(size, -1), np.zeros(size, np.int64), 1, samples)
    return interval_of(score(sums.reshape(-1, *rows.shape[1:])))
