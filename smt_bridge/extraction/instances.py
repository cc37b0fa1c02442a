"""Extract all phrase pairs that the alignment of a block allows, and the word pairs of lexical weights (Och
and Ney 2004; Moses' `extract`).

A pair is consistent if no word in it is linked to a word outside, and at least one word in it is linked.
Unlinked source words at its edges may belong to it: each choice gives a pair.

The orientation of a pair depends on what touches it, before its first or after its last target word: a link
(word-based, Koehn et al. 2005), a pair that is extracted itself (phrase-based, Tillmann 2004), or a
consistent pair of any length (hierarchical, Galley and Manning 2008). The rules are those of Moses'
`extract`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import njit
from smt_bridge.extraction.corpus import CorpusSurvey, SentenceBlock, SideVocab
from smt_bridge.extraction.packed_corpus import Int32s, Int64s
from smt_bridge.moses.reordering import HIER, LEFT, MONOTONE, PHRASE, RIGHT, SWAP, USUAL, ReorderingType

UINT = NDArray[np.uint64]
Bools = NDArray[np.bool_]


class Packing(NamedTuple):
    """How a phrase, with its end symbol, is packed into 64-bit columns."""

    bits: int  # of a word
    each: int  # words of a column
    columns: int
    end: int  # word id of the end of a phrase


def make_packing(side: SideVocab, longest: int) -> Packing:
    """Choose the packing for phrases of at most `longest` words."""
    each = 64 // side.bits
    return Packing(bits=side.bits, each=each, columns=-(-(longest + 1) // each), end=side.end)


@njit
def has_link(
    points: Int32s, first: int, last: int, source: int, target: int, source_size: int, target_size: int
) -> bool:
    """Whether `source` and `target` are linked by one of points[first : last]. There are also virtual links
    before the first words (-1, -1) and after the last ones (source_size, target_size)."""
    if source == -1 and target == -1:
        return True
    if source < 0 or target < 0:
        return False
    if source == source_size and target == target_size:
        return True
    for index in range(first, last):  # noqa: SIM110  (numba knows no any())
        if points[index, 0] == source and points[index, 1] == target:
            return True
    return False


@njit
def limits(points: Int32s, first: int, last: int, n: int, m: int) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """First and last source word linked to each target word, (m,) each, and vice versa, (n,) each. For an
    unlinked word the first is beyond the sentence, and the last is -1. The links are points[first : last]."""
    low, high = np.full(m, n), np.full(m, -1)
    back_low, back_high = np.full(n, m), np.full(n, -1)
    for index in range(first, last):
        i, j = points[index, 0], points[index, 1]
        low[j], high[j] = min(low[j], i), max(high[j], i)
        back_low[i], back_high[i] = min(back_low[i], j), max(back_high[i], j)
    return low, high, back_low, back_high


@njit
def is_consistent(
    back_low: Int64s, back_high: Int64s, first: int, last: int, target_first: int, target_last: int
) -> bool:
    """Whether source words `first` to `last`, inclusive, are linked only to target words `target_first` to
    `target_last`. `back_low`, `back_high`: see `limits`."""
    for i in range(first, last + 1):
        if back_high[i] >= 0 and (back_low[i] < target_first or back_high[i] > target_last):
            return False
    return True


@njit
def alignment_square(
    points: Int32s, p0: int, p1: int, first: int, last: int, target_first: int, target_last: int
) -> np.uint64:
    """Links inside a pair, of points[p0 : p1]: bit 8 i + j is set for source word i and target word j of the
    pair, at most 8 words a side. `first` and `last`, `target_first` and `target_last`: first and last word of
    the pair on either side, in its sentence."""
    bits = np.uint64(0)
    for index in range(p0, p1):
        i, j = points[index, 0] - first, points[index, 1] - target_first
        if 0 <= i <= last - first and 0 <= j <= target_last - target_first:
            bits |= np.uint64(1) << np.uint64(8 * i + j)
    return bits


class OrientationRules(NamedTuple):
    """The rules by which pairs are oriented."""

    pairs: bool  # whether other pairs that touch a pair count, not only links
    longest: int  # most words of these other pairs, on either side
    sides: bool  # whether the sides of discontinuous orientations are told apart


UNLIMITED = 1 << 30


def orientation_rules(reordering: ReorderingType, longest: int) -> OrientationRules:
    """The rules of a type of reordering model. `longest`: the maximum phrase length in words."""
    return OrientationRules(
        pairs=reordering.model in (PHRASE, HIER),
        longest=UNLIMITED if reordering.model == HIER else longest,
        sides=reordering.orientations in ("mslr", "leftright"),
    )


class Corners(NamedTuple):
    """Spans that may touch a pair, (m, n) each: `first[j, i]` says whether a span has the last target word j
    and the first source word i, `last[j, i]` whether it has the last source word i. Spans are links with
    word-based orientation, else consistent pairs. As in Moses, those that follow a pair are looked up by
    their last target word, too. Empty if the rules do not need them."""

    first: Bools
    last: Bools


@njit
def find_corners(rules: OrientationRules, points: Int32s, p0: int, p1: int, n: int, m: int) -> Corners:
    """The corners in a sentence pair of `n` and `m` words. Its links are points[p0 : p1]."""
    if not rules.pairs and not rules.sides:
        return Corners(np.zeros((0, 0), np.bool_), np.zeros((0, 0), np.bool_))
    firsts, lasts = np.zeros((m, n), np.bool_), np.zeros((m, n), np.bool_)
    if not rules.pairs:
        for index in range(p0, p1):
            firsts[points[index, 1], points[index, 0]] = lasts[points[index, 1], points[index, 0]] = True
        return Corners(firsts, lasts)
    low, high, back_low, back_high = limits(points, p0, p1, n, m)
    for target_first in range(m):
        first, last = n, -1
        reached_low, reached_high = m, -1  # target words linked to the source words first to last
        for target_last in range(target_first, min(m, target_first + rules.longest)):
            new_first, new_last = min(first, low[target_last]), max(last, high[target_last])
            for word in range(new_first, min(first, new_last + 1)):
                reached_low = min(reached_low, back_low[word])
                reached_high = max(reached_high, back_high[word])
            for word in range(max(first, last) + 1, new_last + 1):
                reached_low = min(reached_low, back_low[word])
                reached_high = max(reached_high, back_high[word])
            first, last = new_first, new_last
            if last < 0 or last - first >= rules.longest:
                continue
            if reached_low < target_first or reached_high > target_last:
                continue
            left = first
            while left >= 0 and last - left < rules.longest and (left == first or back_high[left] < 0):
                firsts[target_last, left] = True
                left -= 1
            right = last
            while right < n and right - first < rules.longest and (right == last or back_high[right] < 0):
                lasts[target_last, right] = True
                right += 1
    return Corners(firsts, lasts)


@njit
def orientation(rules: OrientationRules, corners: Corners, straight: bool, crossed: bool, target: int,
preceding: int, following: int, follows: bool) -> int:  # fmt: skip
    """The orientation of a pair relative to the text before it, or after it if `follows`: MONOTONE, SWAP,
    LEFT, or RIGHT, which also stands for any other one.

    `target`: the target word next to the pair, in this text; `straight`, `crossed`: whether it is linked to
    the source word next to the pair on the same side, and on the other side; `preceding`, `following`: the
    source words before and after the pair.
    """
    inside = 0 <= target < len(corners.last)
    near, far, step = (following, preceding, 1) if follows else (preceding, following, -1)
    ahead, across = (corners.first, corners.last) if follows else (corners.last, corners.first)
    touches = rules.pairs and inside
    size = corners.last.shape[1]
    if (straight and not crossed) or (touches and 0 <= near < size and ahead[target, near]):
        return MONOTONE
    if (crossed and not straight) or (touches and 0 <= far < size and across[target, far]):
        return SWAP
    if not (rules.sides and inside):
        return RIGHT
    end = size - 1 if rules.pairs else size  # as in Moses, which leaves out the last source word
    while 0 <= near < end:
        if ahead[target, near]:
            return RIGHT
        near += step
    while 0 <= far < end:
        if across[target, far]:
            return LEFT
        far -= step
    return RIGHT


@njit
def orientations(
    rules: OrientationRules, corners: Corners, points: Int32s, p0: int, p1: int, first: int, last: int,
    target_first: int, target_last: int, n: int, m: int,
) -> int:  # fmt: skip
    """Encode both orientations of a pair: 4 x (orientation to the preceding text) + (to the following text).
    `n`, `m`: words of the two sentences; other arguments as in `alignment_square`."""
    preceding: int = orientation(
        rules, corners,
        has_link(points, p0, p1, first - 1, target_first - 1, n, m),
        has_link(points, p0, p1, last + 1, target_first - 1, n, m),
        target_first - 1, first - 1, last + 1, False,
    )  # fmt: skip
    following: int = orientation(
        rules, corners,
        has_link(points, p0, p1, last + 1, target_last + 1, n, m),
        has_link(points, p0, p1, first - 1, target_last + 1, n, m),
        target_last + 1, first - 1, last + 1, True,
    )  # fmt: skip
    return 4 * preceding + following


@njit
def pack_phrase(words: Int32s, packing: Packing, key: UINT) -> None:
    """Pack the words of a phrase and its end symbol into `key` (columns,)."""
    key[:] = 0
    for index in range(len(words) + 1):
        word = words[index] if index < len(words) else packing.end
        shift = np.uint64(packing.bits * (packing.each - 1 - index % packing.each))
        key[index // packing.each] |= np.uint64(word) << shift


@njit
def extract(
    source: Int32s, source_cut: Int64s, target: Int32s, target_cut: Int64s, points: Int32s, point_cut: Int64s,
    longest: int, rules: OrientationRules, source_packing: Packing, target_packing: Packing, keys: UINT,
    square: UINT, codes: NDArray[np.uint8],
) -> int:  # fmt: skip
    """Extract all pairs of a block with at most `longest` words on each side. Fills `keys` (N, source columns
    + target columns), `square` (N,) with alignment squares, and `codes` (N,) with orientations as
    `orientations` encodes them; the other arrays are those of a `SentenceBlock`.

    Returns the number of pairs, or -1 if there are more than N.
    """
    count = 0
    for pair in range(len(source_cut) - 1):
        n, m = source_cut[pair + 1] - source_cut[pair], target_cut[pair + 1] - target_cut[pair]
        s0, t0, p0, p1 = source_cut[pair], target_cut[pair], point_cut[pair], point_cut[pair + 1]
        low, high, back_low, back_high = limits(points, p0, p1, n, m)
        corners = find_corners(rules, points, p0, p1, n, m)
        for target_first in range(m):
            first, last = n, -1
            for target_last in range(target_first, min(m, target_first + longest)):
                first, last = min(first, low[target_last]), max(last, high[target_last])
                if last < 0 or last - first >= longest:
                    continue
                if not is_consistent(back_low, back_high, first, last, target_first, target_last):
                    continue
                left = first
                while left >= 0 and last - left < longest and (left == first or back_high[left] < 0):
                    right = last
                    while right < n and right - left < longest and (right == last or back_high[right] < 0):
                        if count >= len(square):
                            return -1
                        width = source_packing.columns
                        pack_phrase(source[s0 + left : s0 + right + 1], source_packing, keys[count, :width])
                        target_words = target[t0 + target_first : t0 + target_last + 1]
                        pack_phrase(target_words, target_packing, keys[count, width:])
                        square[count] = alignment_square(
                            points, p0, p1, left, right, target_first, target_last
                        )
                        codes[count] = orientations(
                            rules, corners, points, p0, p1, left, right, target_first, target_last, n, m
                        )
                        count += 1
                        right += 1
                    left -= 1
    return count


class Extractor:
    """Extracts the instances of phrase pairs, block by block. It remembers the largest number of rows that a
    block needed, so that later blocks are rarely extracted twice."""

    def __init__(self, words: CorpusSurvey, longest: int, reordering: ReorderingType = USUAL) -> None:
        """`longest`: the maximum phrase length in words; `reordering`: the type of the orientations."""
        self.longest, self.rules = longest, orientation_rules(reordering, longest)
        self.source, self.target = make_packing(words.source, longest), make_packing(words.target, longest)
        self.capacity = 1 << 16

    def instances(self, block: SentenceBlock) -> tuple[UINT, UINT, NDArray[np.uint8]]:
        """Keys (N, K), alignment squares (N,) and orientations (N,), in the order of the text."""
        while True:
            keys = np.empty((self.capacity, self.source.columns + self.target.columns), np.uint64)
            square, codes = np.empty(self.capacity, np.uint64), np.empty(self.capacity, np.uint8)
            count = extract(
                block.source, block.source_cut, block.target, block.target_cut, block.points, block.point_cut,
                self.longest, self.rules, self.source, self.target, keys, square, codes,
            )  # fmt: skip
            if count >= 0:
                return keys[:count], square[:count], codes[:count]
            self.capacity *= 2


def unpack(keys: UINT, packing: Packing, longest: int) -> Int32s:
    """Unpack keys (N, columns) to (N, longest + 1): word ids of each phrase, its end symbol, then 0."""
    mask = np.uint64((1 << packing.bits) - 1)
    shifts = [np.uint64(packing.bits * (packing.each - 1 - index)) for index in range(packing.each)]
    columns = [
        (keys[:, index // packing.each] >> shifts[index % packing.each]) & mask
        for index in range(longest + 1)
    ]
    return np.stack(columns, 1).astype(np.int32)


def word_pairs(block: SentenceBlock) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids of the two words of every link of a block, and of every unlinked word with NULL (0): (L,), (L,)"""
    sources = np.repeat(block.source_cut[:-1], np.diff(block.point_cut)) + block.points[:, 0]
    targets = np.repeat(block.target_cut[:-1], np.diff(block.point_cut)) + block.points[:, 1]
    unlinked_source, unlinked_target = np.ones(len(block.source), bool), np.ones(len(block.target), bool)
    unlinked_source[sources], unlinked_target[targets] = False, False
    left = [block.source[sources], block.source[unlinked_source], np.zeros(unlinked_target.sum(), np.int32)]
    right = [block.target[targets], np.zeros(unlinked_source.sum(), np.int32), block.target[unlinked_target]]
    return np.concatenate(left).astype(np.int64), np.concatenate(right).astype(np.int64)
