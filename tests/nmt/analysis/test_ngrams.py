"""N-grams that tell systems apart."""

from nmt.analysis.ngrams import NgramConfig, different_ngrams, ngrams, table
from nmt.analysis.systems import System, TestSet

TEST = TestSet(["1", "2", "3"], [["a b c", "a b d", "e"]], tokenize="none")
FIRST = System("first", ["a b c", "a b x", "x"], TEST)
SECOND = System("second", ["b a c", "x", "e e"], TEST)


def test_by_hand() -> None:
    """The first has a b right twice, the second never; c both once. A part that is right as often is left
    out: not a (2 against 1), but b (2 against 1) is no part of an n-gram with these counts."""
    found = [
        (row.better, row.ngram, row.reference, row.matches, row.others)
        for row in different_ngrams([FIRST, SECOND], NgramConfig())
    ]
    assert found == [
        ("first", "a b", 2, 2, 0),
        ("first", "a b c", 1, 1, 0),
        ("first", "a", 2, 2, 1),
        ("first", "b", 2, 2, 1),
        ("second", "e", 1, 1, 0),
    ]


def test_both_directions_of_all_pairs_with_the_first() -> None:
    third = System("third", SECOND.hypotheses, TEST)
    rows = different_ngrams([FIRST, SECOND, third], NgramConfig(count=1))
    pairs = [(row.better, row.worse) for row in rows]
    assert pairs == [("first", "second"), ("second", "first"), ("first", "third"), ("third", "first")]
    assert different_ngrams([FIRST, FIRST], NgramConfig()) == []
    assert list(table(rows).lines())[1] == "first\tsecond\ta b\t2\t2\t2\t0\t0.7500"


def test_of_several_references_the_largest_count_holds() -> None:
    test = TestSet(["1"], [["a a"], ["a b"]], tokenize="none")
    (row, *_) = different_ngrams([System("x", ["a a a"], test), System("y", ["c"], test)], NgramConfig(1))
    assert (row.ngram, row.reference, row.matches) == ("a", 2, 2)


def test_ngrams_are_counted() -> None:
    assert ngrams("a b a".split(), 2) == {("a",): 2, ("b",): 1, ("a", "b"): 1, ("b", "a"): 1}
    assert ngrams([], 4) == {}
