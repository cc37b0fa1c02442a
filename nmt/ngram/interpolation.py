"""Linear interpolation of models: p = Σ_i λ_i p_i, its weights by EM (Jelinek and Mercer 1980).

N words of a text, M models, B buckets of contexts.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.ngram.arpa import Floats, Ints

ROUNDS = 1000
GAIN = 1e-9  # of log-likelihood a word: EM stops below it
NEVER = -1e9  # log λ of a model without weight


@dataclass
class Learned:
    """Weights, and what the text's log p was before each round of EM and at last."""

    weights: Floats  # (M,)
    log_probs: list[float]


def learn(log_probs: Floats, rounds: int = ROUNDS) -> Learned:
    """Weights for which a text is most probable, from log p of each word by each model, (N, M), natural; -inf
    where a model has no probability for a word. Its log-likelihood never decreases from round to round."""
    weights = uniform(log_probs.shape[1])
    shares, total = posteriors(log_probs, weights)
    found = [total]
    for _ in range(rounds):
        weights = shares.mean(0)
        shares, total = posteriors(log_probs, weights)
        found.append(total)
        if found[-1] - found[-2] < GAIN * len(log_probs):
            break
    return Learned(weights, found)


def uniform(models: int) -> Floats:
    """The same weight for each model: (M,)"""
    return np.full(models, 1 / models)


def posteriors(log_probs: Floats, weights: Floats) -> tuple[Floats, float]:
    """p(model | word), (N, M), and log p of the text."""
    joint = log_probs + log_of(weights)
    whole = total_of(joint)
    shares: Floats = np.exp(joint - whole[:, None])
    return shares, float(whole.sum())


def mixed(log_probs: Floats, weights: Floats) -> Floats:
    """log Σ_i λ_i p_i of each word: log p (N, M), weights (M,) or (N, M) -> (N,)"""
    return total_of(log_probs + log_of(weights))


def total_of(joint: Floats) -> Floats:
    """log Σ exp of each row; rows of log 0 stay: (N, M) -> (N,)"""
    highest = np.maximum(joint.max(1, initial=NEVER), NEVER)
    found: Floats = (
        np.log(np.maximum(np.exp(joint - highest[:, None]).sum(1), np.finfo(float).tiny)) + highest
    )
    return found


def log_of(weights: Floats) -> Floats:
    """log λ, NEVER for 0."""
    return np.log(weights, where=weights > 0, out=np.full_like(weights, NEVER))


# ---- weights that depend on the context --------------------------------------------------------------------


def learn_by_bucket(log_probs: Floats, buckets: Ints, count: int) -> Floats:
    """Weights for each bucket of contexts, of which each word has one of `count`, (N,) -> (B, M). A bucket
    without words has the weights of the whole text."""
    whole = learn(log_probs).weights
    rows = [log_probs[buckets == bucket] for bucket in range(count)]
    return np.stack([learn(row).weights if len(row) else whole for row in rows])


def edges(evidence: Ints, least: int) -> list[int]:
    """Where to cut contexts into buckets by how much is known of them: values of `evidence` (N,) at which a
    new bucket begins, so that each has `least` words or more ("walls of bricks", Jelinek and Mercer 1980)."""
    values, counts = np.unique(evidence, return_counts=True)
    found: list[int] = []
    inside = 0
    for value, number in zip(values.tolist(), counts.tolist(), strict=True):
        if inside >= least:
            found.append(value)
            inside = 0
        inside += number
    if found and inside < least:
        found.pop()
    return found


def bucket_of(evidence: Ints, cuts: list[int]) -> NDArray[np.int64]:
    """The bucket of each context, from 0: (N,) -> (N,)"""
    return np.searchsorted(np.array(cuts, np.int64), evidence, side="right").astype(np.int64)
