"""Rankers: planted weights, units that do not matter, the pairs that they compare."""

from dataclasses import replace

import numpy as np
import pytest

from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.bleu import COLUMNS
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.pool import Pool
from smt_bridge.tuning.rankers import Logistic, Margin, Ranker, scaled
from tests.smt_bridge.tuning.test_mert import random_pool

RANKERS = [Logistic(), Margin(), Margin(hinge="pairs")]


def planted(weights: np.ndarray, sentences: int = 80, seed: int = 1) -> Pool:
    """BLEU rises with the sum of features by these weights, in lists of ten."""
    rng = np.random.default_rng(seed)
    rows: pools.Rows = {}
    for number in range(sentences):
        values = rng.normal(size=(10, len(weights)))
        quality = 1 / (1 + np.exp(-(values @ weights)))
        stats = np.full((10, COLUMNS), 40.0)
        stats[:, 1:8:2] -= np.arange(4)
        stats[:, 0:8:2] = np.floor(quality[:, None] ** np.arange(1, 5) * stats[:, 1:8:2])
        rows[number] = ([values], [stats])
    return pools.make([f"F{number}" for number in range(len(weights))], rows)


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("truth", [[0.5, -0.3, 0.2], [1.0, 0.0, -2.0]])
def test_planted_weights_are_found(ranker: Ranker, truth: list[float]) -> None:
    pool = planted(np.array(truth))
    found = ranker.tune(pool, None, 1)
    assert found.weights == pytest.approx(pools.normalize(np.array(truth)), abs=0.06)
    assert found.bleu == pool.bleu(found.weights) >= 0.99 * pool.bleu(np.array(truth))
    assert np.abs(found.weights).sum() == pytest.approx(1)


@pytest.mark.parametrize("ranker", RANKERS)
def test_units_of_features_do_not_matter(ranker: Ranker) -> None:
    pool, units = random_pool(sentences=30, seed=5), np.array([4.0, 0.125, 1.0])
    other = Pool(pool.names, pool.features * units, pool.stats, pool.starts)
    one, two = ranker.tune(pool, None, 1), ranker.tune(other, None, 1)
    assert one.bleu == two.bleu
    assert pools.normalize(two.weights * units) == pytest.approx(one.weights, abs=1e-12)


@pytest.mark.parametrize("ranker", RANKERS)
def test_the_seed_alone_decides(ranker: Ranker) -> None:
    draws_nothing = ranker == Margin()
    ranker = replace(ranker, rounds=2)
    pool, told = random_pool(sentences=30, seed=6), []
    one = ranker.tune(pool, None, 1, progress=lambda done, total: told.append((done, total)))
    two = ranker.tune(pool, np.ones(3), 1, threads=3)
    assert (one.weights == two.weights).all()
    assert told == [(1, 2), (2, 2)]
    one, two = (replace(ranker, rounds=1, pairs=3).tune(pool, None, seed) for seed in (1, 2))
    assert (one.weights == two.weights).all() == draws_nothing


@pytest.mark.ci
def test_nearly_as_good_as_mert_on_an_easy_pool() -> None:
    pool = random_pool(sentences=200, features=4, seed=8)
    best = Mert(restarts=3).tune(pool, np.ones(4), 1).bleu
    for ranker in RANKERS:
        assert best - 0.03 < ranker.tune(pool, None, 1).bleu <= best + 1e-9


@pytest.mark.parametrize("ranker", RANKERS)
def test_constant_features_and_lists_without_a_choice(ranker: Ranker) -> None:
    pool = random_pool(sentences=30, features=3, seed=7)
    pool.features[:, 1] = np.repeat(np.arange(30.0), np.diff(pool.starts))
    assert ranker.tune(pool, None, 1).weights[1] == 0
    pool.stats[:] = pool.stats[0]  # every entry is as good as any other
    assert not ranker.tune(pool, None, 1).weights.any()


def test_drawn_pairs() -> None:
    """Pairs are of one sentence and of the entries that score highest, the better one first."""
    lists, _ = scaled(random_pool(sentences=20, seed=9))
    weights, rng = np.array([1.0, -2.0, 0.5]), np.random.default_rng(1)
    owner = np.repeat(np.arange(20), np.diff(lists.starts))
    for top in (2, 3):
        pairs = lists.draw(weights, 30, top, rng)
        assert len(pairs.gaps) > 100
        for better, worse, gap in zip(*pairs, strict=True):
            assert owner[better] == owner[worse] and gap == lists.gains[better] - lists.gains[worse] > 0
            rivals = lists.features[owner == owner[better]] @ weights
            assert sum(rivals > lists.features[[better, worse]].dot(weights).min()) < top
    drawn = lists.draw(None, 400, 2, rng)
    seen = set(drawn.better) | set(drawn.worse)
    differ = [len(set(part)) > 1 for part in np.split(lists.gains, lists.starts[1:-1])]
    assert seen == set(
        np.flatnonzero(np.repeat(differ, np.diff(lists.starts)))
    )  # without weights, every entry that has a rival of another BLEU
