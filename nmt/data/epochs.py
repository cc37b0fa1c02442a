"""Which pairs an epoch has, where the corpora of a training are over- or undersampled.

An epoch takes c of the n pairs of a corpus: all of them ⌊c / n⌋ times, and c mod n of them, drawn anew in
each epoch without replacement, once more. Two corpora, `abc` with c = 5 and `wxyz` with c = 2:

    place   0  1  2  3  4  5  6
    pair    a  b  c  c  a  z  x

All follows from seed and epoch. It takes 4 bytes of memory for each place, and for each pair drawn.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DRAWN = 1  # tells the generators of this module from those of nmt/data/batches.py


class EpochPairs:
    """The pairs of one epoch. `sizes`: of the corpora, one after the other; `counts`: how many pairs of each
    it has."""

    def __init__(self, sizes: Sequence[int], counts: Sequence[int], seed: int, epoch: int) -> None:
        self.plain = list(sizes) == list(counts)
        self.sizes = np.array(sizes, np.int64)
        self.starts = np.cumsum([0, *sizes])
        self.places = np.cumsum([0, *counts])
        self.drawn = [
            draw(size, count % size, [seed, epoch, place, DRAWN])
            for place, (size, count) in enumerate(zip(sizes, counts, strict=True))
        ]

    def rows(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of the pair at each place of the epoch: (n,) -> (n,)"""
        if self.plain:
            return places
        corpus = np.searchsorted(self.places, places, side="right") - 1
        rows: NDArray[np.int64] = places - self.places[corpus]
        for number in np.unique(corpus):
            here = corpus == number
            size, drawn = self.sizes[number], self.drawn[number]
            inside = rows[here]
            beyond = inside - (self.places[number + 1] - self.places[number] - len(drawn))
            inside = np.where(beyond < 0, inside % size, inside)
            inside[beyond >= 0] = drawn[beyond[beyond >= 0]]
            rows[here] = self.starts[number] + inside
        return rows


def draw(size: int, count: int, seed: Sequence[int]) -> NDArray[np.integer]:
    """`count` of the numbers below `size`, none of them twice."""
    if not count:
        return np.zeros(0, np.int32)
    numbers = shuffled(size, np.random.default_rng(seed))
    return numbers[:count].copy()


def shuffled(size: int, random: np.random.Generator) -> NDArray[np.integer]:
    """The numbers below `size` in random order, in 4 bytes each where they fit."""
    kind: type[np.integer] = np.int32 if size <= np.iinfo(np.int32).max else np.int64
    numbers: NDArray[np.integer] = np.arange(size, dtype=kind)
    random.shuffle(numbers)
    return numbers
