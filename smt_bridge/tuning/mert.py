"""Minimum error rate training (Och 2003): exact line search for corpus BLEU along many directions, from many
starting points.

Along a direction, the score of each hypothesis is a linear function of the step. The best hypotheses of a
sentence form the upper envelope of these lines, and corpus BLEU changes only where an envelope bends. All
envelopes are traced at once: from the leftmost line of each sentence to the next that overtakes it, until
none does.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.settings import number
from smt_bridge.tuning.bleu import bleu
from smt_bridge.tuning.pool import Floats, Ints, Pool, normalize
from smt_bridge.tuning.tuner import Point, Progress, silent

RANDOM_DIRECTIONS = 10  # of each pass, besides one for each feature
POLISHED = 3  # the best points found, from which the search continues along more directions
POLISH_DIRECTIONS = 60
GAIN = 1e-5  # BLEU that a pass must gain for another to follow
PASSES = 30  # at most


def envelope(values: Floats, slopes: Floats, starts: Ints) -> tuple[Ints, Ints, Ints, Floats]:
    """The upper envelope of value + step x slope of each sentence.

    values, slopes (N,), starts (S + 1,) -> the leftmost row of each sentence (S,), and for each bend the row
    before it, the row after it, and its step: (B,) each, in no particular order.
    """
    counts = np.diff(starts)
    low = np.minimum.reduceat(slopes, starts[:-1])
    here = np.flatnonzero(slopes == np.repeat(low, counts))  # of the smallest slope; of these, the highest
    now = first_best(values[here], here, np.searchsorted(here, starts[:-1]))
    first = now.copy()
    rows = np.arange(len(values))
    owner = np.repeat(np.arange(len(counts)), counts)
    before, after, steps = [], [], []
    while True:
        rising = slopes[rows] > slopes[now][owner]
        rows, owner = rows[rising], owner[rising]
        if not len(rows):
            break
        old = now[owner]
        cross = (values[old] - values[rows]) / (slopes[rows] - slopes[old])
        begins = np.flatnonzero(np.diff(owner, prepend=-1))
        alive = owner[begins]
        nearest = np.minimum.reduceat(cross, begins)
        ties = np.flatnonzero(cross == np.repeat(nearest, np.diff(begins, append=len(rows))))
        # Of several lines that cross at the same step, the steepest wins.
        following = first_best(slopes[rows[ties]], rows[ties], np.searchsorted(ties, begins))
        before.append(now[alive])
        after.append(following)
        steps.append(nearest)
        now = now.copy()
        now[alive] = following
    if not before:
        return first, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return first, np.concatenate(before), np.concatenate(after), np.concatenate(steps)


def first_best(keys: Floats, rows: Ints, begins: Ints) -> Ints:
    """The row with the largest key in each group, the first of equals."""
    top = np.maximum.reduceat(keys, begins)
    places = np.flatnonzero(keys == np.repeat(top, np.diff(begins, append=len(keys))))
    return rows[places[np.searchsorted(places, begins)]]


def line_search(pool: Pool, values: Floats, direction: Floats) -> tuple[float, float]:
    """The step along `direction` (D,) with the highest corpus BLEU, and that BLEU. `values`: features x
    weights, (N,)."""
    column = np.flatnonzero(direction)
    slopes = (
        pool.features[:, column[0]] * direction[column[0]] if len(column) == 1 else pool.features @ direction
    )
    first, before, after, steps = envelope(values, np.ascontiguousarray(slopes), pool.starts)
    order = np.argsort(steps, kind="stable")
    steps = steps[order]
    changes = pool.stats[after[order]] - pool.stats[before[order]]
    sums = pool.stats[first].sum(0) + np.vstack([np.zeros(changes.shape[1]), np.cumsum(changes, 0)])
    scores = bleu(sums)
    scores[1:-1][steps[1:] - steps[:-1] < 1e-9] = -1  # too narrow: rounding would decide
    best = int(np.argmax(scores))
    if not len(steps):
        return 0.0, float(scores[0])
    low = steps[best - 1] if best > 0 else steps[0] - 1.0
    high = steps[best] if best < len(steps) else steps[-1] + 1.0
    return float((low + high) / 2), float(scores[best])


def climb(
    pool: Pool,
    start: Floats,
    free: NDArray[np.bool_],
    seed: Sequence[int],
    extra: int = RANDOM_DIRECTIONS,
    stop: threading.Event | None = None,
) -> Point:
    """Hill climbing from one starting point: passes over the features and some random directions, with a step
    wherever BLEU improves; ends early once `stop` is set."""
    rng = np.random.default_rng(list(seed))
    weights, axes = start.copy(), np.flatnonzero(free)
    values = pool.features @ weights
    score = pool.bleu(weights)
    for _ in range(PASSES):
        before = score
        directions = [np.eye(len(weights))[axis] for axis in axes] + [
            random_direction(rng, free) for _ in range(extra)
        ]
        for place in rng.permutation(len(directions)):
            if stop is not None and stop.is_set():
                return Point(weights, score)
            step, found = line_search(pool, values, directions[place])
            if found > score + 1e-9:
                weights = weights + step * directions[place]
                values = pool.features @ weights
                score = found
        size = np.abs(weights).sum()
        if size > 0:
            weights, values = weights / size, values / size
        score = pool.bleu(weights)  # rounding may have changed it
        if score < before + GAIN:
            break
    return Point(weights, score)


def random_direction(rng: np.random.Generator, free: NDArray[np.bool_]) -> Floats:
    return np.asarray(np.where(free, rng.uniform(-1, 1, len(free)), 0.0))


@dataclass
class Mert:
    """Line search from the given and from random starting points; the search continues from the best few
    along more directions."""

    restarts: int = number(20, least=0, help="random starting points of mert, besides the given ones")

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
        """The best point found; see Tuner."""
        free = ~pool.constant()
        rng = np.random.default_rng(seed)
        given = [*([] if start is None else [start]), *others]
        points = [np.where(free, normalize(point), 0.0) for point in given]
        points += [normalize(random_direction(rng, free)) for _ in range(self.restarts)]
        steps, total = 0, len(points) + min(POLISHED, len(points))
        stop = threading.Event()

        def climb_all(starts: Sequence[Floats], first: int, extra: int) -> list[Point]:
            nonlocal steps
            found = []
            for point in crew.map(
                lambda item: climb(pool, item[1], free, [seed, item[0]], extra, stop),
                enumerate(starts, first),
            ):
                steps += 1
                progress(steps, total)
                found.append(point)
            return sorted(found, key=lambda point: -point.bleu)  # stable: the first of equals

        with ThreadPoolExecutor(threads) as crew:
            try:
                found = climb_all(points, 0, RANDOM_DIRECTIONS)
                polished = [point.weights for point in found[:POLISHED]]
                found += climb_all(polished, len(points), POLISH_DIRECTIONS)
            finally:  # after an interrupt, nobody waits for the climbs in progress
                stop.set()
        best = max(found, key=lambda point: point.bleu)
        return Point(normalize(best.weights), best.bleu)
