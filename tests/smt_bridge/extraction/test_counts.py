"""Distinct pairs: sums, the alignment that is kept, and lexical weights."""

import numpy as np
import pytest

from smt_bridge.extraction.counts import WordTable, choose, condensed, larger, lexical, merged, pairs_of


def square(*points: tuple[int, int]) -> np.uint64:
    return np.uint64(sum(1 << (8 * i + j) for i, j in points))


def test_instances_are_summed_in_any_order() -> None:
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 3, (60, 2)).astype(np.uint64)
    squares = rng.integers(1, 3, 60).astype(np.uint64)
    ways = rng.integers(0, 9, 60).astype(np.uint8)
    whole = pairs_of(condensed(keys, squares, ways))
    parts = np.vstack([condensed(keys[at::2], squares[at::2], ways[at::2]) for at in (0, 1)])
    again = pairs_of(parts)
    assert whole.count.sum() == 60 and (whole.count == again.count).all()
    assert (whole.keys == again.keys).all() and (whole.ways == again.ways).all()
    assert (whole.ways[:, :3].sum(1) == whole.count).all() and (whole.ways[:, 3:].sum(1) == whole.count).all()
    assert (whole.direct == again.direct).all() and (whole.inverse == again.inverse).all()
    assert len(merged(np.zeros((0, 10), np.uint64))) == 0


def test_the_most_frequent_alignment_wins_and_of_equals_the_larger() -> None:
    one, other = square((0, 0)), square((0, 1))
    for counts, expected in (([2, 1], one), ([1, 2], other)):
        assert choose(np.array([0]), np.array([one, other]), np.array(counts), True)[0] == expected
    tied = choose(np.array([0]), np.array([one, other]), np.array([1, 1]), True)[0]
    assert larger(np.uint64(tied), one if tied == other else other, True)


def test_an_order_of_alignments() -> None:
    squares = [square((0, 0)), square((0, 1)), square((1, 0)), square((0, 0), (1, 1)), square((0, 0), (0, 1))]
    for by_target in (False, True):
        for a in squares:
            assert not larger(a, a, by_target)
            for b in squares:
                assert a == b or larger(a, b, by_target) != larger(b, a, by_target)


def test_lexical_weights() -> None:
    """Words 1 and 2 of the source, 1 and 2 of the target; 2-2 is linked once, 1-1 and 1-2 three times."""
    table = WordTable(3)
    table.add(np.array([1, 1, 1, 1, 2]), np.array([1, 1, 1, 2, 2]))
    table.finish()
    source, target = np.array([[1, 2, 0]], np.int32), np.array([[1, 2, 0]], np.int32)
    squares = np.array([square((0, 0), (0, 1), (1, 1))])
    weight = lexical(table.keys, table.direct, table.targets, source, target, squares, True)
    assert weight[0] == pytest.approx(0.75 * (0.25 + 1) / 2)
    unlinked = lexical(table.keys, table.direct, table.targets, source, target, np.zeros(1, np.uint64), True)
    assert unlinked[0] == 1  # NULL was never seen with them
