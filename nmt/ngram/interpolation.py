"""Linear interpolation of models, p = Σ_i λ_i p_i, with weights by EM (Jelinek and Mercer 1980).

N words of a text, M models, B buckets of contexts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.io import files, numbers
from nmt.ngram.text_scorer import BOS, Floats, Ints

ROUNDS = 1000
GAIN = 1e-9  # of log-likelihood a word: EM stops below it
NEVER = -1e9  # log λ of a model without weight


@dataclass
class LearnedWeights:
    """Interpolation weights, and the text's log p before each round of EM and after the last."""

    weights: Floats  # (M,)
    log_probs: list[float]  # of the whole text, natural, by round


def learn(log_probs: Floats, rounds: int = ROUNDS) -> LearnedWeights:
    """Learn the weights that maximize the probability of a text of one word or more. `log_probs` (N, M):
    natural log p of each word by each model; -inf if a model gives it no probability. `rounds`: of EM, at
    most; the likelihood never decreases from one to the next."""
    weights = uniform(log_probs.shape[1])
    shares, total = posteriors(log_probs, weights)
    totals = [total]
    for _ in range(rounds):
        weights = shares.mean(0)
        shares, total = posteriors(log_probs, weights)
        totals.append(total)
        if totals[-1] - totals[-2] < GAIN * len(log_probs):
            break
    return LearnedWeights(weights, totals)


def uniform(models: int) -> Floats:
    """Equal weights for all models, (M,)."""
    return np.full(models, 1 / models)


def posteriors(log_probs: Floats, weights: Floats) -> tuple[Floats, float]:
    """p(model | word), (N, M), and natural log p of the text. For a word to which no model gives probability,
    p(model | word) is the model's weight."""
    joint = log_probs + log_weights(weights)
    whole = row_log_sums(joint)
    shares: Floats = np.exp(joint - whole[:, None])
    shares[np.isneginf(log_probs).all(1)] = weights
    return shares, float(whole.sum())


def mixture_log_probs(log_probs: Floats, weights: Floats) -> Floats:
    """log Σ_i λ_i p_i of each word: log p (N, M), weights (M,) or (N, M) -> (N,)"""
    return row_log_sums(log_probs + log_weights(weights))


def row_log_sums(joint: Floats) -> Floats:
    """log Σ exp of each row: (N, M) -> (N,); about NEVER or less for rows without probability."""
    highest = np.maximum(joint.max(1, initial=NEVER), NEVER)
    total: Floats = (
        np.log(np.maximum(np.exp(joint - highest[:, None]).sum(1), np.finfo(float).tiny)) + highest
    )
    return total


def log_weights(weights: Floats) -> Floats:
    """Natural log λ, NEVER for 0; of any shape."""
    return np.log(weights, where=weights > 0, out=np.full_like(weights, NEVER))


# ---- weights that depend on the context --------------------------------------------------------------------


def learn_by_bucket(log_probs: Floats, buckets: Ints, count: int) -> Floats:
    """Learn weights for each of `count` buckets of contexts: (B, M). `log_probs` (N, M): see `learn`;
    `buckets` (N,): the bucket of each word. A bucket without words gets the weights of the whole text."""
    whole = learn(log_probs).weights
    rows = [log_probs[buckets == bucket] for bucket in range(count)]
    return np.stack([learn(row).weights if len(row) else whole for row in rows])


def bucket_edges(evidence: Ints, least: int) -> list[int]:
    """Boundaries of buckets of contexts by evidence: values of `evidence` (N,) at which a new bucket begins,
    so that each bucket has at least `least` words ("walls of bricks", Jelinek and Mercer 1980). Empty if
    there is only one bucket."""
    values, counts = np.unique(evidence, return_counts=True)
    starts: list[int] = []
    inside = 0
    for value, number in zip(values.tolist(), counts.tolist(), strict=True):
        if inside >= least:
            starts.append(value)
            inside = 0
        inside += number
    if starts and inside < least:
        starts.pop()
    return starts


def bucket_indices(evidence: Ints, edges: list[int]) -> NDArray[np.int64]:
    """The bucket of each context, from 0: (N,) -> (N,). `edges`: see `bucket_edges`."""
    return np.searchsorted(np.array(edges, np.int64), evidence, side="right").astype(np.int64)


# ---- counts of contexts ------------------------------------------------------------------------------------
# How often the contexts of a text's words occur: determines the weights of context-dependent interpolation.

HISTORIES_HEADER = "#version: 1 histories"
CONTEXT_STEP = 64  # evidence of a context of n words begins at n * CONTEXT_STEP


class Histories:
    """Counts of contexts of up to `words` words, joined with blanks; sentences begin with <s>."""

    def __init__(self, words: int, counts: dict[str, int]) -> None:
        self.words, self.counts = words, counts

    @classmethod
    def count(cls, texts: Iterable[Sequence[str]], words: int) -> "Histories":
        """Count the contexts of each word and of the end of each sentence."""
        counts: Counter[str] = Counter()
        for text in texts:
            for context in contexts(text, words):
                counts.update(" ".join(context[start:]) for start in range(len(context)))
        return cls(words, counts)

    def evidence(self, text: Sequence[str]) -> Ints:
        """Evidence for the contexts of the T words of a sentence and of its end: (T + 1,). It grows with the
        length of the longest counted context, then with log2 of its count; see `context_evidence`."""
        return np.array([self.context_evidence(context) for context in contexts(text, self.words)], np.int64)

    def context_evidence(self, context: Sequence[str]) -> int:
        """Evidence for one context: CONTEXT_STEP for each word of its longest counted suffix, and one for
        each binary digit of the count of this suffix; 0 if none was counted."""
        for start in range(len(context)):
            count = self.counts.get(" ".join(context[start:]))
            if count:
                return CONTEXT_STEP * (len(context) - start) + count.bit_length()
        return 0

    def save(self, path: str | Path) -> None:
        """Write a line `count<TAB>words` for each context, in sorted order. UserError if that fails."""
        lines = (f"{count}\t{context}" for context, count in sorted(self.counts.items()))
        files.write_text(path, [f"{HISTORIES_HEADER} words={self.words}", *lines])

    @classmethod
    def load(cls, path: str | Path) -> "Histories":
        """Read a file written by `save`. DataError if it is damaged or another kind of file."""
        lines = files.read_lines(path)
        try:
            head, _, words = next(lines, "").partition(" words=")
            if head != HISTORIES_HEADER:
                raise ValueError
            rows = (line.partition("\t") for line in lines)
            return cls(numbers.count(words), {context: numbers.count(count) for count, _, context in rows})
        except ValueError as error:
            raise DataError(
                f"{path}: not a file of context counts made by nmt-interpolate; make it again"
            ) from error


def contexts(text: Sequence[str], words: int) -> Iterator[list[str]]:
    """Yield at most `words` words before each word of a sentence and before its end."""
    whole = [BOS, *text]
    for end in range(1, len(whole) + 1):
        yield whole[max(0, end - words) : end]
