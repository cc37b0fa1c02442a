"""Minimum error rate training (Och 2003): exact line search for corpus BLEU along many directions, from many
starting points. line_search.py has the search along one direction.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.settings import number
from smt_bridge.tuning.line_search import LineSearch
from smt_bridge.tuning.pool import Floats, Pool, normalize
from smt_bridge.tuning.tuner import Point, Progress, silent

RANDOM_DIRECTIONS = 10  # of each pass, besides one for each feature
POLISHED = 3  # the best points found, from which the search continues along more directions
POLISH_DIRECTIONS = 60
GAIN = 1e-5  # BLEU that a pass must gain for another to follow
PASSES = 30  # at most


def climb(
    search: LineSearch,
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
    values = search.values(weights)
    score = search.pool.bleu(weights)
    for _ in range(PASSES):
        before = score
        directions = [np.eye(len(weights))[axis] for axis in axes] + [
            random_direction(rng, free) for _ in range(extra)
        ]
        for place in rng.permutation(len(directions)):
            if stop is not None and stop.is_set():
                return Point(weights, score)
            step, found = search.best(values, directions[place])
            if found > score + 1e-9:
                weights = weights + step * directions[place]
                values = search.values(weights)
                score = found
        size = np.abs(weights).sum()
        if size > 0:
            weights, values = weights / size, values / size
        score = search.pool.bleu(weights)  # rounding may have changed it
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
        search, free = LineSearch(pool), ~pool.constant()
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
                lambda item: climb(search, item[1], free, [seed, item[0]], extra, stop),
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
