"""Lines that occurred before, found in bounded memory: digests are in a file without a name."""

from collections.abc import Iterator
from tempfile import TemporaryFile

import numpy as np
from numpy.typing import NDArray

from nmt.digests import digest64

BUCKET = 1 << 19  # digests sorted at a time
BLOCK = 1 << 18  # digests read at a time


class Digests:
    """64-bit digests of lines, in order."""

    def __init__(self) -> None:
        self.file = TemporaryFile()
        self.count = 0

    def add(self, line: str) -> None:
        """Append a line."""
        self.file.write(digest64(line.encode()))
        self.count += 1

    def repeated(self, bucket: int = BUCKET) -> Iterator[NDArray[np.int64]]:
        """The numbers, from 0, of all lines that occurred before; then the file is closed."""
        buckets = -(-self.count // bucket)
        for number in range(buckets):
            found = [
                (keys[mask], first + np.flatnonzero(mask))
                for first, keys in self.blocks()
                if (mask := keys % buckets == number).any()
            ]
            if found:
                keys, rows = map(np.concatenate, zip(*found, strict=True))
                order = np.argsort(keys, kind="stable")  # the first of equal ones stays the first
                again = np.flatnonzero(np.diff(keys[order]) == 0) + 1
                yield rows[order[again]]
        self.file.close()

    def blocks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """The digests, many at a time, and the number of the first of each block."""
        self.file.seek(0)
        for first in range(0, self.count, BLOCK):
            yield first, np.frombuffer(self.file.read(8 * BLOCK), np.uint64)
