"""Every phrase pair of a block that its alignment allows (Och and Ney 2004; Moses' `extract`), and the word
pairs of lexical weights.

A pair is consistent when no word in it is linked to a word outside, and at least one word in it is linked.
Unlinked source words at its edges may belong to it: there is a pair for each choice. Orientations are
word-based: is the word diagonally before (behind) the phrase pair linked?
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smt_bridge.decoder.compiled import njit
from smt_bridge.extraction.corpus import Block, Int32s, SideVocab, Survey

MONOTONE, SWAP, OTHER = range(3)
UINT = NDArray[np.uint64]
Int64s = NDArray[np.int64]


class Packing(NamedTuple):
    """How the words of a phrase and its end fill 64-bit columns."""

    bits: int  # of a word
    each: int  # words a column holds
    columns: int
    end: int  # number of the end of a phrase


def packing_of(side: SideVocab, longest: int) -> Packing:
    """The packing of phrases of at most `longest` words and their end."""
    each = 64 // side.bits
    return Packing(bits=side.bits, each=each, columns=-(-(longest + 1) // each), end=side.end)


@njit
def linked(
    points: Int32s, first: int, last: int, source: int, target: int, source_size: int, target_size: int
) -> bool:
    """Is there a link in points[first : last]? Before the first words and behind the last, there
    always is one."""
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
def limits(points: Int32s, first: int, last: int, n: int, m: int) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """The first and last source word linked to each target word: (m,), (m,); and the other way: (n,), (n,)"""
    low, high = np.full(m, n), np.full(m, -1)
    back_low, back_high = np.full(n, m), np.full(n, -1)
    for place in range(first, last):
        i, j = points[place, 0], points[place, 1]
        low[j], high[j] = min(low[j], i), max(high[j], i)
        back_low[i], back_high[i] = min(back_low[i], j), max(back_high[i], j)
    return low, high, back_low, back_high


@njit
def consistent(back_low: Int64s, back_high: Int64s, first: int, last: int, begin: int, end: int) -> bool:
    """Are source words first ... last linked to target words begin ... end only?"""
    for i in range(first, last + 1):
        if back_high[i] >= 0 and (back_low[i] < begin or back_high[i] > end):
            return False
    return True


@njit
def alignment_square(
    points: Int32s, p0: int, p1: int, first: int, last: int, begin: int, end: int
) -> np.uint64:
    """The links inside a pair: bit 8 i + j for its source word i and target word j."""
    bits = np.uint64(0)
    for place in range(p0, p1):
        i, j = points[place, 0] - first, points[place, 1] - begin
        if 0 <= i <= last - first and 0 <= j <= end - begin:
            bits |= np.uint64(1) << np.uint64(8 * i + j)
    return bits


@njit
def way(points: Int32s, p0: int, p1: int, first: int, last: int, begin: int, end: int, n: int, m: int) -> int:
    """Both orientations of a pair: 3 x that to what precedes + that to what follows."""
    before: int = orientation(
        linked(points, p0, p1, first - 1, begin - 1, n, m), linked(points, p0, p1, last + 1, begin - 1, n, m)
    )
    behind: int = orientation(
        linked(points, p0, p1, last + 1, end + 1, n, m), linked(points, p0, p1, first - 1, end + 1, n, m)
    )
    return 3 * before + behind


@njit
def extract(
    source: Int32s, source_cut: Int64s, target: Int32s, target_cut: Int64s, points: Int32s, point_cut: Int64s,
    longest: int, of_source: Packing, of_target: Packing, keys: UINT, square: UINT, ways: NDArray[np.uint8],
) -> int:  # fmt: skip
    """Fill keys (N, columns of the source, then of the target), square (N,), ways (N,); returns the number of
    pairs, or -1 when there is not enough room."""
    count = 0
    for pair in range(len(source_cut) - 1):
        n, m = source_cut[pair + 1] - source_cut[pair], target_cut[pair + 1] - target_cut[pair]
        s0, t0, p0, p1 = source_cut[pair], target_cut[pair], point_cut[pair], point_cut[pair + 1]
        low, high, back_low, back_high = limits(points, p0, p1, n, m)
        for begin in range(m):
            first, last = n, -1
            for end in range(begin, min(m, begin + longest)):
                first, last = min(first, low[end]), max(last, high[end])
                if last < 0 or last - first >= longest:
                    continue
                if not consistent(back_low, back_high, first, last, begin, end):
                    continue
                left = first
                while left >= 0 and last - left < longest and (left == first or back_high[left] < 0):
                    right = last
                    while right < n and right - left < longest and (right == last or back_high[right] < 0):
                        if count >= len(square):
                            return -1
                        for column in range(of_source.columns + of_target.columns):
                            keys[count, column] = 0
                        for place in range(right - left + 2):
                            word = source[s0 + left + place] if left + place <= right else of_source.end
                            shift = np.uint64(of_source.bits * (of_source.each - 1 - place % of_source.each))
                            keys[count, place // of_source.each] |= np.uint64(word) << shift
                        for place in range(end - begin + 2):
                            word = target[t0 + begin + place] if begin + place <= end else of_target.end
                            shift = np.uint64(of_target.bits * (of_target.each - 1 - place % of_target.each))
                            column = of_source.columns + place // of_target.each
                            keys[count, column] |= np.uint64(word) << shift
                        square[count] = alignment_square(points, p0, p1, left, right, begin, end)
                        ways[count] = way(points, p0, p1, left, right, begin, end, n, m)
                        count += 1
                        right += 1
                    left -= 1
    return count


class Extractor:
    """The instances of one block after the other; memory is reused."""

    def __init__(self, words: Survey, longest: int) -> None:
        self.longest = longest
        self.source, self.target = packing_of(words.source, longest), packing_of(words.target, longest)
        self.room = 1 << 16

    def instances(self, block: Block) -> tuple[UINT, UINT, NDArray[np.uint8]]:
        """Keys (N, K), alignment squares (N,) and orientations (N,), in the order of the text."""
        while True:
            keys = np.empty((self.room, self.source.columns + self.target.columns), np.uint64)
            square, ways = np.empty(self.room, np.uint64), np.empty(self.room, np.uint8)
            count = extract(
                block.source, block.source_cut, block.target, block.target_cut, block.points, block.point_cut,
                self.longest, self.source, self.target, keys, square, ways,
            )  # fmt: skip
            if count >= 0:
                return keys[:count], square[:count], ways[:count]
            self.room *= 2


def unpack(keys: UINT, packing: Packing, longest: int) -> Int32s:
    """The words of phrases and the number of their end, then 0: (N, columns) -> (N, longest + 1)"""
    mask = np.uint64((1 << packing.bits) - 1)
    shifts = [np.uint64(packing.bits * (packing.each - 1 - place)) for place in range(packing.each)]
    columns = [
        (keys[:, place // packing.each] >> shifts[place % packing.each]) & mask
        for place in range(longest + 1)
    ]
    return np.stack(columns, 1).astype(np.int32)


def word_pairs(block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The two words of every link of a block, and NULL (0) with each word without a link: (L,), (L,)"""
    source_of = np.repeat(block.source_cut[:-1], np.diff(block.point_cut)) + block.points[:, 0]
    target_of = np.repeat(block.target_cut[:-1], np.diff(block.point_cut)) + block.points[:, 1]
    lone_source, lone_target = np.ones(len(block.source), bool), np.ones(len(block.target), bool)
    lone_source[source_of], lone_target[target_of] = False, False
    left = [block.source[source_of], block.source[lone_source], np.zeros(int(lone_target.sum()), np.int32)]
    right = [block.target[target_of], np.zeros(int(lone_source.sum()), np.int32), block.target[lone_target]]
    return np.concatenate(left).astype(np.int64), np.concatenate(right).astype(np.int64)
