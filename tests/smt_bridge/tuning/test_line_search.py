"""Line search = trying every step; the compiled walk along the envelopes = that of NumPy."""

from collections.abc import Callable

import numpy as np
import pytest

from smt_bridge.decoder.compiled import HAVE_NUMBA
from smt_bridge.tuning import line_search
from smt_bridge.tuning.line_search import Bends, LineSearch, envelope, traced
from smt_bridge.tuning.pool import Floats, Ints
from tests.smt_bridge.tuning.test_mert import random_pool

Find = Callable[[Floats, Floats, Ints], Bends]
BOTH = pytest.mark.parametrize(
    "compiled", [False, pytest.param(True, marks=pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba"))]
)


@BOTH
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_line_search_is_exact(seed: int, tied: bool, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No step of a fine grid has a higher BLEU, and the step found has the BLEU that was promised."""
    monkeypatch.setattr(line_search, "HAVE_NUMBA", compiled)
    pool = random_pool(seed=seed, tied=tied)
    search = LineSearch(pool)
    rng = np.random.default_rng(seed)
    weights, direction = rng.normal(size=3), rng.normal(size=3)
    step, score = search.best(search.values(weights), direction)
    assert pool.bleu(weights + step * direction) == pytest.approx(score, abs=1e-12)
    grid = [pool.bleu(weights + at * direction) for at in np.linspace(-20, 20, 4001)]
    assert score >= max(grid) - 1e-12


def test_line_search_along_an_axis_and_where_nothing_changes() -> None:
    pool = random_pool(seed=3)
    search = LineSearch(pool)
    values = search.values(np.ones(3))
    assert search.best(values, np.array([0, 2.0, 0])) == pytest.approx(
        search.best(values, np.array([0, 2.0, 1e-300]))
    )
    assert search.best(values, np.zeros(3)) == pytest.approx((0.0, pool.bleu(np.ones(3))))


def told(found: Bends) -> list[list[float]]:
    """The leftmost rows, and the bends by the row before them, of which each is there once."""
    first, before, after, steps = found
    order = np.argsort(before)
    return [first.tolist(), before[order].tolist(), after[order].tolist(), steps[order].tolist()]


@pytest.mark.parametrize("find", [envelope, traced])
def test_envelope_of_one_sentence(find: Find) -> None:
    """Lines -x, 0 and x: bends at 0, where all meet, only if the flat one is higher."""
    slopes, starts = np.array([-1.0, 0.0, 1.0]), np.array([0, 3])
    assert told(find(np.array([0.0, 1.0, 0.0]), slopes, starts)) == [[0], [0, 1], [1, 2], [-1.0, 1.0]]
    assert told(find(np.array([0.0, 0.0, 0.0]), slopes, starts)) == [[0], [0], [2], [0.0]]
    assert told(find(np.array([0.0, 1.0, 2.0]), np.zeros(3), starts)) == [[2], [], [], []]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_both_ways_find_the_same_bends(seed: int, tied: bool) -> None:
    """Bit for bit, with equal slopes, equal values, and sentences of one hypothesis."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *rng.integers(1, 40, 50)])
    values, slopes = rng.normal(size=(2, starts[-1]))
    if tied:
        values, slopes = np.round(2 * values), np.round(2 * slopes)
    one, other = told(envelope(values, slopes, starts)), told(traced(values, slopes, starts))
    assert one == other and len(one[1]) > 50


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba")
@pytest.mark.parametrize("seed", range(5))
def test_both_ways_take_the_same_step(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    search = LineSearch(random_pool(sentences=40, seed=seed))
    rng = np.random.default_rng(seed)
    values, direction = search.values(rng.normal(size=3)), rng.normal(size=3)
    found = search.best(values, direction)
    monkeypatch.setattr(line_search, "HAVE_NUMBA", False)
    assert search.best(values, direction) == found
