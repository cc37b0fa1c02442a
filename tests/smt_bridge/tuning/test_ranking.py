"""PRO and rankers: sentence BLEU, the pairs that they compare, their losses, and the bundle method."""

import math
from dataclasses import replace

import numpy as np
import pytest

from smt_bridge.tuning import pool as pools
from smt_bridge.tuning import ranking
from smt_bridge.tuning.bleu import COLUMNS
from smt_bridge.tuning.kbmira import Kbmira, sentence_bleu
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.pool import Pool
from smt_bridge.tuning.ranking import (
    Logistic,
    Loss,
    Margin,
    Pro,
    Ranker,
    log_loss,
    pairwise_hinge,
    scale_lists,
    smoothed_bleu,
    structured_hinge,
)
from tests.smt_bridge.tuning.test_mert import random_pool

# ---- test pro ----------------------------------------------------------------------------------------------


def test_smoothed_bleu() -> None:
    whole = np.array([4, 4, 3, 3, 2, 2, 1, 1, 4.0])
    nothing = np.array([0, 4, 0, 3, 0, 2, 0, 1, 4.0])
    some = np.array([1, 4, 0, 3, 0, 2, 0, 1, 4.0])
    assert smoothed_bleu(np.stack([whole, nothing])).tolist() == [pytest.approx(1), 0]
    assert smoothed_bleu(some[None])[0] == pytest.approx((1 / 4 * 1 / 4 * 1 / 3 * 1 / 2) ** 0.25)
    short = np.array([2, 2, 1, 1, 0, 0, 0, 0, 4.0])  # two words, all of them right, of four
    long = np.array([4, 5, 3, 4, 2, 3, 1, 2, 4.0])
    assert smoothed_bleu(short[None])[0] == pytest.approx(math.exp(1 - 4 / 2))
    assert smoothed_bleu(long[None])[0] == pytest.approx((4 / 5 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25)


def test_pairs_that_hardly_differ_are_left_out() -> None:
    pool = random_pool(seed=4)
    assert np.abs(Pro().tune(pool, None, 1).weights).sum() == pytest.approx(1)
    assert not Pro(min_difference=2.0).tune(pool, None, 1).weights.any()
    again = Pro().tune(pool, np.ones(3), 1, threads=2)  # there is no starting point
    assert (again.weights == Pro().tune(pool, None, 1).weights).all()


# ---- test losses -------------------------------------------------------------------------------------------
# Losses of rankers: their values = loops over pairs and lists, their gradients = finite differences.


STARTS = np.array([0, 3, 4, 9])
RNG = np.random.default_rng(3)
FEATURES = RNG.normal(size=(9, 4))
GAINS = RNG.normal(size=9)
WEIGHTS = RNG.normal(size=4)


def slopes(loss: Loss, weights: np.ndarray) -> list[float]:
    """Gradient by central differences; no corner of a hinge is within their step."""
    steps = 1e-6 * np.eye(len(weights))
    return [(loss(weights + step)[0] - loss(weights - step)[0]) / 2e-6 for step in steps]


def test_the_logistic_loss_and_its_derivatives() -> None:
    shares = np.abs(GAINS)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        found = log_loss(weights, FEATURES, shares)
        return found.value, found.gradient

    slow = sum(
        share * math.log(1 + math.exp(-(row @ WEIGHTS))) for share, row in zip(shares, FEATURES, strict=True)
    )
    found = log_loss(WEIGHTS, FEATURES, shares)
    assert found.value == pytest.approx(slow)
    assert found.gradient == pytest.approx(slopes(loss, WEIGHTS), abs=1e-7)
    steps = 1e-6 * np.eye(4)
    bends = [(loss(WEIGHTS + step)[1] - loss(WEIGHTS - step)[1]) / 2e-6 for step in steps]
    assert found.curvature == pytest.approx(np.array(bends), abs=1e-7)


def test_pairwise_hinge() -> None:
    margins = np.abs(GAINS)
    value, gradient = pairwise_hinge(FEATURES, margins)(WEIGHTS)
    slow = [max(0.0, margin - row @ WEIGHTS) for margin, row in zip(margins, FEATURES, strict=True)]
    assert 0 < sum(cost == 0 for cost in slow) < 9
    assert value == pytest.approx(sum(slow) / 9)
    assert gradient == pytest.approx(slopes(pairwise_hinge(FEATURES, margins), WEIGHTS), abs=1e-8)


def test_structured_hinge() -> None:
    wanted = np.array([1, 3, 8])
    margins = np.repeat(GAINS[wanted], np.diff(STARTS)) - GAINS
    loss = structured_hinge(FEATURES, STARTS, wanted, margins)
    slow = 0.0
    for first, last, want in zip(STARTS[:-1], STARTS[1:], wanted, strict=True):
        rivals = range(first, last)
        slow += max(GAINS[want] - GAINS[row] + (FEATURES[row] - FEATURES[want]) @ WEIGHTS for row in rivals)
    value, gradient = loss(WEIGHTS)
    assert value == pytest.approx(slow / 3) and value > 0
    assert gradient == pytest.approx(slopes(loss, WEIGHTS), abs=1e-8)


def test_no_loss_where_every_lead_is_large_enough() -> None:
    found = pairwise_hinge(np.array([[2.0], [3.0]]), np.array([1.0, 3.0]))(np.ones(1))
    assert found[0] == 0 and not found[1].any()
    lone = structured_hinge(FEATURES, np.arange(10), np.arange(9), np.zeros(9))(WEIGHTS)
    assert lone[0] == 0 and not lone[1].any()


# ---- test bundle -------------------------------------------------------------------------------------------
# The bundle method finds the minimum that a grid finds, and knows how near it is.


@pytest.mark.parametrize("ridge", [1.0, 0.1, 0.01])
def test_the_minimum_of_a_loss_with_corners(ridge: float) -> None:
    rng = np.random.default_rng(1)
    loss = pairwise_hinge(rng.normal([0.7, -0.2], size=(40, 2)), rng.uniform(0.2, 2, 40))

    def cost(weights: np.ndarray) -> float:
        return loss(weights)[0] + ridge * float(weights @ weights) / 2

    found = ranking.bundle_minimum(loss, 2, ridge, 1e-4, 500)
    axis = np.linspace(-6, 6, 81)
    least = min(cost(np.array([one, other])) for one in axis for other in axis)
    assert cost(found) <= least * (1 + 1e-4)
    for step in (*np.eye(2), *-np.eye(2)):
        assert cost(found + 0.1 * step) > cost(found)
    loose = ranking.bundle_minimum(loss, 2, ridge, 0.2)
    assert cost(found) * (1 - 1e-12) <= cost(loose) <= least * 1.25


def test_a_single_corner_is_met_exactly() -> None:
    """max(0, 1 - w) + w² / 20 is lowest at the corner."""
    found = ranking.bundle_minimum(pairwise_hinge(np.ones((1, 1)), np.ones(1)), 1, 0.1, 1e-9)
    assert found[0] == pytest.approx(1)


def test_shares_are_of_the_simplex() -> None:
    rng = np.random.default_rng(2)
    slopes, heights = rng.normal(size=(6, 3)), rng.normal(size=6)
    shares = ranking.mix_tangents(slopes, heights, 0.5, np.eye(6)[0])
    assert shares.sum() == pytest.approx(1) and (shares >= 0).all()
    weights = -(slopes.T @ shares) / 0.5
    values = slopes @ weights + heights
    assert values[shares > 1e-9] == pytest.approx(values.max())  # only the tangents that bound the minimum


# ---- test rankers ------------------------------------------------------------------------------------------
# Rankers: planted weights, units that do not matter, the pairs that they compare.


RANKERS = [Logistic(), Margin(), Margin(hinge="pairs")]


def planted(weights: np.ndarray, sentences: int = 80, seed: int = 1) -> Pool:
    """Lists of ten in which BLEU rises with the sum of features by these weights."""
    rng = np.random.default_rng(seed)
    lists = pools.HypothesisRows([f"F{number}" for number in range(len(weights))])
    for number in range(sentences):
        values = rng.normal(size=(10, len(weights)))
        quality = 1 / (1 + np.exp(-(values @ weights)))
        stats = np.full((10, COLUMNS), 40.0)
        stats[:, 1:8:2] -= np.arange(4)
        stats[:, 0:8:2] = np.floor(quality[:, None] ** np.arange(1, 5) * stats[:, 1:8:2])
        lists.add(number, values, stats)
    return lists.pool()


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
    """Pairs are of one list and of its entries with the highest scores, the better one first."""
    lists, _ = scale_lists(random_pool(sentences=20, seed=9))
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
    # without weights, every entry that has a rival of another BLEU
    assert seen == set(np.flatnonzero(np.repeat(differ, np.diff(lists.starts))))


# ---- test kbmira -------------------------------------------------------------------------------------------
# Batch MIRA: the statistics that it compares, and its settings.


def test_sentence_bleu_prefers_matches_and_the_right_length() -> None:
    good = np.array([4, 4, 3, 3, 2, 2, 1, 1, 4.0])
    short = np.array([2, 2, 1, 1, 0, 0, 0, 0, 4.0])
    bad = np.array([0, 4, 0, 3, 0, 2, 0, 1, 4.0])
    values = sentence_bleu(np.stack([good, short, bad]), np.ones(COLUMNS))
    assert values[0] > values[1] > values[2] > 0
    assert values[0] == pytest.approx(5)  # BLEU 1 times the reference length, background included


def test_progress_counts_passes_and_the_start_matters() -> None:
    pool, told = random_pool(seed=2), []
    tuner = Kbmira(passes=3)
    found = tuner.tune(pool, None, 1, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert (tuner.tune(pool, np.zeros(3), 1).weights == found.weights).all()
    assert (tuner.tune(pool, np.array([5.0, -5, 5]), 1).weights != found.weights).any()
