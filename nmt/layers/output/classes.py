"""The class-based softmax: p(w) = p(class of w) p(w | class of w) (Goodman 2001; Jernite 2018, eq. 2.6).
With about √V classes a word costs 2 √V rows instead of V.

V words, C classes, K features.
"""

import logging
import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nmt.layers.output.base import OutputSettings
from nmt.layers.output.hierarchy import Hierarchical, Hierarchy, Ints
from nmt.ngram.word_classes import Bigrams, cluster

log = logging.getLogger(__name__)


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
    """Group words that have similar neighbors in the text into `count` classes, by the exchange algorithm
    (nmt/ngram/word_classes.py): (V,). `counts` (V,): occurrences."""
    return cluster(Bigrams.of(text, len(counts)), by_frequency(text, counts, count), count)


CLASSES: dict[str, Callable[[NDArray[np.integer], Ints, int], Ints]] = {
    "frequency": by_frequency,
    "random": at_random,
    "clusters": by_neighbors,
}
