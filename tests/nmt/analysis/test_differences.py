"""Sentences by the difference between two systems."""

import pytest
from sacrebleu.metrics.bleu import BLEU

from nmt.analysis.differences import (
    DifferenceConfig,
    group_name,
    histogram,
    largest_differences,
    sentence_scores,
    table,
)
from nmt.analysis.systems import System, TestSet

REFERENCES = ["a b c d e", "f g h i j", "k l m n o", "p q r s t"]
TEST = TestSet(["1", "2", "3", "4"], [REFERENCES])
FIRST = System("first", ["a b c d e", "f g x", "y", "p q r s t"], TEST)
SECOND = System("second", ["x", "f g h i x", "k l m n o", "p q r s t"], TEST)


def test_the_largest_of_each_direction_come_first() -> None:
    found = largest_differences(FIRST, SECOND, DifferenceConfig())
    assert [row.line for row in found] == [3, 2, 1] and [row.difference > 0 for row in found] == [1, 1, 0]
    assert (found[0].first_text, found[0].second_text, found[0].second) == ("y", "k l m n o", 100)
    assert [row.line for row in largest_differences(FIRST, SECOND, DifferenceConfig(count=1))] == [3, 1]
    back = largest_differences(SECOND, FIRST, DifferenceConfig())
    assert [(row.line, -row.difference) for row in back] == [
        (row.line, row.difference) for row in (found[2], found[0], found[1])
    ]
    assert list(table(found).lines())[1].startswith("3\t100.00\t0.00\t100.00\t3\tk l m n o\ty\t")


def test_bleu_of_single_sentences() -> None:
    metric = BLEU(effective_order=True)
    expected = [
        metric.sentence_score(line, [REFERENCES[n]]).score for n, line in enumerate(SECOND.hypotheses)
    ]
    assert sentence_scores(SECOND, "bleu") == pytest.approx(expected)
    assert largest_differences(FIRST, SECOND, DifferenceConfig(metric="bleu"))[0].second == pytest.approx(100)


def test_the_histogram_has_every_sentence_and_a_group_of_equal_ones() -> None:
    groups = histogram(FIRST, SECOND, "chrf")
    assert sum(groups.values()) == 4 and groups["equal"] == 1 and groups["90 to 100"] == 1
    assert next(iter(groups)) == "-100 to -90" and histogram(FIRST, FIRST, "chrf") == {"equal": 4}
    assert [group_name(group) for group in (-2, -1, 0, 1)] == ["-20 to -10", "-10 to 0", "equal", "0 to 10"]
