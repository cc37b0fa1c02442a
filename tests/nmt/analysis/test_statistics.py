"""Confidence intervals, paired bootstrap resampling, correlation."""

import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from nmt.analysis.buckets import cumulative_buckets, sliding_buckets
from nmt.analysis.statistics import (
    bleu_scores,
    bootstrap_intervals,
    bucket_intervals,
    correlate,
    percentile_intervals,
    ranks,
    resampled_sums,
)
from nmt.analysis.systems import SystemOutput, TestSet
from nmt.errors import DataError
from nmt.metrics import corpus_bleu

# ---- test resampling ---------------------------------------------------------------------------------------
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


# ---- test significance -------------------------------------------------------------------------------------


Command = Callable[..., subprocess.CompletedProcess[str]]


def test_a_better_system_is_seen_and_noise_is_not(
    command: Command, refused: Callable[..., str], tmp_path: Path
) -> None:
    reference = [f"a{n % 7} b{n % 5} c d e{n % 3} f" for n in range(100)]
    base = [line if n % 2 else "z " + line[3:] for n, line in enumerate(reference)]
    better = [line if n % 4 else "z " + line[3:] for n, line in enumerate(reference)]
    other = [line if n % 2 == 0 else "z " + line[3:] for n, line in enumerate(reference)]
    for name, lines in (("r", reference), ("base", base), ("better", better), ("other", other)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    done = command(
        "nmt-analyze",
        "compare",
        "-r",
        "r",
        "--baseline",
        "base",
        "--hypothesis",
        "better",
        "other",
        "--bleu-tokenize",
        "none",
        "--samples",
        300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    rows = {row.split("\t")[0]: row.split("\t")[1:] for row in done.stdout.split("\n")[1:-1]}
    assert (
        float(rows["base"][0]) == round(corpus_bleu(base, [reference], "none").score, 2)
        and rows["base"][3] == ""
    )
    assert float(rows["better"][3]) < 0.01 < 0.1 < float(rows["other"][3])
    assert "bs:300" in done.stderr
    assert "the same output as base" in refused(
        command(
            "nmt-analyze", "compare", "-r", "r", "--baseline", "base", "--hypothesis", "base", cwd=tmp_path
        )
    )
    (tmp_path / "r").write_text("a\n")
    assert "r: 1 lines" in refused(
        command(
            "nmt-analyze", "compare", "-r", "r", "--baseline", "base", "--hypothesis", "better", cwd=tmp_path
        )
    )


# ---- test correlation --------------------------------------------------------------------------------------
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


def test_only_finite_pairs_count() -> None:
    assert correlate([1, 2, math.inf], [3, 5, 7]).pairs == 2
    with pytest.raises(DataError, match="fewer than two"):
        correlate([1, 2], [math.nan, 1])


def test_a_constant_correlates_with_nothing() -> None:
    found = correlate([1, 1], [1, 2])
    assert math.isnan(found.pearson)
