"""An external sort by distribution: rows are spread over files by the first columns of their keys; each file
is sorted in memory.

Files are in order, so that sorted files one after the other are the sorted whole. A file that has become too
large for memory is spread again.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.uint64]


class Buckets:
    """Rows of `columns` 64-bit numbers in files of a folder, split at values of one column."""

    def __init__(self, folder: Path, columns: int, splitters: Array, by: int = 0) -> None:
        self.folder, self.columns, self.splitters, self.by = folder, columns, splitters, by
        folder.mkdir(parents=True, exist_ok=True)
        self.rows = np.zeros(len(splitters) + 1, np.int64)

    def add(self, rows: Array) -> None:
        """Append rows (N, columns), each to its file."""
        where = np.searchsorted(self.splitters, rows[:, self.by], "right")
        for bucket in np.unique(where):
            part = rows[where == bucket]
            with open(self.path(int(bucket)), "ab") as out:
                out.write(part.tobytes())
            self.rows[bucket] += len(part)

    def path(self, bucket: int) -> Path:
        return self.folder / f"{bucket:05d}"

    def read(self, bucket: int) -> Array:
        if not self.rows[bucket]:
            return np.zeros((0, self.columns), np.uint64)
        return np.fromfile(self.path(bucket), np.uint64).reshape(-1, self.columns)

    def pieces(self, bucket: int, rows: int) -> Iterator[Array]:
        """A file in pieces of so many rows."""
        with open(self.path(bucket), "rb") as stream:
            while len(piece := np.fromfile(stream, np.uint64, rows * self.columns)):
                yield piece.reshape(-1, self.columns)

    def walk(self, most: int, keys: int) -> Iterator[Array]:
        """All rows in order of files, each of at most `most` rows as far as the first `keys` columns can tell
        rows apart; files are deleted once read."""
        for bucket in range(len(self.rows)):
            if self.rows[bucket] > most:
                yield from self.again(bucket, most, keys)
            elif self.rows[bucket]:
                yield self.read(bucket)
            self.path(bucket).unlink(missing_ok=True)

    def again(self, bucket: int, most: int, keys: int) -> Iterator[Array]:
        """Spread a file that is too large, by the next column where all its rows are equal in this one."""
        for by in range(self.by, keys):
            sample = np.concatenate(
                [piece[:: max(1, len(piece) // 1000), by] for piece in self.pieces(bucket, most)]
            )
            inner = Buckets(
                self.folder / f"{bucket:05d}.by{by}",
                self.columns,
                quantiles(sample, int(self.rows[bucket] // most) + 2),
                by,
            )
            for piece in self.pieces(bucket, most):
                inner.add(piece)
            if inner.rows.max() < self.rows[bucket]:
                yield from inner.walk(most, keys)
                return
            shutil.rmtree(inner.folder)
        yield self.read(bucket)  # one key alone: nothing tells its rows apart


def quantiles(values: Array, parts: int) -> Array:
    """Values that cut a sample into parts of about the same size, and the numbers after them, so that a
    frequent value is a part by itself."""
    if not len(values):
        return np.zeros(0, np.uint64)
    ordered = np.sort(values)
    cuts = ordered[np.linspace(0, len(ordered), parts + 1)[1:-1].astype(np.int64)]
    return np.unique(np.concatenate([cuts, cuts + np.uint64(1)]))
