"""A corpus as ids in memory; nmt/data/binarized.py stores and opens it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = Sequence[int] | NDArray[np.integer]


@dataclass
class Corpus:
    """Pairs of id sequences, without start and end symbols.

    Sentence i is `source[source_offsets[i]:source_offsets[i + 1]]`, likewise for the target. `affiliation`:
    for aligned models, the position of a source word in its sentence for each target word. `parts`: the
    number of pairs of each of several concatenated corpora.
    """

    source: NDArray[np.integer]
    source_offsets: NDArray[np.int64]
    target: NDArray[np.integer]
    target_offsets: NDArray[np.int64]
    affiliation: NDArray[np.integer] | None = None
    parts: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.source_offsets) - 1

    def pair(self, index: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Source ids and target ids of a pair."""
        source = self.source[self.source_offsets[index] : self.source_offsets[index + 1]]
        target = self.target[self.target_offsets[index] : self.target_offsets[index + 1]]
        return source.astype(np.int64), target.astype(np.int64)

    def sizes(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Number of units of each pair's source and target, end symbols included: (n,) -> (2, n)"""
        offsets = self.source_offsets, self.target_offsets
        return np.stack([side[rows + 1] - side[rows] + 1 for side in offsets])

    def lengths(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Length of the longer side of each pair, without end symbols: (n,) -> (n,)"""
        longer: NDArray[np.int64] = self.sizes(rows).max(0) - 1
        return longer
