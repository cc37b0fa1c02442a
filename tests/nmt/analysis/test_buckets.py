"""Groups of sentences."""

import pytest

from nmt.analysis.buckets import at_most, by_side, sliding
from nmt.analysis.systems import System, TestSet


def test_a_window_of_ten_by_hand() -> None:
    """Key 9 holds the lengths 4 to 13."""
    constant = System("it", ["a b c d"] * 14, TestSet(["a"] * 14, [["a b c d"] * 14]))
    buckets = {b.key: b for b in sliding(list(range(1, 15)), constant, window=10)}
    assert all(
        (b.bleu, b.chrf, b.ratio) == pytest.approx((100, 100, 1))
        for b in sliding(list(range(1, 15)), constant, window=1)
    )  # flat
    assert (buckets[9].first, buckets[9].last, buckets[9].sentences) == (4, 13, 10)
    assert (buckets[1].first, buckets[1].sentences) == (-4, 5)


def test_cumulative_groups_grow_to_the_whole() -> None:
    system = System("it", ["a b", "c", "x"], TestSet(["a"] * 3, [["a b", "c", "y"]]))
    buckets = at_most([0, 2, 2], system)
    assert [(b.first, b.last, b.sentences) for b in buckets] == [(0, 0, 1), (0, 1, 1), (0, 2, 3)]
    assert buckets[-1].chrf == system.chrf().score < buckets[0].chrf == pytest.approx(100)
    assert at_most([], system) == sliding([], system, 1) == []


def test_both_is_the_larger_side() -> None:
    assert by_side([1, 5], [2, 3])["both"] == [2, 5]
