"""Minimum Bayes risk (Kumar and Byrne 2004): of the texts in n-best lists, the one that is expected to score
best if any of them might be the reference.

    E[gain of e] = Σ_e' p(e') gain(e, e'),   p(e) ∝ Σ exp(scale x score) over the entries of text e

T distinct texts, L lists, C choices of scales. Scores are natural logarithms, or anything that grows with the
quality.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WORDS, CHARACTERS = 4, 6  # the longest n-grams of BLEU and chrF
TIE = 1e-9  # expected gains (0 to 100) that differ by less are equal: what rounding may cost


# ---- gains -------------------------------------------------------------------------------------------------


def bleu_gains(lines: Sequence[str]) -> Floats:
    """BLEU of each line (row) with each line (column) as its reference, 0 to 100: (T, T).

    Equals sacreBLEU's sentence_bleu with tokenize="none", effective order and smoothing "exp": the k-th order
    without a match counts as 2^-k matches. Only an empty line against itself scores 100 instead.
    """
    words = [line.split() for line in lines]
    lengths = np.array([len(line) for line in words])
    number: dict[str, int] = {}
    symbols = np.array([number.setdefault(word, len(number)) for line in words for word in line], np.int64)
    matches, totals = common_ngrams(symbols, lengths, WORDS), ngram_totals(lengths, WORDS)
    counted = totals[:, :, None] > 0
    smooth = 0.5 ** ((matches == 0) & counted).cumsum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        precisions = np.where(matches > 0, matches, smooth) / totals[:, :, None]
        logs = np.where(counted, np.log(precisions), 0.0).sum(0) / np.minimum(lengths, WORDS)[:, None]
        brevity = np.minimum(0.0, 1 - lengths / lengths[:, None])
        gains = np.where(matches[0] > 0, 100 * np.exp(logs + brevity), 0.0)
    np.fill_diagonal(gains, 100.0)
    return gains


def chrf_gains(lines: Sequence[str]) -> Floats:
    """chrF2 of each line (row) with each line (column) as its reference, 0 to 100: (T, T). The lines must be
    distinct.

    Equals sacreBLEU's sentence_chrf: characters without blanks, n-grams up to 6, recall counts twice; orders
    for which a line is too short are left out. Only an empty line against itself scores 100 instead.
    """
    texts = ["".join(line.split()) for line in lines]
    lengths = np.array([len(text) for text in texts])
    symbols = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32).astype(np.int64)
    matches, totals = common_ngrams(symbols, lengths, CHARACTERS), ngram_totals(lengths, CHARACTERS)
    counted = (totals[:, :, None] > 0) & (totals[:, None, :] > 0)
    orders, share = np.maximum(counted.sum(0), 1), np.where(counted, matches, 0.0)
    precision = (share / np.maximum(totals, 1)[:, :, None]).sum(0) / orders
    recall = (share / np.maximum(totals, 1)[:, None, :]).sum(0) / orders
    gains: Floats = 500 * precision * recall / np.maximum(4 * precision + recall, 1e-300)
    np.fill_diagonal(gains, 100.0)
    return gains


GAINS: dict[str, Callable[[Sequence[str]], Floats]] = {"bleu": bleu_gains, "chrf": chrf_gains}


def ngram_totals(lengths: Ints, longest: int) -> Ints:
    """Number of n-grams of each line, given the lengths of the lines: (orders, T)"""
    return np.asarray(np.maximum(lengths - np.arange(longest)[:, None], 0))


def common_ngrams(symbols: Ints, lengths: Ints, longest: int) -> Floats:
    """Number of n-grams that each pair of lines shares, counting repetitions: (orders, T, T), for n from 1 to
    `longest`. `symbols`: the concatenated lines; `lengths`: (T,)"""
    symbols = np.unique(symbols, return_inverse=True)[1]
    size = int(symbols.max(initial=0)) + 1
    owner = np.repeat(np.arange(len(lengths)), lengths)
    room = np.cumsum(lengths)[owner] - np.arange(len(symbols))  # symbols from here to the end of the line
    position, gram = np.arange(len(symbols)), symbols
    matches = np.zeros((longest, len(lengths), len(lengths)))
    for order in range(longest):
        if order:
            fits = room[position] > order
            position, gram = position[fits], gram[fits]
            gram = np.unique(gram * size + symbols[position + order], return_inverse=True)[1]
        matches[order] = shared_ngrams(gram, owner[position], len(lengths))
    return matches


def shared_ngrams(grams: Ints, owner: Ints, lines: int) -> Floats:
    """Number of n-grams that each pair of lines shares: (T, T). `grams`: a number for each n-gram, equal for
    equal ones; `owner`: the line of each, from 0; `lines`: T.

    min(a, b) is the number of k with a >= k and b >= k. So the k-th occurrence of an n-gram is a column of
    its own, of zeros and ones, and the product of this matrix with itself counts shared n-grams.
    """
    keys = np.sort(grams * lines + owner)
    first = np.r_[True, keys[1:] != keys[:-1]][: len(keys)]
    starts = np.flatnonzero(first)
    occurrence = np.arange(len(keys)) - np.repeat(starts, np.diff(np.r_[starts, len(keys)]))
    gram, owner = np.divmod(keys, lines)
    most = int(occurrence.max(initial=0)) + 1
    _, column, counts = np.unique(gram * most + occurrence, return_inverse=True, return_counts=True)
    repeated = counts > 1  # what one line alone has, no other shares
    selected = repeated[column]
    table = np.zeros((lines, int(repeated.sum())), np.float32)  # exact: sums are far below 2^24
    table[owner[selected], (np.cumsum(repeated) - 1)[column[selected]]] = 1
    return (table @ table.T).astype(np.float64)


# ---- posterior and choice ----------------------------------------------------------------------------------


@dataclass
class Evidence:
    """The n-best lists of a sentence."""

    texts: list[str]  # distinct, by their best score, then as they were listed: (T,)
    owners: list[Ints]  # for each list: index of the text of each entry
    scores: list[Floats]  # for each list: score of each entry

    def posterior(self, scales: Sequence[float]) -> Floats:
        """p of each text: (T,). `scales`: one for each list. Lists are normalized separately, so that systems
        have equal weight whatever their scores; empty lists are left out, but one must have entries."""
        parts = [
            np.bincount(owner, softmax(scores, scale), len(self.texts))
            for owner, scores, scale in zip(self.owners, self.scores, scales, strict=True)
            if len(scores)
        ]
        return np.asarray(np.sum(parts, 0) / len(parts))


def evidence(lists: Iterable[Sequence[tuple[str, float]]]) -> Evidence:
    """Collect the n-best lists of one sentence, each of texts with scores, higher for better texts. Equal
    texts become one, whose probabilities `Evidence.posterior` adds up."""
    lists = list(lists)
    best: dict[str, float] = {}
    for entries in lists:
        for text, score in entries:
            best[text] = max(score, best.get(text, score))
    texts = sorted(best, key=lambda text: -best[text])
    index = {text: number for number, text in enumerate(texts)}
    return Evidence(
        texts=texts,
        owners=[np.array([index[text] for text, _ in entries], np.int64) for entries in lists],
        scores=[np.array([score for _, score in entries], np.float64) for entries in lists],
    )


def softmax(scores: Floats, scale: float) -> Floats:
    """exp(scale x score), normalized, of one score or more: (N,) -> (N,). Only -inf: all count alike."""
    best = scores.max()
    with np.errstate(over="ignore", invalid="ignore"):  # invalid: -inf - -inf
        below = np.maximum(scores - best, -np.finfo(np.float64).max)  # finite, as 0 x inf is not 0
        weights = np.exp(scale * np.where(scores == best, 0.0, below))
    return np.asarray(weights / weights.sum())


def best_texts(gains: Floats, posteriors: Floats) -> Ints:
    """The text of greatest expected gain, on ties the likeliest, then the first: (T, T), (T, C) -> (C,)"""
    expected = gains @ posteriors
    equal = expected >= expected.max(0) - TIE
    return np.asarray(np.where(equal, posteriors, -1.0).argmax(0))


def choose(lists: Evidence, metric: str, scales: Sequence[Sequence[float]]) -> list[int]:
    """Index in `lists.texts` of the text with the least risk for each row of scales: (C, L) -> (C,).
    `metric`: a key of GAINS; `scales`: one for each list."""
    if len(lists.texts) == 1:
        return [0] * len(scales)
    posteriors = np.stack([lists.posterior(row) for row in scales], 1)
    return [int(index) for index in best_texts(GAINS[metric](lists.texts), posteriors)]


class Scored(Protocol):
    """A translation with the score that ranks it."""

    @property
    def words(self) -> list[str]: ...

    @property
    def score(self) -> float: ...


Translation = TypeVar("Translation", bound=Scored)


def least_risk(translations: Sequence[Translation], metric: str, scale: float) -> Translation:
    """Choose the translation of minimum Bayes risk, of one or more. `scale`: p is exp(scale x score),
    normalized over these translations; 0 counts all alike, which is right for samples from the model.
    `metric`: bleu or chrf, of tokenized words."""
    texts = [" ".join(translation.words) for translation in translations]
    scores = [translation.score for translation in translations]
    hypotheses = evidence([list(zip(texts, scores, strict=True))])
    return translations[texts.index(hypotheses.texts[choose(hypotheses, metric, [[scale]])[0]])]
