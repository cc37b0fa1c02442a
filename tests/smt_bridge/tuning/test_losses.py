"""Losses of rankers: their values = loops over pairs and lists, their gradients = finite differences."""

import math

import numpy as np
import pytest

from smt_bridge.tuning.losses import Loss, log_loss, pairwise_hinge, structured_hinge

STARTS = np.array([0, 3, 4, 9])
RNG = np.random.default_rng(3)
FEATURES = RNG.normal(size=(9, 4))
GAINS = RNG.normal(size=9)
WEIGHTS = RNG.normal(size=4)


def slopes(loss: Loss, weights: np.ndarray) -> list[float]:
    """Central differences; no corner of a hinge is this near."""
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
