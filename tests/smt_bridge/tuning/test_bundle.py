"""The bundle method finds the minimum that a grid finds, and knows how near it is."""

import numpy as np
import pytest

from smt_bridge.tuning import bundle
from smt_bridge.tuning.losses import pairwise_hinge


@pytest.mark.parametrize("ridge", [1.0, 0.1, 0.01])
def test_the_minimum_of_a_loss_with_corners(ridge: float) -> None:
    rng = np.random.default_rng(1)
    loss = pairwise_hinge(rng.normal([0.7, -0.2], size=(40, 2)), rng.uniform(0.2, 2, 40))

    def cost(weights: np.ndarray) -> float:
        return loss(weights)[0] + ridge * float(weights @ weights) / 2

    found = bundle.minimize(loss, 2, ridge, 1e-4, 500)
    axis = np.linspace(-6, 6, 81)
    least = min(cost(np.array([one, other])) for one in axis for other in axis)
    assert cost(found) <= least * (1 + 1e-4)
    for step in (*np.eye(2), *-np.eye(2)):
        assert cost(found + 0.1 * step) > cost(found)
    loose = bundle.minimize(loss, 2, ridge, 0.2)
    assert cost(found) * (1 - 1e-12) <= cost(loose) <= least * 1.25


def test_a_single_corner_is_met_exactly() -> None:
    """max(0, 1 - w) + w² / 20 is lowest at the corner."""
    found = bundle.minimize(pairwise_hinge(np.ones((1, 1)), np.ones(1)), 1, 0.1, 1e-9)
    assert found[0] == pytest.approx(1)


def test_shares_are_of_the_simplex() -> None:
    rng = np.random.default_rng(2)
    slopes, heights = rng.normal(size=(6, 3)), rng.normal(size=6)
    shares = bundle.mix(slopes, heights, 0.5, np.eye(6)[0])
    assert shares.sum() == pytest.approx(1) and (shares >= 0).all()
    weights = -(slopes.T @ shares) / 0.5
    values = slopes @ weights + heights
    assert values[shares > 1e-9] == pytest.approx(values.max())  # only the tangents that bound the minimum
