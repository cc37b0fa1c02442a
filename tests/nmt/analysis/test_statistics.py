"""Confidence intervals, paired bootstrap resampling, correlation."""

import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from nmt.analysis.buckets import by_length, cumulative_buckets, sliding_buckets
from nmt.analysis.statistics import (
    bleu_scores,
    bootstrap_intervals,
    bucket_intervals,
    compare_further,
    correlate,
    paired_bootstrap,
    percentile_intervals,
    ranks,
    read_scores,
    resampled_sums,
)
from nmt.analysis.systems import SystemOutput, TestSet
from nmt.errors import ConfigError, DataError
from nmt.metrics import corpus_bleu
from tests.spaceless import japanese

# ---- buckets -----------------------------------------------------------------------------------------------
# Groups of sentences.


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


LENGTH_SOURCES = ["a b", "a b c", "a b c d e f", "a b c d e"]
LENGTH_REFERENCES = ["x y z v w", "x y z v", "x y z v w u", "x y z v"]
LENGTH_HYPOTHESES = ["x y z v w", "x y z u", "x y z v w u", "v z y x"]
LENGTH_SYSTEM = SystemOutput("it", LENGTH_HYPOTHESES, TestSet(LENGTH_SOURCES, [LENGTH_REFERENCES]))


def test_window_one_is_each_length_alone_and_sizes_sum() -> None:
    result = by_length([LENGTH_SYSTEM], window=1, least=1)
    assert [(b.key, b.sentences) for b in result["it"]["source"]] == [(2, 1), (3, 1), (5, 1), (6, 1)]
    assert [(b.key, b.sentences) for b in result["it"]["reference"]] == [(4, 2), (5, 1), (6, 1)]
    assert [(b.key, b.sentences) for b in result["it"]["both"]] == [(4, 1), (5, 2), (6, 1)]
    result_of_two = by_length([LENGTH_SYSTEM], window=1, least=2)["it"]
    assert [b.key for b in result_of_two["reference"]] == [4] and not result_of_two["source"]
    four = corpus_bleu(
        [LENGTH_HYPOTHESES[1], LENGTH_HYPOTHESES[3]], [[LENGTH_REFERENCES[1], LENGTH_REFERENCES[3]]]
    )
    assert result["it"]["reference"][0].bleu == pytest.approx(four.score)


def test_a_window_over_everything_is_corpus_bleu() -> None:
    result = by_length([LENGTH_SYSTEM], window=40)
    whole = corpus_bleu(LENGTH_HYPOTHESES, [LENGTH_REFERENCES])
    assert all(
        b.bleu == pytest.approx(whole.score) and b.sentences == 4
        for curve in result["it"].values()
        for b in curve
    )
    assert LENGTH_SYSTEM.bleu() == whole


def test_lines_without_blanks_have_lengths_of_their_own() -> None:
    """Japanese references were all one word long, so that the curve had one point."""
    pairs = japanese(40)
    test = TestSet(
        [source for source, _ in pairs], [[target * (1 + n % 4) for n, (_, target) in enumerate(pairs)]]
    )
    curve = by_length([SystemOutput("it", test.references[0], test)], window=1, least=1)["it"]["reference"]
    assert len(curve) > 8 and sum(bucket.sentences for bucket in curve) == 40


# ---- resampling --------------------------------------------------------------------------------------------
# BLEU of many groups at once, and bootstrap resampling.


RNG = np.random.default_rng(5)
SENTENCES = 60
REFERENCES = [" ".join(RNG.choice(list("abcdef"), RNG.integers(1, 12))) for _ in range(SENTENCES)]
HYPOTHESES = [
    line if number % 3 else " ".join(RNG.choice(list("abcxyz"), RNG.integers(0, 9)))
    for number, line in enumerate(REFERENCES)
]
SYSTEM = SystemOutput("it", HYPOTHESES, TestSet(REFERENCES, [REFERENCES], tokenize="none"))
LENGTHS = [len(line.split()) for line in REFERENCES]


def test_bleu_is_sacrebleus() -> None:
    """Of each sentence, of random groups of them, and of none."""
    rows = SYSTEM.bleu_statistics.rows
    metric = BLEU(tokenize="none", effective_order=True)
    alone = [
        metric.sentence_score(ours, [theirs]).score
        for ours, theirs in zip(HYPOTHESES, REFERENCES, strict=True)
    ]
    assert bleu_scores(rows, effective_order=True) == pytest.approx(np.array(alone), abs=1e-9)
    masks = [RNG.random(SENTENCES) < share for share in (0, 0.02, 0.05, 0.1, 0.5, 1)] + [
        np.arange(SENTENCES) == row for row in range(SENTENCES)
    ]
    together = bleu_scores(np.array([rows[mask].sum(0) for mask in masks]))
    assert together == pytest.approx(np.array([SYSTEM.bleu(mask).score for mask in masks]), abs=1e-9)


def test_resampled_sums_are_those_of_drawn_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, groups = SYSTEM.bleu_statistics.rows, np.array(LENGTHS)
    sums = resampled_sums(rows, groups, 13, samples=7, seed=3)
    rng = np.random.default_rng(3)
    for drawn, found in zip(rng.integers(0, SENTENCES, (7, SENTENCES)), sums, strict=True):
        expected = np.zeros((13, 10))
        np.add.at(expected, groups[drawn], rows[drawn])
        assert (found == expected).all()
    monkeypatch.setattr("nmt.analysis.statistics.DRAWN_AT_ONCE", 1)  # one sample at a time draws the same
    assert (resampled_sums(rows, groups, 13, samples=7, seed=3) == sums).all()


@pytest.mark.parametrize(
    "group", [cumulative_buckets, lambda keys, system: sliding_buckets(keys, system, 4, least=5)]
)
def test_intervals_of_buckets_are_those_of_each_alone(group) -> None:  # type: ignore[no-untyped-def]
    buckets = group(LENGTHS, SYSTEM)
    found = bucket_intervals(SYSTEM.bleu_statistics, LENGTHS, buckets, samples=50)
    keys = np.array(LENGTHS)
    for bucket, interval in zip(buckets, found, strict=True):
        inside = (keys >= bucket.first) & (keys <= bucket.last)
        sums = resampled_sums(SYSTEM.bleu_statistics.rows, inside.astype(np.int64), 2, samples=50)[:, 1:]
        assert interval == pytest.approx(percentile_intervals(bleu_scores(sums))[0])
        if bucket.sentences > 20:
            assert interval[0] < bucket.bleu < interval[1]
    assert bucket_intervals(SYSTEM.bleu_statistics, LENGTHS, [], samples=50) == []


def test_more_sentences_make_a_narrower_interval() -> None:
    rows = SYSTEM.bleu_statistics.rows
    (few,), (many,) = (
        bootstrap_intervals(given, lambda sums: bleu_scores(sums)[:, None], 200)
        for given in (rows, np.tile(rows, (9, 1)))
    )
    whole = SYSTEM.bleu().score
    assert few[0] < many[0] < whole < many[1] < few[1]
    assert (few[1] - few[0]) / (many[1] - many[0]) == pytest.approx(3, rel=0.25)


# ---- significance ------------------------------------------------------------------------------------------


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.ci
def test_a_better_system_is_seen_and_noise_is_not(
    command: Command, refused: Callable[..., str], tmp_path: Path
) -> None:
    reference = [f"a{n % 7} b{n % 5} c d e{n % 3} f" for n in range(100)]
    base = [line if n % 2 else "z " + line[3:] for n, line in enumerate(reference)]
    better = [line if n % 4 else "z " + line[3:] for n, line in enumerate(reference)]
    other = [line if n % 2 == 0 else "z " + line[3:] for n, line in enumerate(reference)]
    for name, lines in (("r", reference), ("base", base), ("better", better), ("other", other)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    compare = "nmt-analyze compare -r r --baseline base --hypothesis".split()
    options = "--bleu-tokenize none --samples 300".split()
    done = command(*compare, "better", "other", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {row.split("\t")[0]: row.split("\t")[1:] for row in done.stdout.split("\n")[1:-1]}
    assert (
        float(rows["base"][0]) == round(corpus_bleu(base, [reference], "none").score, 2)
        and rows["base"][3] == ""
    )
    assert float(rows["better"][3]) < 0.01 < 0.1 < float(rows["other"][3])
    assert "bs:300" in done.stderr
    (tmp_path / "copy").write_bytes((tmp_path / "base").read_bytes())
    assert "the same output as base" in refused(command(*compare, "copy", cwd=tmp_path))
    (tmp_path / "r").write_text("a\n")
    assert "r: 1 line, but" in refused(command(*compare, "better", cwd=tmp_path))


def test_every_text_has_a_line_for_each_sentence() -> None:
    for systems, reference, sizes in (
        (["a", "b"], ["c"], "1 line, expected 2"), (["a"], ["c", "d"], "2 lines, expected 1")
    ):  # fmt: skip
        with pytest.raises(DataError, match=f"reference 1: {sizes}, one for each hypothesis"):
            paired_bootstrap(["first", "second"], [systems, ["x"] * len(systems)], [reference])


@pytest.mark.parametrize("count", ["0 names", "1 name", "3 names"])
def test_every_system_has_a_name(count: str) -> None:
    with pytest.raises(DataError, match=f"{count}, 2 systems; give each system a name"):
        paired_bootstrap(["a", "b", "c"][: int(count[0])], [HYPOTHESES, REFERENCES], [REFERENCES])


def test_equal_scores_do_not_differ_significantly() -> None:
    """Outputs that differ in case alone, which neither the scores nor TER regard."""
    test = TestSet(REFERENCES, [REFERENCES], lowercase=True)
    lower, upper = HYPOTHESES, [line.upper() for line in HYPOTHESES]
    with pytest.raises(ConfigError, match="samples=0: expected 1 or more"):
        paired_bootstrap(["lower", "upper"], [lower, upper], [REFERENCES], samples=0)
    rows, _ = paired_bootstrap(["lower", "upper"], [lower, upper], [REFERENCES], samples=20, lowercase=True)
    assert (rows[0].p, rows[0].chrf_p, rows[1].p, rows[1].chrf_p) == (None, None, 1, 1)
    systems = [SystemOutput(lines[0], lines, test) for lines in (lower, upper)]
    assert [result.p for result in compare_further(systems, "ter", samples=20)] == [None, 1]


# ---- correlation -------------------------------------------------------------------------------------------
# Correlation of two scores.


def test_a_monotone_score_has_the_same_ranks_but_not_the_same_numbers() -> None:
    """x 1 2 3 4 against its cube: Spearman is 1, Pearson is not."""
    found = correlate([1, 2, 3, 4], [1, 8, 27, 64])
    assert found.spearman == pytest.approx(1) and 0.9 < found.pearson < 0.999
    assert found.mean_difference == pytest.approx((10 - 100) / 4)
    opposite = correlate([1, 2, 3, 4], [-1, -8, -27, -64])
    assert opposite.pearson == pytest.approx(-found.pearson)


def test_equal_values_share_a_rank() -> None:
    assert ranks(np.array([5.0, 1.0, 5.0, 9.0])).tolist() == [1.5, 0.0, 1.5, 3.0]


def test_scores_are_read_strictly(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("-1.5 2\n-inf\n1_0\n")
    with pytest.raises(DataError, match="s:3: expected a number first"):
        read_scores(str(tmp_path / "s"))
    (tmp_path / "s").write_text("-1.5 2\n-inf\n")
    assert read_scores(str(tmp_path / "s")) == [-1.5, -math.inf]


def test_only_finite_pairs_count() -> None:
    assert correlate([1, 2, math.inf], [3, 5, 7]).pairs == 2
    with pytest.raises(DataError, match="fewer than two"):
        correlate([1, 2], [math.nan, 1])
    with pytest.raises(DataError, match="scores to correlate: 2 and 1; give two"):
        correlate([1, 2], [2])


def test_a_constant_correlates_with_nothing() -> None:
    """Nor where the mean of equal numbers is not exactly that number, as for 0.1."""
    for constant in (1.0, 0.1):
        found = correlate([constant] * 3, [1, 2, 3])
        assert math.isnan(found.pearson) and math.isnan(found.spearman)
