"""BLEU of many groups at once, and bootstrap resampling."""

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from nmt.analysis.buckets import at_most, sliding
from nmt.analysis.resampling import (
    bleu_of,
    bucket_intervals,
    interval_of,
    intervals,
    resampled_sums,
)
from nmt.analysis.systems import System, TestSet

RNG = np.random.default_rng(5)
SENTENCES = 60
REFERENCES = [" ".join(RNG.choice(list("abcdef"), RNG.integers(1, 12))) for _ in range(SENTENCES)]
HYPOTHESES = [
    line if number % 3 else " ".join(RNG.choice(list("abcxyz"), RNG.integers(0, 9)))
    for number, line in enumerate(REFERENCES)
]
SYSTEM = System("it", HYPOTHESES, TestSet(REFERENCES, [REFERENCES], tokenize="none"))
LENGTHS = [len(line.split()) for line in REFERENCES]


def test_bleu_is_sacrebleus() -> None:
    """Of each sentence, of random groups of them, and of none."""
    rows = SYSTEM.bleu_statistics.rows
    metric = BLEU(tokenize="none", effective_order=True)
    alone = [
        metric.sentence_score(ours, [theirs]).score
        for ours, theirs in zip(HYPOTHESES, REFERENCES, strict=True)
    ]
    assert bleu_of(rows, effective_order=True) == pytest.approx(np.array(alone), abs=1e-9)
    masks = [RNG.random(SENTENCES) < share for share in (0, 0.02, 0.05, 0.1, 0.5, 1)] + [
        np.arange(SENTENCES) == row for row in range(SENTENCES)
    ]
    together = bleu_of(np.array([rows[mask].sum(0) for mask in masks]))
    assert together == pytest.approx(np.array([SYSTEM.bleu(mask).score for mask in masks]), abs=1e-9)


def test_resampled_sums_are_those_of_drawn_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, groups = SYSTEM.bleu_statistics.rows, np.array(LENGTHS)
    sums = resampled_sums(rows, groups, 13, samples=7, seed=3)
    rng = np.random.default_rng(3)
    for drawn, found in zip(rng.integers(0, SENTENCES, (7, SENTENCES)), sums, strict=True):
        expected = np.zeros((13, 10))
        np.add.at(expected, groups[drawn], rows[drawn])
        assert (found == expected).all()
    monkeypatch.setattr("nmt.analysis.resampling.BLOCK", 1)  # one sample at a time draws the same
    assert (resampled_sums(rows, groups, 13, samples=7, seed=3) == sums).all()


@pytest.mark.parametrize("group", [at_most, lambda keys, system: sliding(keys, system, 4, least=5)])
def test_intervals_of_buckets_are_those_of_each_alone(group) -> None:  # type: ignore[no-untyped-def]
    buckets = group(LENGTHS, SYSTEM)
    found = bucket_intervals(SYSTEM.bleu_statistics, LENGTHS, buckets, samples=50)
    keys = np.array(LENGTHS)
    for bucket, interval in zip(buckets, found, strict=True):
        inside = (keys >= bucket.first) & (keys <= bucket.last)
        sums = resampled_sums(SYSTEM.bleu_statistics.rows, inside.astype(np.int64), 2, samples=50)[:, 1:]
        assert interval == pytest.approx(interval_of(bleu_of(sums))[0])
        if bucket.sentences > 20:
            assert interval[0] < bucket.bleu < interval[1]
    assert bucket_intervals(SYSTEM.bleu_statistics, LENGTHS, [], samples=50) == []


def test_more_sentences_make_a_narrower_interval() -> None:
    rows = SYSTEM.bleu_statistics.rows
    (few,), (many,) = (
        intervals(given, lambda sums: bleu_of(sums)[:, None], 200) for given in (rows, np.tile(rows, (9, 1)))
    )
    whole = SYSTEM.bleu().score
    assert few[0] < many[0] < whole < many[1] < few[1]
    assert (few[1] - few[0]) / (many[1] - many[0]) == pytest.approx(3, rel=0.25)
