"""The class-based softmax: p(w) = p(class of w) p(w | class of w) (Goodman 2001; eq. 2.6 of 000). About √V
classes make a word cost 2 √V rows instead of V.

V words, C classes, K features.
"""

import logging
import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nmt.layers.output.clusters import cluster
from nmt.layers.output.hierarchy import Hierarchical, Hierarchy, Ints
from nmt.layers.output.settings import OutputSettings

log = logging.getLogger(__name__)


class ClassSoftmax(Hierarchical):
    """A softmax over classes, and one over the words of each class: an `OutputLayer`. Until it is shown a
    text its classes are equal parts of the vocabulary."""

    reads: ClassVar[frozenset[str]] = frozenset({"output_classes", "output_class_count"})

    def __init__(
        self, inputs: int, vocab_size: int, bias: bool = True, settings: OutputSettings | None = None
    ) -> None:
        settings = settings or OutputSettings()
        self.count = min(settings.output_class_count or math.ceil(math.sqrt(vocab_size)), vocab_size)
        self.kind = settings.output_classes
        super().__init__(inputs, hierarchy(equal_parts(np.arange(vocab_size), self.count), self.count), bias)

    def learn(self, text: NDArray[np.integer]) -> None:
        """Choose the classes for a text (n,)."""
        counts = np.bincount(text, minlength=self.vocab_size)
        classes = CLASSES[self.kind](text, counts, self.count)
        self.place(hierarchy(classes, self.count))
        sizes = np.bincount(classes, minlength=self.count)
        log.info(
            "%d classes of %d to %d words, %.0f rows of the output matrix for a word of the training text "
            "instead of %d",
            self.count, sizes.min(), sizes.max(), self.count + (sizes[classes] * counts).sum() / counts.sum(),
            len(counts),
        )  # fmt: skip


def hierarchy(classes: Ints, count: int) -> Hierarchy:
    """The paths of words, given their classes (V,); each of the `count` classes has a word."""
    sizes = np.bincount(classes, minlength=count)
    assert sizes.all(), "a class without words"
    leaf = np.empty(len(classes), np.int64)
    leaf[np.argsort(classes, kind="stable")] = count + np.arange(len(classes))
    starts = np.concatenate([[0, count], count + np.cumsum(sizes)])
    return Hierarchy(leaf, np.concatenate([[-1], np.arange(count)]), starts)


def equal_parts(order: Ints, count: int) -> Ints:
    """Classes that are equal parts of words in some order: (V,) -> (V,)"""
    classes = np.empty(len(order), np.int64)
    for number, part in enumerate(np.array_split(order, count)):
        classes[part] = number
    return classes


def at_random(text: NDArray[np.integer], counts: Ints, count: int) -> Ints:
    """Equally large classes, drawn once and for all."""
    return equal_parts(np.random.default_rng(0).permutation(len(counts)), count)


def by_frequency(text: NDArray[np.integer], counts: Ints, count: int) -> Ints:
    """Words in order of their frequency, classes equally likely as far as words can be cut (Mikolov et al.
    2011)."""
    order = np.argsort(-counts, kind="stable")
    share = np.cumsum(counts[order]) / max(1, counts.sum())
    classes = np.empty(len(counts), np.int64)
    now = 0
    for place, word in enumerate(order.tolist()):
        classes[word] = now
        rest, open_classes = len(order) - place - 1, count - now - 1
        if open_classes and (share[place] > (now + 1) / count or rest <= open_classes):
            now += 1
    return classes


def by_neighbors(text: NDArray[np.integer], counts: Ints, count: int) -> Ints:
    """Words with like neighbors together."""
    return cluster(text, by_frequency(text, counts, count), count)


CLASSES: dict[str, Callable[[NDArray[np.integer], Ints, int], Ints]] = {
    "frequency": by_frequency,
    "random": at_random,
    "clusters": by_neighbors,
}
