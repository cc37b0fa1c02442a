"""Groups of sentences."""

import pytest

from nmt.analysis.buckets import by_length, by_side, cumulative_buckets, curve_table, sliding_buckets
from nmt.analysis.systems import SystemOutput, TestSet
from nmt.metrics import corpus_bleu
from tests.spaceless import japanese


def test_a_window_of_ten_by_hand() -> None:
    """Key 9 holds the lengths 4 to 13."""
    constant = SystemOutput("it", ["a b c d"] * 14, TestSet(["a"] * 14, [["a b c d"] * 14]))
    buckets = {b.key: b for b in sliding_buckets(list(range(1, 15)), constant, window=10)}
    assert all(
        (b.bleu, b.chrf, b.ratio) == pytest.approx((100, 100, 1))
        for b in sliding_buckets(list(range(1, 15)), constant, window=1)
    )  # flat
    assert (buckets[9].first, buckets[9].last, buckets[9].sentences) == (4, 13, 10)
    assert (buckets[1].first, buckets[1].sentences) == (-4, 5)


def test_cumulative_groups_grow_to_the_whole() -> None:
    system = SystemOutput("it", ["a b", "c", "x"], TestSet(["a"] * 3, [["a b", "c", "y"]]))
    buckets = cumulative_buckets([0, 2, 2], system)
    assert [(b.first, b.last, b.sentences) for b in buckets] == [(0, 0, 1), (0, 1, 1), (0, 2, 3)]
    assert buckets[-1].chrf == system.chrf().score < buckets[0].chrf == pytest.approx(100)
    assert cumulative_buckets([], system) == sliding_buckets([], system, 1) == []


def test_both_is_the_larger_side() -> None:
    assert by_side([1, 5], [2, 3])["both"] == [2, 5]


SOURCES = ["a b", "a b c", "a b c d e f", "a b c d e"]
REFERENCES = ["x y z v w", "x y z v", "x y z v w u", "x y z v"]
HYPOTHESES = ["x y z v w", "x y z u", "x y z v w u", "v z y x"]
SYSTEM = SystemOutput("it", HYPOTHESES, TestSet(SOURCES, [REFERENCES]))


def test_window_one_is_each_length_alone_and_sizes_sum() -> None:
    result = by_length([SYSTEM], window=1, least=1)
    assert [(b.key, b.sentences) for b in result["it"]["source"]] == [(2, 1), (3, 1), (5, 1), (6, 1)]
    assert [(b.key, b.sentences) for b in result["it"]["reference"]] == [(4, 2), (5, 1), (6, 1)]
    assert [(b.key, b.sentences) for b in result["it"]["both"]] == [(4, 1), (5, 2), (6, 1)]
    four = corpus_bleu([HYPOTHESES[1], HYPOTHESES[3]], [[REFERENCES[1], REFERENCES[3]]])
    assert result["it"]["reference"][0].bleu == pytest.approx(four.score)


def test_a_window_over_everything_is_corpus_bleu() -> None:
    result = by_length([SYSTEM], window=40)
    whole = corpus_bleu(HYPOTHESES, [REFERENCES])
    assert all(
        b.bleu == pytest.approx(whole.score) and b.sentences == 4
        for curve in result["it"].values()
        for b in curve
    )
    assert SYSTEM.bleu() == whole


def test_small_groups_are_left_out() -> None:
    result = by_length([SYSTEM], window=1, least=2)
    assert [b.key for b in result["it"]["reference"]] == [4] and not result["it"]["source"]


def test_tsv() -> None:
    lines = list(curve_table(by_length([SYSTEM], window=1, least=1), "length").lines())
    assert lines[0] == "by\tlength\tfirst\tlast\tsentences\tbleu\tlength_ratio\tchrf\tsystem"
    assert lines[1] == "source\t2\t2\t2\t1\t100.0000\t1.0000\t100.0000\tit"


def test_lines_without_blanks_have_lengths_of_their_own() -> None:
    """Japanese references were all one word long, so that the curve had one point."""
    pairs = japanese(40)
    test = TestSet(
        [source for source, _ in pairs], [[target * (1 + n % 4) for n, (_, target) in enumerate(pairs)]]
    )
    curve = by_length([SystemOutput("it", test.references[0], test)], window=1, least=1)["it"]["reference"]
    assert len(curve) > 8 and sum(bucket.sentences for bucket in curve) == 40
