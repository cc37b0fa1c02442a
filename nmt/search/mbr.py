"""Minimum Bayes risk (Kumar and Byrne 2004): of the texts in n-best lists, the one that is expected to score
best if any of them might be the reference.

    E[gain of e] = Σ_e' p(e') gain(e, e'),   p(e) ∝ Σ exp(scale x score) over the entries of text e

T distinct texts, L lists, C choices of scales. Scores are natural logarithms, or anything that grows with the
quality.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WORDS, CHARACTERS = 4, 6  # the longest n-grams of BLEU and chrF
TIE = 1e-9  # expected gains (0 to 100) that differ by less are equal: what rounding may cost


# ---- gains -------------------------------------------------------------------------------------------------


def bleu_gains(lines: Sequence[str]) -> Floats:
    """BLEU of each line (row) with each line (column) as its reference, 0 to 100: (T, T).

    sacreBLEU's sentence_bleu with tokenize="none": smoothing "exp" (each order without a match counts half
    as much as the one before), effective order. An empty line is worth 100 where the reference is empty too.
    """
    words = [line.split() for line in lines]
    lengths = np.array([len(line) for line in words])
    number: dict[str, int] = {}
    symbols = np.array([number.setdefault(word, len(number)) for line in words for word in line], np.int64)
    matches, totals = common(symbols, lengths, WORDS), ngram_totals(lengths, WORDS)
    there = totals[:, :, None] > 0
    smooth = 0.5 ** ((matches == 0) & there).cumsum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        precisions = np.where(matches > 0, matches, smooth) / totals[:, :, None]
        logs = np.where(there, np.log(precisions), 0.0).sum(0) / np.minimum(lengths, WORDS)[:, None]
        brevity = np.minimum(0.0, 1 - lengths / lengths[:, None])
        gains = np.where(matches[0] > 0, 100 * np.exp(logs + brevity), 0.0)
    np.fill_diagonal(gains, 100.0)
    return gains


def chrf_gains(lines: Sequence[str]) -> Floats:
    """chrF2 of each line (row) with each line (column) as its reference, 0 to 100: (T, T).

    sacreBLEU's sentence_chrf: characters without blanks, n-grams up to 6, recall counts twice; orders that a
    line is too short for are left out. An empty line is worth 100 where the reference is empty too.
    """
    texts = ["".join(line.split()) for line in lines]
    lengths = np.array([len(text) for text in texts])
    symbols = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32).astype(np.int64)
    matches, totals = common(symbols, lengths, CHARACTERS), ngram_totals(lengths, CHARACTERS)
    there = (totals[:, :, None] > 0) & (totals[:, None, :] > 0)
    orders, share = np.maximum(there.sum(0), 1), np.where(there, matches, 0.0)
    precision = (share / np.maximum(totals, 1)[:, :, None]).sum(0) / orders
    recall = (share / np.maximum(totals, 1)[:, None, :]).sum(0) / orders
    gains: Floats = 500 * precision * recall / np.maximum(4 * precision + recall, 1e-300)
    np.fill_diagonal(gains, 100.0)
    return gains


GAINS: dict[str, Callable[[Sequence[str]], Floats]] = {"bleu": bleu_gains, "chrf": chrf_gains}


def ngram_totals(lengths: Ints, longest: int) -> Ints:
    """How many n-grams lines of some lengths have: (orders, T)"""
    return np.asarray(np.maximum(lengths - np.arange(longest)[:, None], 0))


def common(symbols: Ints, lengths: Ints, longest: int) -> Floats:
    """How many n-grams each two lines share, each as often as both have it: (orders, T, T), for n 1 to
    `longest`. `symbols`: those of all lines, one line after the other; `lengths`: (T,)"""
    symbols = np.unique(symbols, return_inverse=True)[1]
    size = int(symbols.max(initial=0)) + 1
    owner = np.repeat(np.arange(len(lengths)), lengths)
    room = np.cumsum(lengths)[owner] - np.arange(len(symbols))  # symbols from here to the end of the line
    place, gram = np.arange(len(symbols)), symbols
    found = np.zeros((longest, len(lengths), len(lengths)))
    for order in range(longest):
        if order:
            fits = room[place] > order
            place, gram = place[fits], gram[fits]
            gram = np.unique(gram * size + symbols[place + order], return_inverse=True)[1]
        found[order] = shared(gram, owner[place], len(lengths))
    return found


def shared(grams: Ints, owner: Ints, lines: int) -> Floats:
    """How many n-grams of one order each two lines share: (T, T). `owner`: the line of each n-gram.

    min(a, b) is the number of k with a >= k and b >= k: the k-th occurrence of an n-gram is a column of its
    own, of zeros and ones, and the product of the matrix with itself counts what two lines have in common.
    """
    keys = np.sort(grams * lines + owner)
    first = np.r_[True, keys[1:] != keys[:-1]][: len(keys)]
    starts = np.flatnonzero(first)
    occurrence = np.arange(len(keys)) - np.repeat(starts, np.diff(np.r_[starts, len(keys)]))
    gram, owner = np.divmod(keys, lines)
    most = int(occurrence.max(initial=0)) + 1
    _, column, counts = np.unique(gram * most + occurrence, return_inverse=True, return_counts=True)
    several = counts > 1  # what one line alone has, no other shares
    kept = several[column]
    table = np.zeros((lines, int(several.sum())), np.float32)  # exact: sums are far below 2^24
    table[owner[kept], (np.cumsum(several) - 1)[column[kept]]] = 1
    return (table @ table.T).astype(np.float64)


# ---- posterior and choice ----------------------------------------------------------------------------------


@dataclass
class Evidence:
    """What the n-best lists of a sentence say."""

    texts: list[str]  # distinct, by their best score, then as they were listed: (T,)
    owners: list[Ints]  # of each list: the text of each entry
    scores: list[Floats]  # and its score

    def posterior(self, scales: Sequence[float]) -> Floats:
        """p of each text: (T,). `scales`: of each list. Each list is normalized by itself, so that systems
        count alike whatever their scores; a list without entries is left out."""
        parts = [
            np.bincount(owner, share(scores, scale), len(self.texts))
            for owner, scores, scale in zip(self.owners, self.scores, scales, strict=True)
            if len(scores)
        ]
        return np.asarray(np.sum(parts, 0) / len(parts))


def evidence(lists: Iterable[Sequence[tuple[str, float]]]) -> Evidence:
    """The evidence of lists of texts with scores; equal texts become one, in which their shares add up."""
    lists = list(lists)
    best: dict[str, float] = {}
    for entries in lists:
        for text, score in entries:
            best[text] = max(score, best.get(text, score))
    texts = sorted(best, key=lambda text: -best[text])
    place = {text: number for number, text in enumerate(texts)}
    return Evidence(
        texts=texts,
        owners=[np.array([place[text] for text, _ in entries], np.int64) for entries in lists],
        scores=[np.array([score for _, score in entries], np.float64) for entries in lists],
    )


def share(scores: Floats, scale: float) -> Floats:
    """exp(scale x score), normalized: (N,) -> (N,)"""
    with np.errstate(over="ignore"):
        below = np.maximum(scores - scores.max(), -np.finfo(np.float64).max)  # finite, as 0 x inf is not 0
        weights = np.exp(scale * below)
    return np.asarray(weights / weights.sum())


def best(gains: Floats, posteriors: Floats) -> Ints:
    """The text with the greatest expected gain: (T, T), (T, C) -> (C,). Of equals the most probable, then the
    first, which is the one with the best score."""
    expected = gains @ posteriors
    equal = expected >= expected.max(0) - TIE
    return np.asarray(np.where(equal, posteriors, -1.0).argmax(0))


def choose(found: Evidence, metric: str, scales: Sequence[Sequence[float]]) -> list[int]:
    """The chosen text for each choice of scales, one for each list: (C, L) -> (C,)"""
    posteriors = np.stack([found.posterior(row) for row in scales], 1)
    if len(found.texts) == 1:
        return [0] * len(scales)
    return [int(place) for place in best(GAINS[metric](found.texts), posteriors)]
