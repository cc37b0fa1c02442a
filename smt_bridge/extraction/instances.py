"""Every phrase pair of a block that its alignment allows (Och and Ney 2004; Moses' `extract`), and the word
pairs of lexical weights.

A pair is consistent when no word inside is linked to one outside, and something inside is linked. Unlinked
source words at its edges belong to it or not: both are pairs. Orientations are word-based: is the word
diagonally before (behind) the phrase pair linked?
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from smt_bridge.decoder.compiled import njit
from smt_bridge.extraction.corpus import Block, Survey

MONOTONE, SWAP, OTHER = range(3)
UINT = NDArray[np.uint64]


def key_columns(bits: int, longest: int) -> tuple[int, int]:
    """Words a column of 64 bits holds, and columns that a phrase and its end need."""
    each = 64 // bits
    return each, -(-(longest + 1) // each)


@njit
def linked(
    points: Any, first: int, last: int, source: int, target: int, source_size: int, target_size: int
) -> bool:
    """Is there a link; before the first and behind the last words there is one."""
    if source == -1 and target == -1:
        return True
    if source < 0 or target < 0:
        return False
    if source == source_size and target == target_size:
        return True
    for place in range(first, last):  # noqa: SIM110  (numba knows no any())
        if points[place, 0] == source and points[place, 1] == target:
            return True
    return False


@njit
def orientation(straight: bool, crossed: bool) -> int:
    if straight and not crossed:
        return MONOTONE
    if crossed and not straight:
        return SWAP
    return OTHER


@njit
def extract(
    source: Any, source_cut: Any, target: Any, target_cut: Any, points: Any, point_cut: Any, longest: int,
    packing: Any, keys: Any, square: Any, ways: Any,
) -> int:  # fmt: skip
    """Fill keys (N, columns of the source, then of the target), square (N,), ways (N,); returns how many, or
    -1 where there is no room.

    packing: (bits, words a column, columns, number of the end) of the source, then of the target.
    """
    (
        source_bits,
        source_each,
        source_columns,
        source_end,
        target_bits,
        target_each,
        target_columns,
        target_end,
    ) = packing
    count = 0
    for pair in range(len(source_cut) - 1):
        n, m = source_cut[pair + 1] - source_cut[pair], target_cut[pair + 1] - target_cut[pair]
        s0, t0 = source_cut[pair], target_cut[pair]
        p0, p1 = point_cut[pair], point_cut[pair + 1]
        low, high = np.full(m, n), np.full(m, -1)  # linked source words of each target word
        back_low, back_high = np.full(n, m), np.full(n, -1)
        for place in range(p0, p1):
            i, j = points[place, 0], points[place, 1]
            low[j], high[j] = min(low[j], i), max(high[j], i)
            back_low[i], back_high[i] = min(back_low[i], j), max(back_high[i], j)
        for begin in range(m):
            first, last = n, -1
            for end in range(begin, min(m, begin + longest)):
                first, last = min(first, low[end]), max(last, high[end])
                if last < 0 or last - first >= longest:
                    continue
                inside = True
                for i in range(first, last + 1):
                    if back_high[i] >= 0 and (back_low[i] < begin or back_high[i] > end):
                        inside = False
                        break
                if not inside:
                    continue
                from_ = first
                while from_ >= 0 and last - from_ < longest and (from_ == first or back_high[from_] < 0):
                    to = last
                    while to < n and to - from_ < longest and (to == last or back_high[to] < 0):
                        if count >= len(square):
                            return -1
                        for column in range(source_columns + target_columns):
                            keys[count, column] = 0
                        for i in range(from_, to + 2):
                            place = i - from_
                            word = source[s0 + i] if i <= to else source_end
                            shift = np.uint64(source_bits * (source_each - 1 - place % source_each))
                            keys[count, place // source_each] |= np.uint64(word) << shift
                        for j in range(begin, end + 2):
                            place = j - begin
                            word = target[t0 + j] if j <= end else target_end
                            shift = np.uint64(target_bits * (target_each - 1 - place % target_each))
                            keys[count, source_columns + place // target_each] |= np.uint64(word) << shift
                        bits = np.uint64(0)
                        for place in range(p0, p1):
                            i, j = points[place, 0] - from_, points[place, 1] - begin
                            if 0 <= i <= to - from_ and 0 <= j <= end - begin:
                                bits |= np.uint64(1) << np.uint64(8 * i + j)
                        square[count] = bits
                        before = orientation(
                            linked(points, p0, p1, from_ - 1, begin - 1, n, m),
                            linked(points, p0, p1, to + 1, begin - 1, n, m),
                        )
                        behind = orientation(
                            linked(points, p0, p1, to + 1, end + 1, n, m),
                            linked(points, p0, p1, from_ - 1, end + 1, n, m),
                        )
                        ways[count] = 3 * before + behind
                        count += 1
                        to += 1
                    from_ -= 1
    return count


class Extractor:
    """Blocks in, instances out; memory is reused from block to block."""

    def __init__(self, words: Survey, longest: int) -> None:
        self.longest = longest
        packing = []
        for side in (words.source, words.target):
            each, columns = key_columns(side.bits, longest)
            packing += [side.bits, each, columns, side.end]
        self.packing = tuple(packing)
        self.source_columns, self.target_columns = packing[2], packing[6]
        self.room = 1 << 16

    def instances(self, block: Block) -> tuple[UINT, UINT, NDArray[np.uint8]]:
        """Keys (N, K), alignment squares (N,) and orientations (N,), in the order of the text."""
        while True:
            keys = np.empty((self.room, self.source_columns + self.target_columns), np.uint64)
            square, ways = np.empty(self.room, np.uint64), np.empty(self.room, np.uint8)
            count = extract(
                block.source,
                block.source_cut,
                block.target,
                block.target_cut,
                block.points,
                block.point_cut,
                self.longest,
                self.packing,
                keys,
                square,
                ways,
            )
            if count >= 0:
                return keys[:count], square[:count], ways[:count]
            self.room *= 2


def unpack(keys: UINT, bits: int, each: int, longest: int) -> NDArray[np.int32]:
    """The words of phrases, 0 behind their end: (N, columns) -> (N, longest + 1), the end's number
    included"""
    columns = [
        (keys[:, place // each] >> np.uint64(bits * (each - 1 - place % each))) & np.uint64((1 << bits) - 1)
        for place in range(longest + 1)
    ]
    return np.stack(columns, 1).astype(np.int32)


def word_pairs(block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every link of a block as two words, and NULL (0) against each word without a link: (L,), (L,)"""
    source_of = np.repeat(block.source_cut[:-1], np.diff(block.point_cut)) + block.points[:, 0]
    target_of = np.repeat(block.target_cut[:-1], np.diff(block.point_cut)) + block.points[:, 1]
    lone_source, lone_target = np.ones(len(block.source), bool), np.ones(len(block.target), bool)
    lone_source[source_of], lone_target[target_of] = False, False
    left = [block.source[source_of], block.source[lone_source], np.zeros(int(lone_target.sum()), np.int32)]
    right = [block.target[target_of], np.zeros(int(lone_source.sum()), np.int32), block.target[lone_target]]
    return np.concatenate(left).astype(np.int64), np.concatenate(right).astype(np.int64)
