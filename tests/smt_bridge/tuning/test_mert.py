"""MERT, kbmira and PRO on random and real pools; line search is exact and equals that of Moses' mert."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.io import files
from smt_bridge.tuning import mert
from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.bleu import COLUMNS
from smt_bridge.tuning.kbmira import Kbmira
from smt_bridge.tuning.mert import LIMITS, Bends, LineSearch, envelope, fit_alone, trace_envelope
from smt_bridge.tuning.pool import Floats, Ints, Pool
from smt_bridge.tuning.ranking import Pro, logistic
from smt_bridge.tuning.tuner import TuningPoint

# ---- test mert ---------------------------------------------------------------------------------------------


def random_pool(sentences: int = 12, features: int = 3, seed: int = 1, tied: bool = False) -> Pool:
    """A pool in which the BLEU of a hypothesis depends on its features, so that tuning has an effect."""
    rng = np.random.default_rng(seed)
    lists = pools.HypothesisRows([f"F{number}" for number in range(features)])
    best = rng.normal(size=features)
    for number in range(sentences):
        count = int(rng.integers(1, 9))
        values = rng.normal(size=(count, features))
        if tied:
            values = np.round(values)
        quality = np.clip(0.5 + 0.15 * values @ best, 0, 1)
        length = 10
        totals = np.array([length - order for order in range(4)])
        matches = np.floor(quality[:, None] ** np.arange(1, 5) * totals)
        stats = np.zeros((count, COLUMNS))
        stats[:, 0:8:2], stats[:, 1:8:2], stats[:, 8] = matches, totals, length
        lists.add(number, values, stats)
    return lists.pool()


def test_mert_finds_the_best_of_a_grid_and_repeats() -> None:
    pool = random_pool(sentences=40, features=2, seed=5)
    grid = max(
        pool.bleu(np.array([np.cos(angle), np.sin(angle)])) for angle in np.linspace(0, 2 * np.pi, 2000)
    )
    found = mert.Mert(restarts=3).tune(pool, np.array([1.0, 0.0]), 1)
    assert found.bleu >= grid - 1e-9
    assert found.bleu == pytest.approx(pool.bleu(found.weights)) and np.abs(
        found.weights
    ).sum() == pytest.approx(1)
    again = mert.Mert(restarts=3).tune(pool, np.array([1.0, 0.0]), 1, threads=3)
    assert (again.weights == found.weights).all()


def test_the_average_of_the_best_points() -> None:
    """Of one it is that point; of several it lies between them, each climbed as if there were no average."""
    pool, start = random_pool(sentences=40, features=3, seed=5), np.ones(3)
    one, again = (mert.Mert(restarts=3, **given).tune(pool, start, 1) for given in ({}, {"averaged": 1}))
    assert (one.weights == again.weights).all() and one.bleu == again.bleu
    points: list[TuningPoint] = []
    climb = mert.climb

    def followed(*given: object) -> TuningPoint:
        points.append(climb(*given))  # type: ignore[arg-type]
        return points[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mert, "climb", followed)
        mean = mert.Mert(restarts=3, averaged=4).tune(pool, start, 1)
    best = sorted(points, key=lambda point: -point.bleu)[:4]
    expected = sum((point.weights for point in best), np.zeros(3))
    assert mean.weights == pytest.approx(expected / np.abs(expected).sum())
    assert mean.bleu == pool.bleu(mean.weights) <= one.bleu + 1e-9


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.ci
def test_the_best_step_within_limits(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least as good as all steps of a fine grid, and within the limits though a better one is beyond."""
    monkeypatch.setattr(mert, "HAVE_NUMBA", HAVE_NUMBA and compiled)
    pool = random_pool(sentences=40, features=2, seed=5)
    search, weights, direction = LineSearch(pool), np.array([1.0, 0.3]), np.array([0.0, 1.0])
    free = search.best(search.values(weights), direction)
    scores = []
    for limits in ((0.01, 1.0), (-2.0, -1.5), (free[0] - 1, free[0] + 1)):
        step, score = search.best(search.values(weights), direction, limits)
        grid = [pool.bleu(weights + at * direction) for at in np.linspace(*limits, 4001)[1:-1]]
        assert limits[0] <= step <= limits[1] and score >= max(grid) - 1e-12
        assert pool.bleu(weights + step * direction) == pytest.approx(score, abs=1e-12)
        scores.append(score)
    assert min(scores) < scores[-1] == free[1]
    assert search.best(search.values(weights), np.zeros(2), (0.25, 1.0))[0] == 0.25


def test_a_new_feature_at_weight_0_is_tried() -> None:
    """Only the second feature separates good from bad hypotheses, and its starting weight is 0."""
    pool = random_pool(sentences=60, features=3, seed=6)
    blind = mert.climb(LineSearch(pool), np.array([1.0, 0.0, 0.0]), np.array([True, False, False]), [1]).bleu
    assert mert.Mert(restarts=2).tune(pool, np.array([1.0, 0.0, 0.0]), 1).bleu > blind + 0.01


def test_constant_features_stay_at_0() -> None:
    pool = random_pool(sentences=30, features=3, seed=7)
    pool.features[:, 1] = np.repeat(np.arange(30.0), np.diff(pool.starts))
    for tuner in (mert.Mert(restarts=2), Kbmira(), Pro()):
        found = tuner.tune(pool, np.ones(3), 1)
        assert found.weights[1] == 0 and np.abs(found.weights).sum() == pytest.approx(1)


def test_short_texts_have_a_bleu_without_a_background() -> None:
    pool = random_pool(sentences=5, features=3, seed=7)
    pool.stats[:, 6:8] = 0
    with np.errstate(all="raise"):
        Kbmira(passes=2, decay=0.0).tune(pool, None, 1)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.ci
def test_the_three_methods_agree_on_an_easy_pool(seed: int) -> None:
    pool = random_pool(sentences=200, features=4, seed=8)
    best = mert.Mert(restarts=3).tune(pool, np.ones(4), seed).bleu
    for tuner in (Kbmira(), Pro()):
        found = tuner.tune(pool, None, seed)
        assert best - 0.03 < found.bleu <= best + 1e-9
        assert found.bleu == pytest.approx(pool.bleu(found.weights))


def test_logistic_is_at_its_minimum() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 3)) * [1, 10, 0.1] + [0.5, 0, 0.01]
    scale = np.sqrt((rows**2).mean(0))

    def cost(weights: np.ndarray) -> float:
        return float(
            np.log1p(np.exp(-rows @ weights)).sum() + 1e-3 * len(rows) * ((weights * scale) ** 2).sum() / 2
        )

    found = logistic(rows, 1e-3)
    for axis in range(3):
        for step in (-1e-3, 1e-3):
            assert cost(found + step * np.eye(3)[axis]) > cost(found)


def test_regression_test_of_moses(nmt_data: Path) -> None:
    """Moses' regression test mert.basic expects 0.304339."""
    folder = nmt_data / "moses-regression" / "tests" / "mert.basic" / "data"
    pool = pools.read_moses([str(folder / "FEATSTAT.txt")], [str(folder / "SCORESTAT.txt")]).pool()
    start = np.array([float(word) for word in next(files.read_lines(folder / "INIT")).split()])
    assert mert.Mert().tune(pool, start, 1).bleu == pytest.approx(0.304339, abs=1e-6)


@pytest.mark.ci
def test_batch_mira_on_a_real_list(nmt_data: Path) -> None:
    """Moses' kbmira estimates 0.5653 to 0.5658 on lists of this development set; here the score is that of
    the list itself."""
    folder = nmt_data / "moses-multi30k"
    pool = pools.read_nbest(
        [str(folder / "out" / "val.100best.segalign.gz")], [str(folder / "corpus" / "val.tok.fr")]
    ).pool()
    found = Kbmira(passes=20).tune(pool, None, 1)
    assert found.bleu > 0.565


@pytest.mark.ci
@pytest.mark.parametrize("runs", [1, 2, pytest.param(8, marks=pytest.mark.slow)])
def test_real_pools(runs: int, nmt_data: Path) -> None:
    """BLEU is at least that of Moses' mert on the union of the pools, minus 0.001; the weights of mert have
    the BLEU that it printed."""
    folder = nmt_data / "moses-multi30k" / "mert"
    features, scores = (
        [str(folder / f"run{n}.{kind}.dat.gz") for n in range(1, runs + 1)] for kind in ("features", "scores")
    )
    pool = pools.read_moses(features, scores).pool()
    match = re.search(r"Best point: (.*) => (\S+)", (folder / f"run{runs}.best-point.txt").read_text())
    assert match
    theirs = np.array([float(word) for word in match[1].split()])
    assert pool.bleu(theirs) == pytest.approx(float(match[2]), abs=3e-4)  # printed weights have six digits
    start = np.array([float(word) for word in next(files.read_lines(folder / f"run{runs}.init.opt")).split()])
    clock = time.monotonic()
    found = mert.Mert().tune(pool, start, 1, threads=2)
    assert found.bleu >= float(match[2]) - 0.001
    assert time.monotonic() - clock < 600  # a hang, not a benchmark


# ---- test line search --------------------------------------------------------------------------------------
# Line search = trying every step; the compiled walk along the envelopes = that of NumPy.


Find = Callable[[Floats, Floats, Ints], Bends]
BOTH = pytest.mark.parametrize(
    "compiled", [False, pytest.param(True, marks=pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba"))]
)


@pytest.mark.ci
@BOTH
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_line_search_is_exact(seed: int, tied: bool, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No step of a fine grid has a higher BLEU, and the step that is found has the BLEU that is returned."""
    monkeypatch.setattr("smt_bridge.tuning.mert.HAVE_NUMBA", compiled)
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
    """The leftmost rows, and the bends by their previous rows, each of which occurs once."""
    first, before, after, steps = found
    order = np.argsort(before)
    return [first.tolist(), before[order].tolist(), after[order].tolist(), steps[order].tolist()]


@pytest.mark.parametrize("find", [envelope, trace_envelope])
def test_envelope_of_one_sentence(find: Find) -> None:
    """Lines -x, 0 and x: the bends are at 0, where all meet, unless the flat line is higher."""
    slopes, starts = np.array([-1.0, 0.0, 1.0]), np.array([0, 3])
    assert told(find(np.array([0.0, 1.0, 0.0]), slopes, starts)) == [[0], [0, 1], [1, 2], [-1.0, 1.0]]
    assert told(find(np.array([0.0, 0.0, 0.0]), slopes, starts)) == [[0], [0], [2], [0.0]]
    assert told(find(np.array([0.0, 1.0, 2.0]), np.zeros(3), starts)) == [[2], [], [], []]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_both_ways_find_the_same_bends(seed: int, tied: bool) -> None:
    """Equal bit for bit, with equal slopes, equal values, and sentences of one hypothesis."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *rng.integers(1, 40, 50)])
    values, slopes = rng.normal(size=(2, starts[-1]))
    if tied:
        values, slopes = np.round(2 * values), np.round(2 * slopes)
    one, other = told(envelope(values, slopes, starts)), told(trace_envelope(values, slopes, starts))
    assert one == other and len(one[1]) > 50


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba")
@pytest.mark.parametrize("seed", range(5))
def test_both_ways_take_the_same_step(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    search = LineSearch(random_pool(sentences=40, seed=seed))
    rng = np.random.default_rng(seed)
    values, direction = search.values(rng.normal(size=3)), rng.normal(size=3)
    found = search.best(values, direction)
    monkeypatch.setattr("smt_bridge.tuning.mert.HAVE_NUMBA", False)
    assert search.best(values, direction) == found


# ---- weights of new features -------------------------------------------------------------------------------
# Each is the best for itself.


POOL = random_pool(sentences=60, features=4, seed=6)
TUNED = np.array([0.6, -0.4, 0.1, 0.1])  # the last two are new


def with_weight(column: int, weight: float) -> float:
    weights = np.where(np.arange(4) < 2, TUNED, 0.0)
    weights[column] = weight
    return POOL.bleu(weights)


@pytest.mark.parametrize("column", [2, 3])
def test_no_weight_of_a_grid_is_better(column: int) -> None:
    fitted = fit_alone(POOL, np.where(np.arange(4) == 5 - column, 0.0, TUNED), [column])
    grid = [with_weight(column, float(weight)) for weight in np.linspace(*LIMITS, 2001)[1:-1]]
    assert LIMITS[0] <= fitted[column] <= LIMITS[1] and (fitted[:2] == TUNED[:2]).all()
    assert with_weight(column, float(fitted[column])) >= max(grid) - 1e-12
    assert max(grid) > min(grid)


def test_several_share_what_each_would_get() -> None:
    alone = [fit_alone(POOL, np.where(np.arange(4) == 5 - at, 0.0, TUNED), [at])[at] for at in (2, 3)]
    both = fit_alone(POOL, TUNED, [2, 3])
    assert both[2:].tolist() == [weight / 2 for weight in alone]
    assert (fit_alone(POOL, TUNED, [3, 2]) == both).all()
    assert (fit_alone(POOL, np.array([0.6, -0.4, 7.0, -3.0]), [2, 3]) == both).all()  # whatever they were
    assert (fit_alone(POOL, TUNED, []) == TUNED).all()


def test_the_scale_of_the_tuned_weights_is_kept() -> None:
    assert fit_alone(POOL, 3 * TUNED, [2]) == pytest.approx(3 * fit_alone(POOL, TUNED, [2]))


def test_a_useless_feature_gets_the_smallest_share() -> None:
    """It prefers whatever the references do not have."""
    features = POOL.features.copy()
    features[:, 2] = -POOL.stats[:, 0]
    pool = Pool(POOL.names, features, POOL.stats, POOL.starts)
    assert fit_alone(pool, TUNED, [2])[2] < 0.1
