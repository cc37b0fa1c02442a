"""Correlation of two scores."""

import math

import numpy as np
import pytest

from nmt.analysis.correlation import correlate, ranks, table
from nmt.errors import DataError


def test_a_monotone_score_has_the_same_ranks_but_not_the_same_numbers() -> None:
    """x 1 2 3 4 against its cube: Spearman is 1, Pearson is not."""
    found = correlate([1, 2, 3, 4], [1, 8, 27, 64])
    assert found.spearman == pytest.approx(1) and 0.9 < found.pearson < 0.999
    assert found.mean_difference == pytest.approx((10 - 100) / 4)
    opposite = correlate([1, 2, 3, 4], [-1, -8, -27, -64])
    assert opposite.pearson == pytest.approx(-found.pearson)


def test_equal_values_share_a_rank() -> None:
    assert ranks(np.array([5.0, 1.0, 5.0, 9.0])).tolist() == [1.5, 0.0, 1.5, 3.0]


def test_only_finite_pairs_count() -> None:
    assert correlate([1, 2, math.inf], [3, 5, 7]).pairs == 2
    with pytest.raises(DataError, match="fewer than two"):
        correlate([1, 2], [math.nan, 1])


def test_a_constant_correlates_with_nothing() -> None:
    found = correlate([1, 1], [1, 2])
    assert math.isnan(found.pearson) and "\tnan\t" in list(table(("a", "b"), found).lines())[1]
