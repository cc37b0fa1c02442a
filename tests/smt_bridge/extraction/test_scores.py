"""phi with and without smoothing, and orientation probabilities."""

import numpy as np
import pytest

from smt_bridge.extraction.scores import (
    MAX_COUNT,
    CorpusTotals,
    PairCounts,
    WordTable,
    condense,
    distinct_pairs,
    larger_alignment,
    lexical_weights,
    merge_rows,
    most_frequent,
    orientation_scores,
    phi,
)

# ---- test counts -------------------------------------------------------------------------------------------
# Distinct pairs: sums, the alignment that is kept, and lexical weights.


def square(*points: tuple[int, int]) -> np.uint64:
    return np.uint64(sum(1 << (8 * i + j) for i, j in points))


def test_instances_are_summed_in_any_order() -> None:
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 3, (60, 2)).astype(np.uint64)
    squares = rng.integers(1, 3, 60).astype(np.uint64)
    ways = rng.integers(0, 9, 60).astype(np.uint8)
    whole = distinct_pairs(condense(keys, squares, ways))
    parts = np.vstack([condense(keys[at::2], squares[at::2], ways[at::2]) for at in (0, 1)])
    again = distinct_pairs(parts)
    assert whole.count.sum() == 60 and (whole.count == again.count).all()
    assert (whole.keys == again.keys).all() and (whole.ways == again.ways).all()
    assert (whole.ways[:, :3].sum(1) == whole.count).all() and (whole.ways[:, 3:].sum(1) == whole.count).all()
    assert (whole.direct == again.direct).all() and (whole.inverse == again.inverse).all()
    assert len(merge_rows(np.zeros((0, 10), np.uint64))) == 0


def test_the_most_frequent_alignment_wins_and_of_equals_the_larger() -> None:
    one, other = square((0, 0)), square((0, 1))
    for counts, expected in (([2, 1], one), ([1, 2], other)):
        assert most_frequent(np.array([0]), np.array([one, other]), np.array(counts), True)[0] == expected
    tied = most_frequent(np.array([0]), np.array([one, other]), np.array([1, 1]), True)[0]
    assert larger_alignment(np.uint64(tied), one if tied == other else other, True)


def test_an_order_of_alignments() -> None:
    squares = [square((0, 0)), square((0, 1)), square((1, 0)), square((0, 0), (1, 1)), square((0, 0), (0, 1))]
    for by_target in (False, True):
        for a in squares:
            assert not larger_alignment(a, a, by_target)
            for b in squares:
                assert a == b or larger_alignment(a, b, by_target) != larger_alignment(b, a, by_target)


def test_lexical_weights() -> None:
    """Words 1 and 2 of the source, 1 and 2 of the target; 2-2 is linked once, 1-1 and 1-2 three times."""
    table = WordTable(3)
    table.add(np.array([1, 1, 1, 1, 2]), np.array([1, 1, 1, 2, 2]))
    table.finish()
    source, target = np.array([[1, 2, 0]], np.int32), np.array([[1, 2, 0]], np.int32)
    squares = np.array([square((0, 0), (0, 1), (1, 1))])
    weight = lexical_weights(table.keys, table.direct, table.targets, source, target, squares, True)
    assert weight[0] == pytest.approx(0.75 * (0.25 + 1) / 2)
    unlinked = lexical_weights(
        table.keys, table.direct, table.targets, source, target, np.zeros(1, np.uint64), True
    )
    assert unlinked[0] == 1  # NULL was never seen with them


# ---- test scores -------------------------------------------------------------------------------------------


def counted(*joint: int) -> tuple[PairCounts, CorpusTotals]:
    """Pairs of one source, each with a target of its own."""
    numbers = np.array(joint)
    totals = CorpusTotals()
    totals.add(numbers)
    counts = PairCounts(
        joint=numbers,
        target=numbers,
        source=np.full(len(numbers), numbers.sum()),
        target_partners=np.ones_like(numbers),
        source_partners=np.full(len(numbers), len(numbers)),
    )
    return counts, totals


def test_relative_frequencies() -> None:
    inverse, direct = phi(*counted(1, 2, 5), "none")
    assert direct.tolist() == pytest.approx([1 / 8, 2 / 8, 5 / 8])
    assert inverse.tolist() == [1, 1, 1]


def test_smoothing_discounts_rare_pairs_more() -> None:
    joint = [1] * 40 + [2] * 12 + [3] * 5 + [4] * 3 + [20]
    counts, totals = counted(*joint)
    plain = phi(counts, totals, "none")[1]
    turing = phi(counts, totals, "good-turing")[1] / plain
    assert turing[0] == pytest.approx(2 * 12 / 40) and turing[0] < turing[40] <= 1
    assert turing[-1] == 1  # above MOST
    # Of equal partners each gets back what it gave; without partners the discount is lost.
    assert phi(counts, totals, "kneser-ney")[1] == pytest.approx(plain)
    counts.target_partners = np.zeros_like(counts.joint)
    lost = 1 - phi(counts, totals, "kneser-ney")[1] / plain
    assert lost[0] > lost[-1] > 0


def test_totals_are_those_of_all_parts() -> None:
    together, apart = CorpusTotals(), CorpusTotals()
    together.add(np.array([1, 1, 2, 30]))
    for part in ([1], [1, 2], [30]):
        apart.add(np.array(part))
    assert apart.counts_of_counts.tolist() == together.counts_of_counts.tolist()
    assert apart.counts_of_counts.tolist() == [0, 2, 1] + [0] * (MAX_COUNT - 1)
    assert apart.pairs == together.pairs == 4


def test_without_counts_of_counts_nothing_is_discounted() -> None:
    totals = counted(7, 9)[1]
    assert totals.good_turing().tolist() == [1.0] * (MAX_COUNT + 1) and not totals.kneser_ney().any()


def test_orientations_of_a_side_sum_to_1() -> None:
    found = orientation_scores(np.array([[3, 0, 1, 4, 0, 0]]))
    assert found[0].tolist() == pytest.approx(
        [3.5 / 5.5, 0.5 / 5.5, 1.5 / 5.5, 4.5 / 5.5, 0.5 / 5.5, 0.5 / 5.5]
    )
    assert found.reshape(-1, 3).sum(1).tolist() == pytest.approx([1, 1])
