"""Lines that occur more than once, found by 64-bit digests: 8 bytes a line, and 32 more while the repeated
ones are counted. Of 100 million lines two are taken for equal once in 4,000 texts."""

from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.digests import digest64

Digests = NDArray[np.uint64]


def digest(line: str) -> int:
    """Of the text of a line."""
    return int.from_bytes(digest64(line.encode("utf-8", "surrogatepass")), "little")


@dataclass(frozen=True)
class Repeated:
    """How many lines repeat an earlier one; the numbers of the first of them and of the line it repeats, from
    1."""

    lines: int
    first: tuple[int, int] | None


class Digests64:
    """The digests of the lines of a text, in their order."""

    def __init__(self) -> None:
        self.kept = array("Q")

    def __len__(self) -> int:
        return len(self.kept)

    def add(self, line: str) -> None:
        """The next line."""
        self.kept.append(digest(line))

    def values(self) -> Digests:
        """As an array: (n,)"""
        return np.frombuffer(self.kept, np.uint64) if self.kept else np.zeros(0, np.uint64)

    def repeated(self) -> Repeated:
        """Lines that have occurred before."""
        order = np.argsort(self.values(), kind="stable")
        ordered = self.values()[order]
        again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
        if not len(again):
            return Repeated(0, None)
        place = again[np.argmin(order[again])]  # the second of its kind: no third one comes before it
        return Repeated(len(again), (int(order[place]) + 1, int(order[place - 1]) + 1))

    def unique(self) -> NDArray[np.bool_]:
        """Which lines occur once: (n,)"""
        found, counts = np.unique(self.values(), return_counts=True)
        result: NDArray[np.bool_] = counts[np.searchsorted(found, self.values())] == 1
        return result

    def within(self, others: "Digests64") -> "Shared":
        """Lines that another text has, too."""
        order = np.argsort(others.values(), kind="stable")
        ordered, mine = others.values()[order], self.values()
        places = np.searchsorted(ordered, mine)
        inside = places < len(ordered)
        inside[inside] = ordered[places[inside]] == mine[inside]
        there = np.flatnonzero(inside)
        first = (int(there[0]) + 1, int(order[places[there[0]]]) + 1) if len(there) else None
        return Shared(len(there), first)


@dataclass(frozen=True)
class Shared:
    """How many lines another text has, too; the number of the first, here and there, from 1."""

    lines: int
    first: tuple[int, int] | None
