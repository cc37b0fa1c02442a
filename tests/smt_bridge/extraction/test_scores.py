"""phi with and without smoothing, and orientation probabilities."""

import numpy as np
import pytest

from smt_bridge.extraction.scores import MOST, Counts, Totals, orientation_scores, phi


def counted(*joint: int) -> tuple[Counts, Totals]:
    """Pairs of one source, each with a target of its own."""
    numbers = np.array(joint)
    totals = Totals()
    totals.add(numbers)
    counts = Counts(
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
    together, apart = Totals(), Totals()
    together.add(np.array([1, 1, 2, 30]))
    for part in ([1], [1, 2], [30]):
        apart.add(np.array(part))
    assert apart.counts_of_counts.tolist() == together.counts_of_counts.tolist()
    assert apart.counts_of_counts.tolist() == [0, 2, 1] + [0] * (MOST - 1)
    assert apart.pairs == together.pairs == 4


def test_without_counts_of_counts_nothing_is_discounted() -> None:
    totals = counted(7, 9)[1]
    assert totals.good_turing().tolist() == [1.0] * (MOST + 1) and not totals.kneser_ney().any()


def test_orientations_of_a_side_sum_to_1() -> None:
    found = orientation_scores(np.array([[3, 0, 1, 4, 0, 0]]))
    assert found[0].tolist() == pytest.approx(
        [3.5 / 5.5, 0.5 / 5.5, 1.5 / 5.5, 4.5 / 5.5, 0.5 / 5.5, 0.5 / 5.5]
    )
    assert found.reshape(-1, 3).sum(1).tolist() == pytest.approx([1, 1])
