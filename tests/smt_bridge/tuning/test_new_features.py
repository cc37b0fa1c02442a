"""Weights of new features to start from: each is the best for itself."""

import numpy as np
import pytest

from smt_bridge.tuning.new_features import LIMITS, fit_alone
from smt_bridge.tuning.pool import Pool
from tests.smt_bridge.tuning.test_mert import random_pool

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
