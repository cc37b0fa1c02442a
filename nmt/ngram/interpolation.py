"""Combined models: linear interpolation, p = Σ_i λ_i p_i, with weights by EM (Jelinek and Mercer 1980); and a
network completed by a count model, which scores the words that it does not know.

N words of a text, M models, B buckets of contexts.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.io import files, numbers
from nmt.ngram.count_models import BOS, EOS, UNK, Floats, Ints, NgramModel

ROUNDS = 1000
GAIN = 1e-9  # of log-likelihood a word: EM stops below it
NEVER = -1e9  # log λ of a model without weight


@dataclass
class Learned:
    """Interpolation weights, and the text's log p before each round of EM and after the last."""

    weights: Floats  # (M,)
    log_probs: list[float]


def learn(log_probs: Floats, rounds: int = ROUNDS) -> Learned:
    """Weights that maximize the probability of a text, from the natural log p of each word by each model, (N,
    M); -inf if a model gives a word no probability. The likelihood never decreases from round to round."""
    weights = uniform(log_probs.shape[1])
    shares, total = posteriors(log_probs, weights)
    totals = [total]
    for _ in range(rounds):
        weights = shares.mean(0)
        shares, total = posteriors(log_probs, weights)
        totals.append(total)
        if totals[-1] - totals[-2] < GAIN * len(log_probs):
            break
    return Learned(weights, totals)


def uniform(models: int) -> Floats:
    """Equal weights for all models, (M,)."""
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
    """log Σ exp of each row: (N, M) -> (N,); about NEVER or less for rows without probability."""
    highest = np.maximum(joint.max(1, initial=NEVER), NEVER)
    total: Floats = (
        np.log(np.maximum(np.exp(joint - highest[:, None]).sum(1), np.finfo(float).tiny)) + highest
    )
    return total


def log_of(weights: Floats) -> Floats:
    """log λ, NEVER for 0."""
    return np.log(weights, where=weights > 0, out=np.full_like(weights, NEVER))


# ---- weights that depend on the context --------------------------------------------------------------------


def learn_by_bucket(log_probs: Floats, buckets: Ints, count: int) -> Floats:
    """Weights for each of `count` buckets of contexts: (N,) -> (B, M), given the bucket of each word. A
    bucket without words gets the weights of the whole text."""
    whole = learn(log_probs).weights
    rows = [log_probs[buckets == bucket] for bucket in range(count)]
    return np.stack([learn(row).weights if len(row) else whole for row in rows])


def edges(evidence: Ints, least: int) -> list[int]:
    """Boundaries of buckets of contexts by evidence: values of `evidence` (N,) at which a new bucket begins,
    so that each bucket has at least `least` words ("walls of bricks", Jelinek and Mercer 1980)."""
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


def bucket_of(evidence: Ints, cuts: list[int]) -> NDArray[np.int64]:
    """The bucket of each context, from 0: (N,) -> (N,)"""
    return np.searchsorted(np.array(cuts, np.int64), evidence, side="right").astype(np.int64)


# ---- counts of contexts ------------------------------------------------------------------------------------
# How often the contexts of a text's words occur: determines the weights of context-dependent interpolation.

HISTORIES_HEADER = "#version: 1 histories"
CONTEXT_STEP = 64  # evidence of a context of n words begins at n * CONTEXT_STEP


class Histories:
    """Counts of contexts of up to `words` words; sentences begin with <s>."""

    def __init__(self, words: int, counts: dict[str, int]) -> None:
        self.words, self.counts = words, counts

    @classmethod
    def count(cls, texts: Iterable[Sequence[str]], words: int) -> "Histories":
        """Count the contexts of each word and of the end of each sentence."""
        counts: Counter[str] = Counter()
        for text in texts:
            for context in contexts(text, words):
                counts.update(" ".join(context[at:]) for at in range(len(context)))
        return cls(words, counts)

    def evidence(self, text: Sequence[str]) -> Ints:
        """Evidence for the context of each word and of the end of the text: (words + 1,). It grows with the
        length of the longest counted context, then with log2 of its count."""
        return np.array([self.of_context(context) for context in contexts(text, self.words)], np.int64)

    def of_context(self, context: Sequence[str]) -> int:
        """Evidence for one context: the length of its longest counted suffix, and log2 of the count of this
        suffix."""
        for at in range(len(context)):
            count = self.counts.get(" ".join(context[at:]))
            if count:
                return CONTEXT_STEP * (len(context) - at) + count.bit_length()
        return 0

    def save(self, path: str | Path) -> None:
        """Write a line `count<TAB>words` for each context, in sorted order."""
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


# ---- unknown words of a network ----------------------------------------------------------------------------
# A short-list network and a count model as one model of all words (after Schwenk 2007), whose probabilities
# sum to one.
#
# A word of the short-list has the network's p(w | h). The network's p(UNK | h) is shared among all other
# words in the proportions of the count model:
#     p(w | h) = p_net(UNK | h) p_count(w | h) / (1 - Σ p_count(v | h) over the short-list's v)

LEAST = 1e-12  # minimum mass outside the short-list, which is 0 if the list has all words


class UnknownShares:
    """Distributes p(UNK) over the words outside the short-list. Probabilities are those of a count model."""

    def __init__(self, model: NgramModel, shortlist: Collection[str]) -> None:
        """`shortlist`: the words that the network knows, apart from the end of a sentence, which it always
        knows."""
        self.model = model
        self.inside = np.array(
            [word == EOS or (word in shortlist and word not in (BOS, UNK)) for word in model.words]
        )
        self.masses = masses(model, self.inside)
        self.shortlist = shortlist

    def logs(self, texts: Sequence[Sequence[str]]) -> list[Floats]:
        """For each word of each text natural log(p_count(w | h) / mass outside the short-list), and 0 for
        words of the short-list; the end of the text is included."""
        if not texts:
            return []
        model, shortlist = self.model, self.shortlist
        flat, first, starts = model.flatten(texts)
        flags = (flag for text in texts for flag in (False, *(word not in shortlist for word in text), False))
        outside = np.fromiter(flags, bool, len(flat))
        nodes = model.nodes(flat, first)
        mass = np.full(len(flat), self.masses[0][0])
        for n in range(1, model.order):  # the longest context in the model decides
            context = np.concatenate([[-1], nodes[n - 1][:-1]])
            context[first == np.arange(len(flat))] = -1
            mass = np.where(context >= 0, self.masses[n][context], mass)
        share = np.where(outside, model.flat_scores(flat, first) - np.log(np.maximum(1 - mass, LEAST)), 0.0)
        return [part[1:] for part in np.split(share, starts[1:])]


def masses(model: NgramModel, inside: NDArray[np.bool_]) -> list[Floats]:
    """Σ p(v | context) over the words marked `inside` (V,): for the empty context (1,), then for each node of
    levels 1 to order - 1.

    Σ_v p(v | h) = Σ p(hv) over the n-grams in the model + back-off(h) (Σ_v p(v | h') - Σ p(v | h') of the
    same words)
    """
    V = len(model.words)
    levels = [np.array([(10.0 ** model.levels[0].log10[inside]).sum()])]
    for n in range(1, model.order):
        contexts, longer = model.levels[n - 1], model.levels[n]
        grams = model.grams(n + 1)
        words = inside[grams[:, -1]]
        parents = longer.keys[words] // V
        here = np.bincount(parents, 10.0 ** longer.log10[words], len(contexts.keys))
        shorter = np.exp(last_scores(model, grams[words][:, 1:]))
        below = np.bincount(parents, shorter, len(contexts.keys))
        levels.append(here + 10.0**contexts.backoff * (suffix_masses(model, levels, model.grams(n)) - below))
    return levels


def last_scores(model: NgramModel, grams: Ints) -> Floats:
    """Natural log p of the last word of each row given the others: (M, k) -> (M,)"""
    M, k = grams.shape
    return model.flat_scores(grams.reshape(-1), np.repeat(np.arange(M) * k, k))[k - 1 :: k]


def suffix_masses(model: NgramModel, levels: Sequence[Floats], contexts: Ints) -> Floats:
    """Mass after each context without its first word, shortened further if the model lacks that context: (M,
    n) -> (M,)"""
    M, n = contexts.shape
    mass = np.full(M, levels[0][0])
    if n == 1:
        return mass
    nodes = model.nodes(contexts[:, 1:].reshape(-1), np.repeat(np.arange(M) * (n - 1), n - 1))
    for size in range(1, n):
        node = nodes[size - 1][n - 2 :: n - 1]
        mass = np.where(node >= 0, levels[size][node], mass)
    return mass
