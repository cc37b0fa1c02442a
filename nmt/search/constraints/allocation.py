"""How the beam of a sentence is shared among banks: those hypotheses that have met equally many units of what
is required. Without this they would lose to hypotheses that have met nothing."""

from collections.abc import Sequence
from typing import Protocol


class Allocation(Protocol):
    """A way to share a beam."""

    def each(self, width: int) -> int:
        """How many continuations of each hypothesis are looked at, beside the best ones of the sentence and
        those that meet one more unit."""
        ...

    def sizes(self, width: int, available: Sequence[int]) -> list[int]:
        """How many hypotheses each bank keeps, given how many it could; the last bank has met everything."""
        ...


class Dynamic:
    """Dynamic beam allocation (Post and Vilar 2018, section 3): the size of the beam does not depend on the
    constraints.

    The banks that have hypotheses share the beam alike. What one of them cannot use goes to others, first to
    those below. Of more banks than slots the lowest keeps one slot, in which the sentence goes on until a
    requirement fits in, and the highest ones have the others.
    """

    def each(self, width: int) -> int:
        """See Allocation."""
        return 1

    def sizes(self, width: int, available: Sequence[int]) -> list[int]:
        """See Allocation."""
        used = [bank for bank, count in enumerate(available) if count]
        sizes = [0] * len(available)
        if len(used) > width > 1:
            used = [used[0], *used[len(used) - width + 1 :]]
        share, surplus = divmod(width, max(1, len(used)))
        for bank in used:
            sizes[bank] = share
        for bank in (*reversed(range(len(sizes))), *range(len(sizes))):
            room = sizes[bank] + surplus
            sizes[bank] = min(room, available[bank])
            surplus = room - sizes[bank]
        return sizes


class Grid:
    """Grid beam search (Hokamp and Liu 2017): each bank has a beam of its own, so that the work grows with
    the constraints."""

    def each(self, width: int) -> int:
        """See Allocation."""
        return width

    def sizes(self, width: int, available: Sequence[int]) -> list[int]:
        """See Allocation."""
        return [min(width, count) for count in available]


ALLOCATIONS: dict[str, Allocation] = {"dynamic": Dynamic(), "grid": Grid()}
