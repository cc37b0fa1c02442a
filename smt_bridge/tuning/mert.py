"""Minimum error rate training (Och 2003): exact line search for corpus BLEU along many directions, from many
starting points.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import HAVE_NUMBA, njit, njit_ieee
from nmt.config.settings import number
from smt_bridge.tuning.bleu import bleu
from smt_bridge.tuning.pool import Floats, Ints, Pool, normalize
from smt_bridge.tuning.tuner import Progress, TuningPoint, silent

# ---- line search -------------------------------------------------------------------------------------------
# Along a direction, the score of each hypothesis is a linear function of the step. The best hypotheses of a
# sentence form the upper envelope of these lines, and corpus BLEU changes only where an envelope bends.
# `trace` walks along the envelope of one sentence after the other, compiled; `envelope` along all at once,
# with NumPy, where numba is missing. Both find the same bends.


NARROW = 1e-9  # steps are not placed between bends that are closer than this: rounding would decide
LANES = 4  # minima, a to d, that `trace` keeps side by side, so that no comparison waits for the one before
Bends = tuple[Ints, Ints, Ints, Floats]  # see `envelope`


class LineSearch:
    """Line search along directions in a pool of N hypotheses with D features. Threads may share one."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.columns = np.asfortranarray(pool.features)  # column by column, as features are read

    def values(self, weights: Floats) -> Floats:
        """The score of each hypothesis: (D,) -> (N,)"""
        return np.asarray(self.columns @ weights)

    def slopes(self, direction: Floats) -> Floats:
        """Change of each hypothesis's score per step along `direction` (D,): (N,)"""
        column = np.flatnonzero(direction)
        if len(column) == 1:
            return np.asarray(self.columns[:, column[0]] * direction[column[0]])
        return self.values(direction)

    def best(
        self, values: Floats, direction: Floats, limits: tuple[float, float] | None = None
    ) -> tuple[float, float]:
        """The step along `direction` (D,) with the highest corpus BLEU, and this BLEU. `values`: scores at
        step 0, (N,); `limits`: the smallest and the largest step allowed; None for any."""
        pool = self.pool
        find, add = (trace_envelope, sum_bends) if HAVE_NUMBA else (envelope, cumulative_statistics)
        first, rows_before, rows_after, steps = find(values, self.slopes(direction), pool.starts)
        order = np.argsort(steps, kind="stable")
        steps = steps[order]
        sums = add(pool.stats, first, rows_before[order], rows_after[order])
        scores = bleu(sums)  # before the first bend, after it, ...
        if not len(steps):
            return 0.0 if limits is None else float(np.clip(0.0, *limits)), float(scores[0])
        low, high = (steps[0] - 1.0, steps[-1] + 1.0) if limits is None else limits
        ends = np.concatenate([[low], np.clip(steps, low, high), [high]])
        scores[ends[1:] - ends[:-1] < NARROW] = -1
        best = int(np.argmax(scores))
        return float((ends[best] + ends[best + 1]) / 2), float(scores[best])


# ---- the envelopes of all sentences, compiled --------------------------------------------------------------


def trace_envelope(values: Floats, slopes: Floats, starts: Ints) -> Bends:
    """Upper envelopes in the format of `envelope`, with the bends of each sentence in order of step."""
    count, longest = len(values), int(np.diff(starts).max())
    first = np.empty(len(starts) - 1, np.int64)
    rows_before, rows_after, steps = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count)
    bends = trace(values, slopes, starts, np.empty(longest), first, rows_before, rows_after, steps)
    return first, rows_before[:bends], rows_after[:bends], steps[:bends]


@njit_ieee
def trace(
    values: Floats,
    slopes: Floats,
    starts: Ints,
    cross: Floats,
    first: Ints,
    rows_before: Ints,
    rows_after: Ints,
    steps: Floats,
) -> int:
    """Fill `first`, `rows_before`, `rows_after` and `steps` in the format of `envelope`, the last three with
    room for N bends; returns the number of bends. `cross`: scratch space for the rows of the longest list."""
    bends = 0
    for sentence in range(len(starts) - 1):
        start, size = starts[sentence], starts[sentence + 1] - starts[sentence]
        current, value, slope = start, values[start], slopes[start]
        for row in range(start + 1, start + size):
            if slopes[row] <= slope and (slopes[row] < slope or values[row] > value):
                current, value, slope = row, values[row], slopes[row]
        first[sentence] = current
        while True:
            # Two loops without branches, which become vector instructions: where each steeper line crosses
            # this one, and the first of these steps.
            for at in range(size):
                rise = slopes[start + at] - slope
                cross[at] = (value - values[start + at]) / rise if rise > 0 else np.inf
            a, b, c, d = np.inf, np.inf, np.inf, np.inf
            for at in range(0, size - LANES + 1, LANES):
                a = cross[at] if cross[at] < a else a
                b = cross[at + 1] if cross[at + 1] < b else b
                c = cross[at + 2] if cross[at + 2] < c else c
                d = cross[at + 3] if cross[at + 3] < d else d
            for at in range(size - size % LANES, size):
                a = cross[at] if cross[at] < a else a
            nearest = min(min(a, b), min(c, d))
            if nearest == np.inf:
                break
            following = -1
            for at in range(size):
                # Of several lines that cross at the same step, the steepest wins.
                if cross[at] == nearest and (following < 0 or slopes[start + at] > slopes[following]):
                    following = start + at
            rows_before[bends], rows_after[bends], steps[bends] = current, following, nearest
            bends += 1
            current, value, slope = following, values[following], slopes[following]
    return bends


@njit
def sum_bends(stats: Floats, first: Ints, rows_before: Ints, rows_after: Ints) -> Floats:
    """Sum statistics along the bends, as `cumulative_statistics` does, in compiled code."""
    columns = stats.shape[1]
    sums = np.zeros((len(rows_before) + 1, columns))
    for row in first:
        for column in range(columns):
            sums[0, column] += stats[row, column]
    for bend in range(len(rows_before)):
        old, new = rows_before[bend], rows_after[bend]
        for column in range(columns):
            sums[bend + 1, column] = sums[bend, column] + (stats[new, column] - stats[old, column])
    return sums


# ---- the same with NumPy -----------------------------------------------------------------------------------


def envelope(values: Floats, slopes: Floats, starts: Ints) -> Bends:
    """The upper envelope of value + step x slope of each sentence, along all sentences at once.

    values, slopes (N,), starts (S + 1,) -> the best row of each sentence before all bends (S,), and for each
    bend the row before it, the row after it, and its step: (B,) each, in no particular order.
    """
    counts = np.diff(starts)
    low = np.minimum.reduceat(slopes, starts[:-1])
    lowest = np.flatnonzero(slopes == np.repeat(low, counts))  # of the smallest slope; of these, the highest
    current = first_best(values[lowest], lowest, np.searchsorted(lowest, starts[:-1]))
    first = current.copy()
    rows = np.arange(len(values))
    owner = np.repeat(np.arange(len(counts)), counts)
    rows_before, rows_after, steps = [], [], []
    while True:
        rising = slopes[rows] > slopes[current][owner]
        rows, owner = rows[rising], owner[rising]
        if not len(rows):
            break
        old = current[owner]
        cross = (values[old] - values[rows]) / (slopes[rows] - slopes[old])
        begins = np.flatnonzero(np.diff(owner, prepend=-1))
        alive = owner[begins]
        nearest = np.minimum.reduceat(cross, begins)
        ties = np.flatnonzero(cross == np.repeat(nearest, np.diff(begins, append=len(rows))))
        # Of several lines that cross at the same step, the steepest wins.
        following = first_best(slopes[rows[ties]], rows[ties], np.searchsorted(ties, begins))
        rows_before.append(current[alive])
        rows_after.append(following)
        steps.append(nearest)
        current = current.copy()
        current[alive] = following
    if not rows_before:
        return first, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return first, np.concatenate(rows_before), np.concatenate(rows_after), np.concatenate(steps)


def first_best(keys: Floats, rows: Ints, begins: Ints) -> Ints:
    """The row with the largest key in each group, on ties the first: (R,), (R,), (G,) -> (G,). `begins`:
    index at which each group begins in `keys` and `rows`."""
    top = np.maximum.reduceat(keys, begins)
    ties = np.flatnonzero(keys == np.repeat(top, np.diff(begins, append=len(keys))))
    return rows[ties[np.searchsorted(ties, begins)]]


def cumulative_statistics(stats: Floats, first: Ints, rows_before: Ints, rows_after: Ints) -> Floats:
    """Statistics of the corpus, summed over its sentences: with the hypotheses `first` (S,), then after each
    of the bends (B,), in order: (B + 1, 9). `stats`: (N, 9)"""
    sums = np.vstack([stats[first].sum(0), stats[rows_after] - stats[rows_before]])
    return np.asarray(np.cumsum(sums, 0, out=sums))


# ---- many directions and starting points -------------------------------------------------------------------


RANDOM_DIRECTIONS = 10  # of each pass, besides one for each feature
POLISHED = 3  # best points from which the search continues along more directions
POLISH_DIRECTIONS = 60  # random directions of each pass from these points
GAIN = 1e-5  # BLEU that a pass must gain for another to follow
PASSES = 30  # at most


def climb(
    search: LineSearch,
    start: Floats,
    free: NDArray[np.bool_],
    seed: Sequence[int],
    extra: int = RANDOM_DIRECTIONS,
    stop: threading.Event | None = None,
) -> TuningPoint:
    """Climb from one starting point (D,): each pass tries the direction of each feature and `extra` random
    directions, and takes each step that improves BLEU. Returns the weights, scaled to sum |w| = 1 after each
    pass, and their BLEU. `free`: whether each weight may change (D,); `seed`: numbers that seed the random
    directions and their order. Ends early once `stop` is set."""
    rng = np.random.default_rng(list(seed))
    weights, axes = start.copy(), np.flatnonzero(free)
    values = search.values(weights)
    score = search.pool.bleu(weights)
    for _ in range(PASSES):
        previous_score = score
        directions = [np.eye(len(weights))[axis] for axis in axes] + [
            random_direction(rng, free) for _ in range(extra)
        ]
        for index in rng.permutation(len(directions)):
            if stop is not None and stop.is_set():
                return TuningPoint(weights, score)
            step, new_score = search.best(values, directions[index])
            if new_score > score + 1e-9:
                weights = weights + step * directions[index]
                values = search.values(weights)
                score = new_score
        size = np.abs(weights).sum()
        if size > 0:
            weights, values = weights / size, values / size
        score = search.pool.bleu(weights)  # may differ from the line search by rounding
        if score < previous_score + GAIN:
            break
    return TuningPoint(weights, score)


LIMITS = 0.01, 1.0  # of a weight, where Σ |w| of the tuned system is 1: search with it, but not by it alone


def fit_alone(pool: Pool, weights: Floats, columns: Sequence[int]) -> Floats:
    """Find weights to start from for features that were added to a tuned system, on lists that were decoded
    without these: the weight of each by a line search (Och 2003, section 5) along it alone, with the other
    new features at 0. With several new ones each gets its share, a weight divided by their number.

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


def random_direction(rng: np.random.Generator, free: NDArray[np.bool_]) -> Floats:
    """A direction with uniform values between -1 and 1, and 0 where the weight is not free: (D,)"""
    return np.asarray(np.where(free, rng.uniform(-1, 1, len(free)), 0.0))


@dataclass
class Mert:
    """Minimum error rate training: line search from the initial weights, the other starting points and random
    ones, which continues from the best few points along more directions. The weights of the best points may
    be averaged, as in Cettolo et al. 2011."""

    restarts: int = number(20, least=0, help="random starting points of mert, besides the initial weights")
    averaged: int = number(1, least=1, help="best points of mert whose weights are averaged")

    def tune(
        self,
        pool: Pool,
        start: Floats | None,
        seed: int,
        *,
        others: Sequence[Floats] = (),
        threads: int = 1,
        progress: Progress = silent,
    ) -> TuningPoint:
        """Search from all starting points; returns the best, or the average of a few. See `Tuner.tune`."""
        search, free = LineSearch(pool), ~pool.constant()
        rng = np.random.default_rng(seed)
        start_points = [*([] if start is None else [start]), *others]
        points = [np.where(free, normalize(point), 0.0) for point in start_points]
        points += [normalize(random_direction(rng, free)) for _ in range(self.restarts)]
        steps, total = 0, len(points) + min(POLISHED, len(points))
        stop = threading.Event()

        def climb_all(starts: Sequence[Floats], first: int, extra: int) -> list[TuningPoint]:
            nonlocal steps
            points_reached = []
            for point in crew.map(
                lambda item: climb(search, item[1], free, [seed, item[0]], extra, stop),
                enumerate(starts, first),
            ):
                steps += 1
                progress(steps, total)
                points_reached.append(point)
            return sorted(points_reached, key=lambda point: -point.bleu)  # stable: the first of equals

        with ThreadPoolExecutor(threads) as crew:
            try:
                candidates = climb_all(points, 0, RANDOM_DIRECTIONS)
                polished = [point.weights for point in candidates[:POLISHED]]
                candidates += climb_all(polished, len(points), POLISH_DIRECTIONS)
            finally:  # after an interrupt, end the climbs in progress
                stop.set()
        candidates.sort(key=lambda point: -point.bleu)  # stable: the first of equals
        weights = normalize(np.mean([point.weights for point in candidates[: self.averaged]], axis=0))
        return TuningPoint(weights, candidates[0].bleu if self.averaged == 1 else pool.bleu(weights))
