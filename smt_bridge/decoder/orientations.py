"""The orientation of a phrase in the search, relative to the phrase before it; with a hierarchical model
relative to a block of phrases (Galley and Manning 2008).

The phrases of a hypothesis are shifted to a stack one by one. As long as the source spans of the two
uppermost entries are adjacent, they are merged. An entry is called a region here: a source span whose words
were translated one after the other, in whatever order. A phrase is oriented relative to the uppermost region.

The next phrase is not known yet when a phrase is to be oriented relative to what follows. Moses looks at the
coverage instead: a next phrase anywhere after it is monotone if there is a gap right after it, since it may
belong to a block that fills the gap; likewise swaps.

Orientations are MONOTONE, SWAP, LEFT and RIGHT, of which a type of model may merge some
(`ReorderingType.score_of`). The start of a sentence is a region from word -2 to word -1.
"""

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import njit, njit_inline
from nmt.ngram.compiled_queries import MIX
from smt_bridge.decoder.arrays import FULL, REGIONS, Int32s, Int64s, SearchState
from smt_bridge.moses.reordering import LEFT, MONOTONE, RIGHT, SWAP

BEFORE = (-2, -1)  # the region before a sentence


@njit_inline
def relative_orientation(first: int, last: int, before_first: int, before_last: int) -> int:
    """The orientation of a phrase from word `first` to word `last` relative to the span from `before_first`
    to `before_last`, which was translated before it."""
    if first == before_last + 1:
        return MONOTONE
    if last + 1 == before_first:
        return SWAP
    return RIGHT if first > before_last else LEFT


@njit_inline
def orientation_of_next(
    first: int, last: int, before_first: int, before_last: int, gap_before: bool, gap_after: bool
) -> int:
    """The orientation of the next phrase, from word `first` to word `last`, relative to the previous phrase,
    from word `before_first` to word `before_last`, in a hierarchical model. `gap_before`, `gap_after`:
    whether the word before, or after, the previous phrase is untranslated when the next one is chosen."""
    if first == before_last + 1 or (first > before_last and gap_after):
        return MONOTONE
    if last + 1 == before_first or (last < before_first and gap_before):
        return SWAP
    return RIGHT if first > before_last else LEFT


@njit_inline
def find_regions(S: SearchState, hypothesis: int, first: int, last: int) -> int:
    """Return the number of the regions after a hypothesis is extended by a phrase from word `first` to word
    `last`: of the uppermost one, below which the others are. New ones are added; -1 if memory is full, which
    sets `counters[FULL]`."""
    below, low, high = S.hypotheses[hypothesis].regions, first, last
    adjacent = True
    while adjacent and below > 0:
        region = S.regions[below]
        if low == region.last + 1:
            low = region.first
        elif high + 1 == region.first:
            high = region.last
        else:
            adjacent = False
        if adjacent:
            below = region.below
    mixed = (np.int64(below) * MIX + np.int64(low)) * MIX + np.int64(high)
    size = len(S.region_table) - 1
    slot = ((mixed * MIX) >> np.int64(24)) & size
    number = -1
    while number < 0 and S.region_table[slot] != -1:
        rival = S.region_table[slot]
        entry = S.regions[rival]
        if entry.below == below and entry.first == low and entry.last == high:
            number = rival
        slot = (slot + 1) & size
    if number < 0:
        number = S.counters[REGIONS]
        if number >= len(S.regions):
            S.counters[FULL] = 1
            number = -1
        else:
            S.counters[REGIONS] = number + 1
            S.region_table[slot] = number
            new = S.regions[number]
            new.below, new.first, new.last = below, low, high
    return int(number)


@njit
def path_orientations(
    first: Int32s, last: Int32s, opening: NDArray[np.bool_], hierarchical: bool
) -> tuple[Int64s, Int64s]:
    """The orientations of the P phrases of derivations, see `PathPhrases`: of each relative to what precedes
    it, (P,), and relative to the phrase before it as that phrase sees it, (P,), which has no meaning for the
    first phrase of a derivation. `hierarchical`: those of a hierarchical model."""
    count = len(first)
    backward, forward = np.zeros(count, np.int64), np.zeros(count, np.int64)
    covered = np.zeros(1 + (last.max() if count else 0), np.bool_)
    stack, height = np.zeros((count + 1, 2), np.int64), 1
    stack[0] = BEFORE
    for phrase in range(count):
        a, b = first[phrase], last[phrase]
        if opening[phrase]:
            covered[:] = False
            height = 1
        c, d = (BEFORE[0], BEFORE[1]) if opening[phrase] else (first[phrase - 1], last[phrase - 1])
        if not hierarchical:
            backward[phrase] = forward[phrase] = relative_orientation(a, b, c, d)
            continue
        backward[phrase] = relative_orientation(a, b, stack[height - 1, 0], stack[height - 1, 1])
        gap_before = c > 0 and not covered[c - 1]
        gap_after = d + 1 < len(covered) and not covered[d + 1]
        forward[phrase] = orientation_of_next(a, b, c, d, gap_before, gap_after)
        covered[a : b + 1] = True
        while height > 1 and (a == stack[height - 1, 1] + 1 or b + 1 == stack[height - 1, 0]):
            height -= 1
            a, b = min(a, stack[height, 0]), max(b, stack[height, 1])
        stack[height, 0], stack[height, 1] = a, b
        height += 1
    return backward, forward
