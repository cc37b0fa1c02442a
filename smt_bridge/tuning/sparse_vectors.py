"""Sparse feature values of hypotheses: vectors of which few columns differ from 0, each distinct one stored
once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ENTRY = np.dtype([("column", "<i4"), ("value", "<f4")])  # of a vector


@dataclass
class SparseVectors:
    """A growing collection of V distinct vectors with F columns. The bytes of a vector are its entries."""

    names: dict[str, int] = field(default_factory=dict)  # name -> column
    vectors: dict[bytes, int] = field(default_factory=dict)  # entries, sorted by column -> number

    def add(self, values: Mapping[str, float]) -> int:
        """The number of the vector of these values; it and its names are added if they are new."""
        names = self.names
        entries = sorted((names.setdefault(name, len(names)), value) for name, value in values.items())
        return self.add_entries(np.array(entries, ENTRY).tobytes())

    def add_entries(self, entries: bytes) -> int:
        """The number of the vector of these entries, which is added if it is new."""
        return self.vectors.setdefault(entries, len(self.vectors))

    def since(self, names: int, vectors: int) -> "SavedVectors":
        """The names and vectors that were added after the first `names` and `vectors`."""
        added = list(self.vectors)[vectors:]
        return SavedVectors(
            names=np.frombuffer("\n".join(list(self.names)[names:]).encode(), np.uint8),
            cut=np.cumsum([0, *(len(entries) // ENTRY.itemsize for entries in added)]),
            entries=np.frombuffer(b"".join(added), ENTRY),
        )

    def extend(self, saved: "SavedVectors") -> None:
        """Add what `since` returned. ValueError for arrays that do not fit together."""
        for name in filter(None, saved.names.tobytes().decode("utf-8").split("\n")):
            self.names.setdefault(name, len(self.names))
        cut, entries = saved.cut.tolist(), saved.entries
        if entries.dtype != ENTRY or cut[:1] != [0] or cut[-1] != len(entries) or cut != sorted(cut):
            raise ValueError("sparse vectors whose sizes do not fit together")
        if len(entries) and not 0 <= entries["column"].min() <= entries["column"].max() < len(self.names):
            raise ValueError("sparse values without a name")
        for first, last in pairwise(cut):
            self.add_entries(entries[first:last].tobytes())

    def columns(self, vectors: Ints) -> "SparseColumns":
        """The columns of hypotheses, given by the numbers of their vectors: (N,)"""
        every = self.since(0, 0)
        return SparseColumns(
            names=list(self.names),
            vectors=vectors,
            cut=every.cut,
            column=every.entries["column"].astype(np.int64),
            value=every.entries["value"].astype(np.float64),
        )


@dataclass
class SavedVectors:
    """Vectors as arrays for a file."""

    names: NDArray[np.uint8]  # of new columns: UTF-8, separated by line ends
    cut: Ints  # (V + 1,) vector i has entries cut[i] to cut[i + 1] - 1
    entries: NDArray[np.void]  # of type ENTRY


@dataclass
class SparseColumns:
    """The F sparse columns of N hypotheses."""

    names: Sequence[str]  # (F,)
    vectors: Ints  # (N,) the vector of each hypothesis
    cut: Ints  # (V + 1,) vector i has entries cut[i] to cut[i + 1] - 1
    column: Ints  # of each entry
    value: Floats

    @cached_property
    def owner(self) -> Ints:
        """The vector of each entry."""
        return np.repeat(np.arange(len(self.cut) - 1), np.diff(self.cut))

    def dot(self, weights: Floats) -> Floats:
        """Σ weight x value of each hypothesis: (F,) -> (N,)"""
        sums = np.bincount(self.owner, self.value * weights[self.column], len(self.cut) - 1)
        return np.asarray(sums[self.vectors], np.float64)

    def rows(self, indices: Ints) -> "SparseColumns":
        """The columns of some hypotheses: (n,)"""
        return replace(self, vectors=self.vectors[indices])

    def groups(self, starts: Ints) -> Iterator["SparseGroup"]:
        """Yield the hypotheses of each sentence, those from starts[s] to starts[s + 1] - 1."""
        sizes = np.diff(self.cut)
        for first, last in pairwise(starts):
            vectors = self.vectors[first:last]
            counts = sizes[vectors]
            ends = np.cumsum(counts)
            at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(
                self.cut[vectors] - (ends - counts), counts
            )
            yield SparseGroup(
                np.repeat(np.arange(len(vectors)), counts), self.column[at], self.value[at], len(vectors)
            )


@dataclass
class SparseGroup:
    """The sparse values of the n hypotheses of a sentence, entry by entry."""

    owner: Ints  # hypothesis of each entry
    column: Ints
    value: Floats
    size: int  # n

    def dot(self, weights: Floats) -> Floats:
        """Σ weight x value of each hypothesis: (F,) -> (n,)"""
        return np.asarray(np.bincount(self.owner, self.value * weights[self.column], self.size))

    def add_to(self, total: Floats, row: int, factor: float) -> None:
        """Add the values of a hypothesis, times a factor, to `total`: (F,)"""
        part = slice(*np.searchsorted(self.owner, [row, row + 1]).tolist())
        np.add.at(total, self.column[part], factor * self.value[part])
