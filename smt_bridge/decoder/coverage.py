"""Coverages of the compiled search, and the spans that may be translated after each.

A coverage consists of the first untranslated word and 64 bits for the words from there on, so sentences may
have any length, but a phrase that leaves a gap ends within these words, even without a distortion limit.
Coverages are numbered; the possible next spans and the future cost are computed once for each.
"""

import numpy as np

from nmt.compute.compiled import njit
from nmt.ngram.compiled_queries import MIX
from smt_bridge.decoder.arrays import (
    COVERAGES,
    FULL,
    MOVES,
    Floats,
    OptionArrays,
    ReorderingConstraints,
    SearchParameters,
    SearchState,
)

# ---- constraints -------------------------------------------------------------------------------------------
# Limits on reordering set by an input line: walls, and zones that must be finished once entered.
#
# The rules are those of Moses' ReorderingConstraint. They depend only on which words are translated, not on
# the order of their translation.


@njit
def is_covered(gap: int, mask: np.uint64, word: int) -> bool:
    """Whether a word is translated. `gap`: first untranslated word; `mask`: a bit for each from there on."""
    if word < gap:
        return True
    return word - gap < 64 and bool((mask >> np.uint64(word - gap)) & np.uint64(1) != np.uint64(0))


@njit
def permits(C: ReorderingConstraints, gap: int, mask: np.uint64, start: int, last: int, limit: int) -> bool:
    """Whether walls and zones allow the span from `start` to `last` to be translated next. `gap`, `mask`: the
    coverage, see `is_covered`; `limit`: the distortion limit, -1 for none."""
    if start != gap:
        for word in range(gap, last):
            if C.wall[word]:
                return False  # a gap is left before a wall
    furthest = gap - 1  # the last translated word
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
            if is_covered(gap, mask, word):
                done += 1
        if done == size:
            continue
        if last < first or start > end:
            if done:
                return False  # leaves a zone that is not finished
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
            if word < start and not is_covered(gap, mask, word):
                gap_before = True
            if gap_before and C.local[word] == zone:
                return False
    return True


# ---- coverage ----------------------------------------------------------------------------------------------


@njit
def find_coverage(S: SearchState, gap: int, mask: np.uint64, future: Floats, n: int) -> int:
    """Return the number of a coverage, see `is_covered`, of a sentence of n words. A new one is added with
    its future cost; -1 if memory is full, which sets `counters[FULL]`. `future`: see OptionArrays."""
    slot_mask = len(S.coverage_table) - 1  # the size is a power of 2
    slot = ((np.int64(mask) * MIX + np.int64(gap) * np.int64(7919)) >> np.int64(17)) & slot_mask
    while S.coverage_table[slot] != -1:
        number = S.coverage_table[slot]
        entry = S.coverages[number]
        if entry.gap == gap and entry.mask == mask:
            return int(number)
        slot = (slot + 1) & slot_mask
    number = S.counters[COVERAGES]
    if number >= len(S.coverages):
        S.counters[FULL] = 1
        return -1
    S.counters[COVERAGES] = number + 1
    S.coverage_table[slot] = number
    new = S.coverages[number]
    new.gap, new.mask, new.first_move = gap, mask, -1
    new.covered, new.future = covered_and_future(gap, mask, future, n)
    return int(number)


@njit
def covered_and_future(gap: int, mask: np.uint64, future: Floats, n: int) -> tuple[int, float]:
    """Number of translated words of a coverage of a sentence of n words; also returns its future cost, the
    sum of the best scores of its untranslated stretches. `gap`, `mask`: see `is_covered`."""
    covered, cost = gap, 0.0
    word, rest = gap, mask
    bit = np.uint64(1)
    while word < n:  # gaps between translated words, then the rest
        if rest == 0:
            cost += future[word, n - 1]
            break
        if rest & bit:
            covered += 1
            word += 1
            rest >>= bit
            continue
        last = word
        while not rest & bit:
            last += 1
            rest >>= bit
        cost += future[word, last - 1]
        word = last
    return covered, cost


@njit
def extend_coverage(gap: int, mask: np.uint64, start: int, last: int) -> tuple[int, np.uint64]:
    """The coverage after the span from `start` to `last` has been translated, in addition to `gap` and
    `mask`: its first untranslated word, and its mask."""
    bit = np.uint64(1)
    if start != gap:
        return gap, mask | (((bit << np.uint64(last - start + 1)) - bit) << np.uint64(start - gap))
    shift = last - gap + 1
    new_gap = last + 1
    new_mask = mask >> np.uint64(shift) if shift < 64 else np.uint64(0)
    while new_mask & bit:
        new_mask >>= bit
        new_gap += 1
    return new_gap, new_mask


@njit
def find_moves(S: SearchState, options: OptionArrays, parameters: SearchParameters, number: int) -> None:
    """Store the spans that may be translated after coverage `number`, as far as that does not depend on the
    last phrase. Sets `counters[FULL]` if memory runs out."""
    n, longest, limit = parameters.words, parameters.longest, parameters.distortion
    coverage = S.coverages[number]
    gap, mask, coverage.first_move = coverage.gap, coverage.mask, S.counters[MOVES]
    constrained = len(options.constraints.wall) > 0
    bit = np.uint64(1)
    stop = n if limit < 0 else min(n, gap + limit + 1)
    for start in range(gap, stop):
        if (mask >> np.uint64(start - gap)) & bit:
            continue
        for last in range(start, min(n, start + longest)):
            if last - gap < 64 and (mask >> np.uint64(last - gap)) & bit:
                break
            if start != gap and ((limit >= 0 and last + 1 - gap > limit) or last - gap >= 64):
                break  # the first gap could not be reached from there, or the mask has no bit for the word
            span = start * longest + last - start
            if options.number[span] == 0 or (
                constrained and not permits(options.constraints, gap, mask, start, last, limit)
            ):
                continue
            new_gap, new_mask = extend_coverage(gap, mask, start, last)
            reached = find_coverage(S, new_gap, new_mask, options.future, n)
            if reached < 0 or S.counters[MOVES] >= len(S.moves):
                S.counters[FULL] = 1
                return
            move = S.moves[S.counters[MOVES]]
            move.first, move.last, move.coverage = start, last, reached
            S.counters[MOVES] += 1
    coverage.moves = S.counters[MOVES] - coverage.first_move


@njit
def early_distortion(start: int, last: int, previous_last: int, gap: int) -> int:
    """The early distortion cost, in words, of a phrase from `start` to `last` (Moore and Quirk 2007):
    continuing at the first gap is free, and leaving it costs the jump there and back.

    `previous_last`: last word of the previous phrase, -1 if there is none; `gap`: first untranslated word.
    """
    length = last - start + 1
    if start == gap:
        return 0
    if last < previous_last:
        return 2 * length
    return 2 * (start - max(previous_last + 1, gap) + length)
