"""Sentences, n-grams and words that systems translate differently."""

import tracemalloc

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from nmt.analysis.differences import (
    DifferenceConfig,
    NgramDifferenceConfig,
    by_frequency,
    difference_histogram,
    different_ngrams,
    frequency_label,
    group_name,
    largest_differences,
    reference_counts,
    sentence_scores,
    word_statistics,
)
from nmt.analysis.systems import SystemOutput, TestSet

# ---- differences -------------------------------------------------------------------------------------------


REFERENCES = ["a b c d e", "f g h i j", "k l m n o", "p q r s t"]
TEST = TestSet(["1", "2", "3", "4"], [REFERENCES])
FIRST = SystemOutput("first", ["a b c d e", "f g x", "y", "p q r s t"], TEST)
SECOND = SystemOutput("second", ["x", "f g h i x", "k l m n o", "p q r s t"], TEST)


def test_the_largest_of_each_direction_come_first() -> None:
    found = largest_differences(FIRST, SECOND, DifferenceConfig())
    assert [row.line for row in found] == [3, 2, 1] and [row.difference > 0 for row in found] == [1, 1, 0]
    assert (found[0].first_text, found[0].second_text, found[0].second) == ("y", "k l m n o", 100)
    assert [row.line for row in largest_differences(FIRST, SECOND, DifferenceConfig(count=1))] == [3, 1]
    back = largest_differences(SECOND, FIRST, DifferenceConfig())
    assert [(row.line, -row.difference) for row in back] == [
        (row.line, row.difference) for row in (found[2], found[0], found[1])
    ]


def test_bleu_of_single_sentences() -> None:
    metric = BLEU(effective_order=True)
    expected = [
        metric.sentence_score(line, [REFERENCES[n]]).score for n, line in enumerate(SECOND.hypotheses)
    ]
    assert sentence_scores(SECOND, "bleu") == pytest.approx(expected)
    assert largest_differences(FIRST, SECOND, DifferenceConfig(metric="bleu"))[0].second == pytest.approx(100)


def test_the_histogram_has_every_sentence_and_a_group_of_equal_ones() -> None:
    groups = difference_histogram(FIRST, SECOND, "chrf")
    assert sum(groups.values()) == 4 and groups["equal"] == 1 and groups["90 to 100"] == 1
    assert next(iter(groups)) == "-100 to -90" and difference_histogram(FIRST, FIRST, "chrf") == {"equal": 4}
    assert [group_name(group) for group in (-2, -1, 0, 1)] == ["-20 to -10", "-10 to 0", "equal", "0 to 10"]
    test = TestSet(["1"], [["a"]])
    first, second = (SystemOutput(str(score), ["a"], test, np.array([score])) for score in (0, 1.1))
    assert list(difference_histogram(first, second, "comet"))[-1] == "100 to 110"  # 100 * 1.1 > 110 in binary


def test_a_translation_that_repeats_itself_does_not_widen_the_histogram() -> None:
    """Its TER can be any number."""
    test = TestSet(["1"], [["a"]])
    first, second = SystemOutput("first", ["a"], test), SystemOutput("second", ["b " * 99], test)
    assert list(difference_histogram(first, second, "ter").items())[-2:] == [
        ("180 to 190", 0),
        ("over 190", 1),
    ]
    assert next(iter(difference_histogram(second, first, "ter").items())) == ("under -190", 1)


# ---- ngrams ------------------------------------------------------------------------------------------------
# N-grams that tell systems apart.


NGRAM_TEST = TestSet(["1", "2", "3"], [["a b c", "a b d", "e"]], tokenize="none")
NGRAM_FIRST = SystemOutput("first", ["a b c", "a b x", "x"], NGRAM_TEST)
NGRAM_SECOND = SystemOutput("second", ["b a c", "x", "e e"], NGRAM_TEST)


def test_ngrams_by_hand() -> None:
    """The first has a b right twice, the second never; c both once. A part that is right as often is left
    out: not a (2 against 1), but b (2 against 1) is no part of an n-gram with these counts."""
    found = [
        (row.better, row.ngram, row.reference, row.matches, row.others)
        for row in different_ngrams([NGRAM_FIRST, NGRAM_SECOND], NgramDifferenceConfig())
    ]
    assert found == [
        ("first", "a b", 2, 2, 0),
        ("first", "a b c", 1, 1, 0),
        ("first", "a", 2, 2, 1),
        ("first", "b", 2, 2, 1),
        ("second", "e", 1, 1, 0),
    ]


def test_both_directions_of_all_pairs_with_the_first() -> None:
    third = SystemOutput("third", NGRAM_SECOND.hypotheses, NGRAM_TEST)
    rows = different_ngrams([NGRAM_FIRST, NGRAM_SECOND, third], NgramDifferenceConfig(count=1))
    pairs = [(row.better, row.worse) for row in rows]
    assert pairs == [("first", "second"), ("second", "first"), ("first", "third"), ("third", "first")]
    assert different_ngrams([NGRAM_FIRST, NGRAM_FIRST], NgramDifferenceConfig()) == []


def test_of_several_references_the_largest_count_holds() -> None:
    test = TestSet(["1"], [["a a"], ["a b"]], tokenize="none")
    (row, *_) = different_ngrams(
        [SystemOutput("x", ["a a a"], test), SystemOutput("y", ["c"], test)], NgramDifferenceConfig(1)
    )
    assert (row.ngram, row.reference, row.matches) == ("a", 2, 2)


def test_ngrams_of_one_sentence_are_kept_at_a_time() -> None:
    """Not those of all sentences, which take a hundred times the memory of the text."""
    lines = ["a b c d e f g h i j k l m n o p"] * 1000
    test = TestSet(lines, [lines], tokenize="none")
    systems = [SystemOutput(name, [f"{name} c d e f"] * 1000, test) for name in ("a b", "z")]
    assert all(test.reference_words + [system.words for system in systems])
    tracemalloc.start()
    assert different_ngrams(systems, NgramDifferenceConfig(count=1))[0].ngram == "a b c d"
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


# ---- frequency ---------------------------------------------------------------------------------------------
# Accuracy of words by their frequency.


FREQUENCY_TEST = TestSet(["x", "y"], [["a a b new", "a c"]], tokenize="none")
COUNTS = {"a": 50, "b": 3, "c": 4, "d": 4}


def test_frequency_by_hand() -> None:
    """The reference has b and c (seen 2 to 4 times), the translation b, d and d of that group; b is right."""
    system = SystemOutput("it", ["a b d d", "b a a"], FREQUENCY_TEST)
    rows = {row.first: row for row in by_frequency([system], COUNTS)}
    assert list(rows) == [0, 2, 10]
    group = rows[2]
    assert (group.last, group.reference, group.hypothesis, group.matches) == (4, 2, 4, 1)
    assert (group.precision, group.recall, group.f1) == pytest.approx((25, 50, 100 / 3))
    assert (rows[0].reference, rows[0].matches, rows[0].f1) == (1, 0, 0)
    assert rows[10].matches == 2  # of each sentence at most as many as the reference has


def test_a_reference_agrees_with_itself() -> None:
    system = SystemOutput("it", FREQUENCY_TEST.references[0], FREQUENCY_TEST)
    assert {row.f1 for row in by_frequency([system], COUNTS)} == {100}
    assert word_statistics(system, COUNTS).sum((0, 1)).tolist() == [6, 6, 6]


def test_without_training_text_the_reference_is_counted() -> None:
    system = SystemOutput("it", ["a a z z", "b"], FREQUENCY_TEST)
    rows = by_frequency([system], reference_counts(FREQUENCY_TEST))
    assert [(row.first, row.reference) for row in rows] == [(1, 3), (2, 3)]  # z stands in no reference


def test_labels() -> None:
    labels = [frequency_label(1, 1), frequency_label(5, 9), frequency_label(1000, None)]
    assert labels == ["1", "5-9", "1000+"]
