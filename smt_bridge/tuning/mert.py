"""Minimum error rate training: exact line search for corpus BLEU along many directions, from many starts (Och
2003).

Along a direction the score of each hypothesis is a line in the step; the best of a sentence are their upper
envelope, and
corpus BLEU changes only where an envelope bends. All sentences are walked at once: from the left-most line of
each to the next that rises above it, until nothing does.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smt_bridge.config import TuneConfig
from smt_bridge.tuning.bleu import bleu
from smt_bridge.tuning.pool import Floats, Pool, normalize

RANDOM_DIRECTIONS = 10  # in each pass, besides one for each feature
POLISHED = 3  # of the points found, the best: climbed on from with more directions
POLISH_DIRECTIONS = 60
GAIN = 1e-5  # BLEU that a pass has to gain to be followed by another
PASSES = 30


@dataclass
class Point:
    weights: Floats
    bleu: float  # 0 to 1


Ints = NDArray[np.int64]


def envelope(values: Floats, slopes: Floats, starts: Ints) -> tuple[Ints, Ints, Ints, Floats]:
    """The upper envelopes of value + step x slope, for each sentence.

    values, slopes (N,), starts (S + 1,) -> the first row of each sentence (S,), and for each bend the row
    before, the row
    after, the step: (B,) each, in no order.
    """
    counts = np.diff(starts)
    low = np.minimum.reduceat(slopes, starts[:-1])
    here = np.flatnonzero(slopes == np.repeat(low, counts))  # flattest; of these the highest
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
        following = first_best(
            slopes[rows[ties]], rows[ties], np.searchsorted(ties, begins)
        )  # of lines that meet there, the steepest
        before.append(now[alive])
        after.append(following)
        steps.append(nearest)
        now = now.copy()
        now[alive] = following
    if not before:
        return first, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return first, np.concatenate(before), np.concatenate(after), np.concatenate(steps)


def first_best(keys: Floats, rows: Ints, begins: Ints) -> Ints:
    """Of each group the row with the largest key, the first of equals."""
    top = np.maximum.reduceat(keys, begins)
    places = np.flatnonzero(keys == np.repeat(top, np.diff(begins, append=len(keys))))
    return rows[places[np.searchsorted(places, begins)]]


def line_search(pool: Pool, values: Floats, direction: Floats) -> tuple[float, float]:
    """The step along `direction` with the highest corpus BLEU, and that BLEU; `values` are features x
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
    scores[1:-1][steps[1:] - steps[:-1] < 1e-9] = -1  # no room between two bends: rounding would decide
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
    """From one start: pass after pass over the features and some random directions, a step wherever BLEU
    rises; until `stop` is set."""
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
        score = pool.bleu(weights)  # what rounding made of it
        if score < before + GAIN:
            break
    return Point(weights, score)


def random_direction(rng: np.random.Generator, free: NDArray[np.bool_]) -> Floats:
    return np.asarray(np.where(free, rng.uniform(-1, 1, len(free)), 0.0))


def mert(
    pool: Pool,
    starts: Sequence[Floats],
    seed: int,
    restarts: int = TuneConfig.restarts,
    threads: int = 1,
    tell: Callable[[int], None] = lambda count: None,
) -> Point:
    """The best point of all starts: the given ones, and random ones; the best few are climbed on from.
    Constant features keep weight 0."""
    free = ~pool.constant()
    rng = np.random.default_rng(seed)
    points = [np.where(free, normalize(start), 0.0) for start in starts]
    points += [normalize(random_direction(rng, free)) for _ in range(restarts)]
    stop = threading.Event()

    def climb_all(crew: ThreadPoolExecutor, points: Sequence[Floats], first: int, extra: int) -> list[Point]:
        found = []
        for point in crew.map(
            lambda item: climb(pool, item[1], free, [seed, item[0]], extra, stop), enumerate(points, first)
        ):
            tell(1)
            found.append(point)
        return sorted(found, key=lambda point: -point.bleu)  # stable: of equals the first

    with ThreadPoolExecutor(threads) as crew:
        try:
            found = climb_all(crew, points, 0, RANDOM_DIRECTIONS)
            found += climb_all(
                crew, [point.weights for point in found[:POLISHED]], len(points), POLISH_DIRECTIONS
            )
        finally:  # after an interrupt nobody waits for the climbs in hand
            stop.set()
    best = max(found, key=lambda point: point.bleu)
    return Point(normalize(best.weights), best.bleu)
