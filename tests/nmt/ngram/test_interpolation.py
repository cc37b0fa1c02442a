"""EM for the weights of linear interpolation: planted weights, a likelihood that never decreases, naive
sums."""

from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.ngram.interpolation import (
    CONTEXT_STEP,
    Histories,
    bucket_edges,
    bucket_indices,
    learn,
    learn_by_bucket,
    mixture_log_probs,
    uniform,
)
from nmt.ngram.text_scorer import Floats

# ---- test interpolation ------------------------------------------------------------------------------------

PLANTED = np.array([0.6, 0.3, 0.1])


def drawn(weights: Floats, words: int = 20_000, seed: int = 0) -> Floats:
    """log p by three distributions over six outcomes, of words drawn from their mixture: (N, 3)"""
    rng = np.random.default_rng(seed)
    models = rng.dirichlet(np.ones(6), size=3)
    outcomes = rng.choice(6, size=words, p=weights @ models)
    return np.log(models[:, outcomes]).T


def test_planted_weights_are_found_and_the_likelihood_never_decreases() -> None:
    found = learn(drawn(PLANTED))
    assert found.weights == pytest.approx(PLANTED, abs=0.05) and found.weights.sum() == pytest.approx(1)
    assert len(found.log_probs) > 5
    assert all(
        after >= before - 1e-7 for before, after in zip(found.log_probs, found.log_probs[1:], strict=False)
    )
    assert found.log_probs[-1] > found.log_probs[0] + 1


def test_no_other_weights_are_better() -> None:
    log_probs = drawn(PLANTED, 500)
    best = mixture_log_probs(log_probs, learn(log_probs).weights).sum()
    rng = np.random.default_rng(1)
    assert all(
        mixture_log_probs(log_probs, other).sum() <= best + 1e-3 for other in rng.dirichlet(np.ones(3), 200)
    )


def test_words_without_probability_have_no_say_in_the_weights() -> None:
    log_probs = drawn(PLANTED, 500)
    nothing = np.full((3, 3), -np.inf)
    assert learn(np.concatenate([log_probs, nothing])).weights == pytest.approx(
        learn(log_probs).weights, abs=1e-3
    )
    assert learn(nothing).weights.tolist() == uniform(3).tolist()


def test_a_mixture_is_the_sum_and_words_may_have_no_probability() -> None:
    log_probs = np.log(np.array([[0.5, 0.1], [0.2, 1e-300]]))
    log_probs[1, 1] = -np.inf
    assert mixture_log_probs(log_probs, np.array([0.25, 0.75])) == pytest.approx(np.log([0.2, 0.05]))
    assert mixture_log_probs(log_probs, np.array([[0.25, 0.75], [1.0, 0.0]])) == pytest.approx(
        np.log([0.2, 0.2])
    )
    assert learn(log_probs).weights == pytest.approx([1, 0], abs=1e-6)
    assert uniform(4).tolist() == [0.25] * 4


def test_weights_by_bucket_are_those_of_its_words() -> None:
    first, second = drawn(PLANTED, 5000), drawn(PLANTED[::-1].copy(), 5000)
    buckets = np.array([0] * len(first) + [2] * len(second))
    found = learn_by_bucket(np.concatenate([first, second]), buckets, 3)
    assert found.shape == (3, 3) and found.sum(1) == pytest.approx(np.ones(3))
    assert found[0] == pytest.approx(learn(first).weights) and found[2] == pytest.approx(
        learn(second).weights
    )
    assert found[1] == pytest.approx(learn(np.concatenate([first, second])).weights)
    whole = mixture_log_probs(np.concatenate([first, second]), found[1]).sum()
    assert mixture_log_probs(np.concatenate([first, second]), found[buckets]).sum() > whole + 100


def test_walls_of_bricks() -> None:
    evidence = np.array([0] * 5 + [3] * 2 + [4] * 9 + [7] * 1 + [9] * 3 + [10])
    cuts = bucket_edges(evidence, 5)
    assert cuts == [3, 7]
    assert np.bincount(bucket_indices(evidence, cuts)).tolist() == [5, 11, 5]
    assert bucket_edges(evidence, 100) == [] and bucket_indices(evidence, []).max() == 0
    assert bucket_indices(np.array([2, 3, 99]), cuts).tolist() == [0, 1, 2]


# ---- test histories ----------------------------------------------------------------------------------------
# Counts of contexts: against a naive count, and through their file.

HISTORY_TEXT = [["a", "b"], ["a", "b", "a"], []]


def test_evidence_is_the_longest_counted_context_and_its_count() -> None:
    found = Histories.count(HISTORY_TEXT, 2)
    assert found.counts == {"<s>": 3, "<s> a": 2, "a": 3, "a b": 2, "b": 2, "b a": 1}
    lengths = [
        (value // CONTEXT_STEP, value % CONTEXT_STEP) for value in found.evidence(["a", "x", "a"]).tolist()
    ]
    assert lengths == [(1, 2), (2, 2), (0, 0), (1, 2)]


def test_the_file(tmp_path: Path) -> None:
    found = Histories.count(HISTORY_TEXT, 2)
    found.save(tmp_path / "c.gz")
    again = Histories.load(tmp_path / "c.gz")
    assert again.counts == found.counts and again.words == 2
    (tmp_path / "other").write_text("#version: 1 histories words=2\nx\tb\n")
    with pytest.raises(DataError, match="other: not a file of context counts"):
        Histories.load(tmp_path / "other")
