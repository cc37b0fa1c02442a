"""The class-based softmax: p(w) = p(class of w) p(w | class of w) (Goodman 2001; Jernite 2018, eq. 2.6).
With about √V classes a word costs 2 √V rows instead of V.

V words, C classes, K features.
"""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nmt.layers.output.base import OutputSettings
from nmt.layers.output.hierarchy import Hierarchical, Hierarchy, Ints

# ---- clusters ----------------------------------------------------------------------------------------------
# Word classes from bigrams: the exchange algorithm (Kneser and Ney 1993; Martin, Liermann and Ney 1998),
# which like Brown et al. (1992) maximizes the mutual information of the classes of neighboring words.
#
# The log-likelihood of a class bigram model is, but for a constant, F = Σ_cd f(N_cd) - Σ_c f(L_c) - Σ_c
# f(R_c), f(x) = x log x, with counts N of neighboring classes, L and R of classes as the first and as the
# second word. Each word in turn moves to the class in which F is greatest, until hardly any moves.
#
# V words, C classes, P distinct bigrams.


log = logging.getLogger(__name__)

Floats = NDArray[np.float64]
EXCHANGE_ROUNDS = 8  # at most; later ones gain next to nothing
STILL_SHARE = 0.002  # share of the words that move in the last round


@dataclass
class Neighbors:
    """The words that occur on one side of each word, with counts; those of word w are the entries starts[w]
    to starts[w + 1]."""

    starts: Ints  # (V + 1,)
    words: Ints  # (P,)
    counts: Floats  # (P,)

    def of(self, word: int, classes: Ints, count: int) -> Floats:
        """How often a word of each class occurs next to the word, (C,), leaving out the word itself.
        `classes` (V,): the class of each word; `count`: C."""
        span = slice(self.starts[word], self.starts[word + 1])
        others, counts = self.words[span], self.counts[span]
        return sums_at(classes[others], counts * (others != word), count)


def neighbors(first: Ints, second: Ints, counts: Ints, size: int) -> Neighbors:
    """Group distinct bigrams, given by both words and their counts (P,), by their first word. `size`: V."""
    order = np.argsort(first, kind="stable")
    starts = np.searchsorted(first[order], np.arange(size + 1))
    return Neighbors(starts, second[order], counts[order].astype(np.float64))


def sums_at(index: Ints, values: NDArray[np.number], count: int) -> Floats:
    """Sum the values that share an index: (n,), (n,) -> (count,)"""
    return np.asarray(np.bincount(index, values, minlength=count), np.float64)


def f(x: Floats) -> Floats:
    """x log x of counts, with 0 log 0 = 0"""
    return np.asarray(x * np.log(np.maximum(x, 1.0)))


class Exchange:
    """An assignment of words to classes, and the counts that F is computed from."""

    def __init__(self, text: NDArray[np.integer], classes: Ints, count: int) -> None:
        """`text` (n,); `classes` (V,): the initial assignment; `count`: number of classes."""
        size = len(classes)
        codes, counts = np.unique(text[:-1].astype(np.int64) * size + text[1:], return_counts=True)
        first, second = codes // size, codes % size
        self.classes, self.count = classes.copy(), count
        self.following, self.preceding = (
            neighbors(first, second, counts, size), neighbors(second, first, counts, size),
        )  # fmt: skip
        self.self_pairs = np.zeros(size)
        self.self_pairs[first[first == second]] = counts[first == second]
        self.as_first = sums_at(first, counts, size)
        self.as_second = sums_at(second, counts, size)
        self.sizes = np.bincount(classes, minlength=count)
        pairs = self.classes[first] * count + self.classes[second]
        self.pairs = sums_at(pairs, counts, count * count).reshape(count, count)
        self.left = sums_at(classes, self.as_first, count)
        self.right = sums_at(classes, self.as_second, count)

    def objective(self) -> float:
        """The value of F for the current classes."""
        return float(f(self.pairs).sum() - f(self.left).sum() - f(self.right).sum())

    def put(self, word: int, index: int, following: Floats, preceding: Floats, sign: int) -> None:
        """Add the counts of a word to those of a class, or remove them if `sign` is -1. `following`,
        `preceding`: how often each class occurs after and before the word, leaving out the word itself."""
        self.pairs[index] += sign * following
        self.pairs[:, index] += sign * preceding
        self.pairs[index, index] += sign * self.self_pairs[word]
        self.left[index] += sign * self.as_first[word]
        self.right[index] += sign * self.as_second[word]
        self.sizes[index] += sign

    def gains(self, word: int, following: Floats, preceding: Floats) -> Floats:
        """Increase of F if the word, which is in no class now, is put into each class: (C,)"""
        next_classes, previous_classes = np.flatnonzero(following), np.flatnonzero(preceding)
        rows, columns = self.pairs[:, next_classes], self.pairs[previous_classes]
        total = (f(rows + following[next_classes]) - f(rows)).sum(1)
        total += (f(columns.T + preceding[previous_classes]) - f(columns.T)).sum(1)
        inside = self.pairs.diagonal()
        separate = f(inside + following) - f(inside) + f(inside + preceding) - f(inside)  # were in both sums
        joint = f(inside + following + preceding + self.self_pairs[word]) - f(inside)
        total += joint - separate
        total -= f(self.left + self.as_first[word]) - f(self.left)
        total -= f(self.right + self.as_second[word]) - f(self.right)
        return np.asarray(total)

    def move(self, word: int) -> bool:
        """Move a word to the class in which F is greatest; returns whether it moved. It stays if no other
        class is better, or if its class has no other word."""
        current = int(self.classes[word])
        if self.sizes[current] == 1:
            return False
        following, preceding = (
            side.of(word, self.classes, self.count) for side in (self.following, self.preceding)
        )
        self.put(word, current, following, preceding, -1)
        gains = self.gains(word, following, preceding)
        best = int(gains.argmax())
        if gains[best] <= gains[current] + 1e-9:
            best = current
        self.put(word, best, following, preceding, 1)
        self.classes[word] = best
        return best != current


def cluster(text: NDArray[np.integer], classes: Ints, count: int) -> Ints:
    """Improve the `count` classes (V,) of words by the exchange algorithm on a text (n,); returns the new
    classes and logs each round. Words that are not in the text keep their class."""
    if len(text) < 2 or count < 2:
        return classes
    work = Exchange(text, classes, count)
    seen = work.as_first + work.as_second
    order = np.argsort(-seen, kind="stable")[: int((seen > 0).sum())].tolist()
    for number in range(EXCHANGE_ROUNDS):
        moved = sum(work.move(word) for word in order)
        log.info("word classes: round %d moved %d of %d words", number + 1, moved, len(order))
        if moved <= STILL_SHARE * len(order):
            break
    return work.classes


# ---- classes -----------------------------------------------------------------------------------------------


class ClassSoftmax(Hierarchical):
    """A softmax over classes, followed by a softmax over the words of the class. Before `learn`, classes are
    equal parts of the vocabulary."""

    learns_text: ClassVar[bool] = True
    reads: ClassVar[frozenset[str]] = frozenset({"output_classes", "output_class_count"})

    def __init__(
        self, inputs: int, vocab_size: int, bias: bool = True, settings: OutputSettings | None = None
    ) -> None:
        settings = settings or OutputSettings()
        self.count = min(settings.output_class_count or math.ceil(math.sqrt(vocab_size)), vocab_size)
        self.kind = settings.output_classes
        super().__init__(inputs, hierarchy(equal_parts(np.arange(vocab_size), self.count), self.count), bias)

    def learn(self, text: NDArray[np.integer]) -> None:
        counts = np.bincount(text, minlength=self.vocab_size)
        classes = CLASSES[self.kind](text, counts, self.count)
        self.set_hierarchy(hierarchy(classes, self.count))
        sizes = np.bincount(classes, minlength=self.count)
        log.info(
            "%d classes of %d to %d words, %.0f rows of the output matrix for a word of the training text "
            "instead of %d",
            self.count, sizes.min(), sizes.max(), self.count + (sizes[classes] * counts).sum() / counts.sum(),
            len(counts),
        )  # fmt: skip


def hierarchy(classes: Ints, count: int) -> Hierarchy:
    """Build the hierarchy of the given classes (V,). Each of the `count` classes must have a word."""
    sizes = np.bincount(classes, minlength=count)
    assert sizes.all(), "a class without words"
    leaf = np.empty(len(classes), np.int64)
    leaf[np.argsort(classes, kind="stable")] = count + np.arange(len(classes))
    starts = np.concatenate([[0, count], count + np.cumsum(sizes)])
    return Hierarchy(leaf, np.concatenate([[-1], np.arange(count)]), starts)


def equal_parts(order: Ints, count: int) -> Ints:
    """Cut words, in the given order (V,), into classes of equal size: (V,)"""
    classes = np.empty(len(order), np.int64)
    for number, part in enumerate(np.array_split(order, count)):
        classes[part] = number
    return classes


def at_random(text: NDArray[np.integer], counts: Ints, count: int) -> Ints:
    """Assign words at random to `count` classes of equal size: (V,). The seed is fixed, and the text is not
    used. `counts` (V,): occurrences in the text."""
    return equal_parts(np.random.default_rng(0).permutation(len(counts)), count)


def by_frequency(text: NDArray[np.integer], counts: Ints, count: int) -> Ints:
    """Cut words, in order of frequency, into `count` classes of about equal probability (Mikolov et al.
    2011): (V,). `counts` (V,): occurrences in the text."""
    order = np.argsort(-counts, kind="stable")
    share = np.cumsum(counts[order]) / max(1, counts.sum())
    classes = np.empty(len(counts), np.int64)
    current = 0
    for position, word in enumerate(order.tolist()):
        classes[word] = current
        remaining, open_classes = len(order) - position - 1, count - current - 1
        if open_classes and (share[position] > (current + 1) / count or remaining <= open_classes):
            current += 1
    return classes


def by_neighbors(text: NDArray[np.integer], counts: Ints, count: int) -> Ints:
    """Group words that have similar neighbors in the text into `count` classes: (V,). `counts` (V,):
    occurrences."""
    return cluster(text, by_frequency(text, counts, count), count)


CLASSES: dict[str, Callable[[NDArray[np.integer], Ints, int], Ints]] = {
    "frequency": by_frequency,
    "random": at_random,
    "clusters": by_neighbors,
}
