"""Accuracy of words by their frequency."""

import pytest

from nmt.analysis.frequency import by_frequency, label, reference_counts, table, word_statistics
from nmt.analysis.systems import System, TestSet

TEST = TestSet(["x", "y"], [["a a b new", "a c"]], tokenize="none")
COUNTS = {"a": 50, "b": 3, "c": 4, "d": 4}


def test_by_hand() -> None:
    """The reference has b and c (seen 2 to 4 times), the translation b, d and d of that group; b is right."""
    system = System("it", ["a b d d", "b a a"], TEST)
    rows = {row.first: row for row in by_frequency([system], COUNTS)}
    assert list(rows) == [0, 2, 10]
    group = rows[2]
    assert (group.last, group.reference, group.hypothesis, group.matches) == (4, 2, 4, 1)
    assert (group.precision, group.recall, group.f1) == pytest.approx((25, 50, 100 / 3))
    assert (rows[0].reference, rows[0].matches, rows[0].f1) == (1, 0, 0)
    assert rows[10].matches == 2  # of each sentence at most as many as the reference has
    assert list(table(rows.values()).lines())[2] == "it\t2\t4\t2\t4\t1\t25.00\t50.00\t33.33"


def test_a_reference_agrees_with_itself() -> None:
    system = System("it", TEST.references[0], TEST)
    assert {row.f1 for row in by_frequency([system], COUNTS)} == {100}
    assert word_statistics(system, COUNTS).sum((0, 1)).tolist() == [6, 6, 6]


def test_without_training_text_the_reference_is_counted() -> None:
    system = System("it", ["a a z z", "b"], TEST)
    rows = by_frequency([system], reference_counts(TEST))
    assert [(row.first, row.reference) for row in rows] == [(1, 3), (2, 3)]  # z stands in no reference


def test_labels() -> None:
    assert [label(1, 1), label(5, 9), label(1000, None)] == ["1", "5-9", "1000+"]
