"""Expected BLEU: equal to loops over lists, its gradient to differences; the descent, and the tuner."""

import math

import numpy as np
import pytest

from smt_bridge.tuning.bleu import COLUMNS, bleu
from smt_bridge.tuning.expected_bleu import (
    ExpectedBleu,
    Objective,
    expected_log_bleu,
    log_bleu,
    probabilities,
    quasi_newton,
    regularize,
)
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.pool import Floats, Pool, normalize
from smt_bridge.tuning.tuner import silent
from tests.smt_bridge.tuning.test_mert import random_pool

POOL = random_pool(sentences=20, features=4, seed=2)
WEIGHTS = np.random.default_rng(1).normal(size=4)


def objective_of(pool: Pool) -> Objective:
    return expected_log_bleu(pool.features, pool.stats, pool.starts)


def naive(pool: Pool, weights: Floats) -> float:
    """The logarithm of expected BLEU, hypothesis by hypothesis, with a corner at equal lengths."""
    sums = [0.0] * COLUMNS
    for first, last in zip(pool.starts[:-1], pool.starts[1:], strict=True):
        scores = [math.exp(float(pool.features[row] @ weights)) for row in range(first, last)]
        for row, score in zip(range(first, last), scores, strict=True):
            for column in range(COLUMNS):
                sums[column] += score / sum(scores) * pool.stats[row, column]
    precisions = [math.log(sums[2 * order] / sums[2 * order + 1]) for order in range(4)]
    return sum(precisions) / 4 + min(0.0, 1 - sums[8] / sums[1])


def differences(function: Objective, weights: Floats, step: float = 1e-6) -> list[float]:
    moves = step * np.eye(len(weights))
    return [(function(weights + move)[0] - function(weights - move)[0]) / (2 * step) for move in moves]


@pytest.mark.parametrize("reference", [8.0, 14.0])  # longer and shorter hypotheses
def test_the_value_is_that_of_loops_and_the_gradient_that_of_differences(reference: float) -> None:
    pool = Pool(POOL.names, POOL.features, POOL.stats.copy(), POOL.starts)
    pool.stats[:, 8] = reference
    value, gradient = objective_of(pool)(WEIGHTS)
    assert value == pytest.approx(naive(pool, WEIGHTS), abs=1e-12)
    assert gradient == pytest.approx(differences(objective_of(pool), WEIGHTS), abs=1e-8)
    cost, slope = regularize(objective_of(pool), 0.3)(WEIGHTS)
    assert cost == pytest.approx(0.15 * WEIGHTS @ WEIGHTS - value)
    assert slope == pytest.approx(0.3 * WEIGHTS - gradient)


def test_bleu_and_its_slopes() -> None:
    for length in (9.9, 10.0, 10.001, 12.0):  # on both sides of the bend, and on it
        sums = np.array([6, length, 4, 9, 3, 8, 2, 7, 10.0])
        value, slopes = log_bleu(sums)
        assert value == pytest.approx(float(np.log(bleu(sums))), abs=1e-3)
        assert slopes == pytest.approx(differences(lambda at: log_bleu(at), sums), abs=1e-6)


def test_probabilities_are_those_of_each_list() -> None:
    scores, starts = np.array([0.0, math.log(3), 1e4, 0.0]), np.array([0, 2, 4])
    assert probabilities(scores, starts).tolist() == pytest.approx([0.25, 0.75, 1.0, 0.0])


def test_large_weights_count_the_best_alone() -> None:
    value, gradient = objective_of(POOL)(1e6 * WEIGHTS)
    assert math.exp(value) == pytest.approx(POOL.bleu(WEIGHTS), rel=1e-3) and not gradient.any()


def test_the_descent_finds_the_minimum() -> None:
    """Of a square form, which has a formula; of a curved valley, whose minimum is at (1, 1)."""
    rng = np.random.default_rng(3)
    root, line = rng.normal(size=(6, 6)), rng.normal(size=6)
    matrix = root @ root.T + np.eye(6)

    def square(at: Floats) -> tuple[float, Floats]:
        return float(at @ matrix @ at / 2 - line @ at), matrix @ at - line

    def valley(at: Floats) -> tuple[float, Floats]:
        rest, bend = 1 - at[0], at[1] - at[0] ** 2
        return float(rest**2 + 100 * bend**2), np.array([-2 * rest - 400 * at[0] * bend, 200 * bend])

    found = quasi_newton(square, np.zeros(6), 200, 1e-12, silent)
    assert found == pytest.approx(np.linalg.solve(matrix, line), abs=1e-4)
    assert quasi_newton(valley, np.array([-1.2, 1.0]), 200, 1e-12, silent) == pytest.approx([1, 1], abs=1e-3)
    told: list[tuple[int, int]] = []
    quasi_newton(square, np.zeros(6), 3, 0.0, lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_every_step_gains_and_nothing_is_random() -> None:
    pool = random_pool(sentences=80, features=4, seed=9)
    short, long = ExpectedBleu(steps=2).tune(pool, None, 1), ExpectedBleu().tune(pool, np.ones(4), 2)
    assert short.bleu < long.bleu == pool.bleu(long.weights)
    assert (ExpectedBleu().tune(pool, None, 3).weights == long.weights).all()
    assert np.abs(long.weights).sum() == pytest.approx(1)
    assert long.bleu > Mert(restarts=3).tune(pool, np.ones(4), 1).bleu - 0.02


def test_the_minimum_has_no_slope_and_does_not_depend_on_units() -> None:
    pool = random_pool(sentences=60, features=3, seed=4)
    found = ExpectedBleu().tune(pool, None, 1).weights
    other = Pool(pool.names, pool.features * [1, 100, 0.01] + 5, pool.stats, pool.starts)
    assert normalize(ExpectedBleu().tune(other, None, 1).weights * [1, 100, 0.01]) == pytest.approx(
        found, abs=1e-3
    )


def test_constant_features_stay_at_0() -> None:
    pool = random_pool(sentences=30, features=3, seed=7)
    pool.features[:, 1] = np.repeat(np.arange(30.0), np.diff(pool.starts))
    found = ExpectedBleu().tune(pool, np.ones(3), 1)
    assert found.weights[1] == 0 and found.weights[0] != 0
    pool.features[:] = 0
    assert not ExpectedBleu().tune(pool, None, 1).weights.any()
