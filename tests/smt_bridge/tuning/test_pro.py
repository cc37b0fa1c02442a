"""PRO: sentence BLEU, and which pairs it learns from."""

import numpy as np
import pytest

from smt_bridge.tuning.pro import Pro, smoothed_bleu
from tests.smt_bridge.tuning.test_mert import random_pool


def test_smoothed_bleu() -> None:
    whole = np.array([4, 4, 3, 3, 2, 2, 1, 1, 4.0])
    nothing = np.array([0, 4, 0, 3, 0, 2, 0, 1, 4.0])
    some = np.array([1, 4, 0, 3, 0, 2, 0, 1, 4.0])
    assert smoothed_bleu(np.stack([whole, nothing])).tolist() == [pytest.approx(1), 0]
    assert smoothed_bleu(some[None])[0] == pytest.approx((1 / 4 * 1 / 4 * 1 / 3 * 1 / 2) ** 0.25)


def test_pairs_that_hardly_differ_are_left_out() -> None:
    pool = random_pool(seed=4)
    assert np.abs(Pro().tune(pool, None, 1).weights).sum() == pytest.approx(1)
    assert not Pro(min_difference=2.0).tune(pool, None, 1).weights.any()
    again = Pro().tune(pool, np.ones(3), 1, threads=2)  # there is no starting point
    assert (again.weights == Pro().tune(pool, None, 1).weights).all()
