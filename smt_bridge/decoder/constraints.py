"""Limits on reordering set by an input line: walls, and zones that must be finished once entered.

The rules are those of Moses' ReorderingConstraint. They depend only on which words are translated, not on the
order of their translation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smt_bridge.decoder.compiled import njit

NO_ZONE = -1


class ReorderingConstraints(NamedTuple):
    """Walls and zones of a sentence of n words with Z zones; empty arrays where nothing is constrained."""

    wall: NDArray[np.bool_]  # (n,) a wall after a word
    local: NDArray[np.int32]  # (n,) the zone that a wall inside one belongs to
    zones: NDArray[np.int32]  # (Z, 2) first and last word

    @property
    def active(self) -> bool:
        return len(self.wall) > 0


def none() -> ReorderingConstraints:
    return constraints(0, (), ())


def constraints(words: int, walls: Sequence[int], zones: Sequence[tuple[int, int]]) -> ReorderingConstraints:
    """Build the arrays. A wall inside a zone, other than after its last word, applies to the innermost zone
    alone."""
    if not walls and not zones:
        words = 0
    wall, local = np.zeros(words, np.bool_), np.full(words, NO_ZONE, np.int32)
    wall[list(walls)] = True
    for number, (first, last) in enumerate(zones):
        for word in range(first, last):
            owner = local[word]
            if wall[word] or (owner != NO_ZONE and (zones[owner][0] < first or zones[owner][1] > last)):
                local[word] = number
                wall[word] = False
    return ReorderingConstraints(wall, local, np.array(zones, np.int32).reshape(-1, 2))


@njit
def covered(gap: int, mask: np.uint64, word: int) -> bool:
    """Whether a word is translated. `gap` is the first untranslated word, `mask` has a bit for each word from
    there on."""
    if word < gap:
        return True
    return word - gap < 64 and bool((mask >> np.uint64(word - gap)) & np.uint64(1) != np.uint64(0))


@njit
def permits(C: ReorderingConstraints, gap: int, mask: np.uint64, start: int, last: int, limit: int) -> bool:
    """Whether walls and zones allow a span to be translated next. `limit`: the distortion limit."""
    if start != gap:
        for word in range(gap, last):
            if C.wall[word]:
                return False  # a gap is left before a wall
    furthest = gap - 1  # translated word
    for offset in range(64):
        if (mask >> np.uint64(offset)) & np.uint64(1):
            furthest = gap + offset
    if start == gap and furthest < gap:
        return True  # in order
    for zone in range(len(C.zones)):
        first, end = C.zones[zone, 0], C.zones[zone, 1]
        if gap > end:
            continue
        size, done = end - first + 1, 0
        for word in range(first, end + 1):
            if covered(gap, mask, word):
                done += 1
        if done == size:
            continue
        if last < first or start > end:
            if done:
                return False  # outside of a zone that was entered
            continue
        if start != gap and limit >= 0 and end - gap >= limit:
            return False  # the first gap could not be reached from the zone's end
        if start <= first:
            continue
        if last > end:
            if end - start + 1 < size - done:
                return False  # leaves a gap in the zone
            continue
        gap_before = False
        for word in range(first, min(end, last)):
            if word < start and not covered(gap, mask, word):
                gap_before = True
            if gap_before and C.local[word] == zone:
                return False
    return True
