"""Prune phrase pairs that a table translates almost as well by shorter ones: pruning by relative entropy
(Zens et al. 2012).

A pair goes if p(s, t) (ln p(t | s) - ln p'(t | s)) is below a threshold. p' is the probability of the best
segmentation of the pair into two or more pairs of the table, in the same order on both sides; a pair without
any segmentation stays. Pairs are decided from short sources to long ones, so that a segmentation consists of
pairs that stay. All pairs are in memory.
"""

from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import njit
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from smt_bridge.tables.cooccurrence import Floats, Ints, Numbers
from smt_bridge.tables.filter import split

Bools = NDArray[np.bool_]

MIX = np.int64(-7046029254386353131)  # 2^64 / golden ratio
SHIFT, LOWER_HALF = np.int64(32), np.int64(0xFFFFFFFF)
NO_ROW = -1


class TablePairs:
    """The pairs of a table: their words as numbers, ln p(t | s), and how often they were extracted."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self.words, self.bounds = (array("i"), array("i")), (array("q", [0]), array("q", [0]))
        self.log_p, self.joint = array("d"), array("q")

    def add(self, pairs: Iterable[PhrasePair], counts: Iterable[int]) -> None:
        """Add pairs and how often they were extracted. DataError for a pair with fewer than three scores."""
        numbers = self.numbers
        self.joint.extend(counts)
        for pair in pairs:
            for phrase, words, bounds in zip(
                (pair.source, pair.target), self.words, self.bounds, strict=True
            ):
                words.extend([numbers.setdefault(word, len(numbers) + 1) for word in split(phrase)])
                bounds.append(len(words))
            self.log_p.append(phrase_table.direct(pair))

    def keep(self, threshold: float) -> Bools:
        """Decide which pairs stay: (rows,), in the order in which they were added. `threshold`: relative
        entropy, in natural logarithms, below which a pair goes."""
        source, target = (np.array(words, np.int32) for words in self.words)
        source_bounds, target_bounds = (np.array(bounds, np.int64) for bounds in self.bounds)
        joint = np.array(self.joint, np.float64)
        keep = np.ones(len(joint), np.bool_)
        order = np.argsort(np.diff(source_bounds), kind="stable")
        with np.errstate(over="ignore"):  # keys wrap around
            prune_composed(
                source, target, source_bounds, target_bounds, order, np.array(self.log_p),
                joint / max(1.0, joint.sum()), threshold, keep,
            )  # fmt: skip
        return keep


@njit
def extend(key: np.int64, word: np.int64) -> np.int64:
    """The key of a phrase and one more word."""
    key = (key ^ word) * MIX
    return key ^ ((key >> SHIFT) & LOWER_HALF)


@njit
def span_keys(words: Numbers, start: int, end: int) -> Ints:
    """Keys of all spans of the L words words[start : end]: (L, L + 1), of words i to j - 1 at [i, j]"""
    length = end - start
    keys = np.zeros((length, length + 1), np.int64)
    for i in range(length):
        for j in range(i, length):
            keys[i, j + 1] = extend(keys[i, j], np.int64(words[start + j]))
    return keys


@njit
def find_row(keys: Ints, slots: Ints, key: np.int64) -> int:
    """The row of a pair by its key in `keys` (rows,), or NO_ROW. `slots`: an open-addressing hash table."""
    slot = key & (len(slots) - 1)
    while slots[slot] != NO_ROW and keys[slots[slot]] != key:
        slot = (slot + 1) & (len(slots) - 1)
    return int(slots[slot])


@njit
def fill_slots(keys: Ints, slots: Ints) -> None:
    """Insert all rows by their `keys` (rows,) into `slots`, an empty hash table (all NO_ROW) whose size is a
    power of two above their number; of rows with the same key, the first."""
    for row in range(len(keys)):
        slot = keys[row] & (len(slots) - 1)
        while slots[slot] != NO_ROW and keys[slots[slot]] != keys[row]:
            slot = (slot + 1) & (len(slots) - 1)
        if slots[slot] == NO_ROW:
            slots[slot] = row


@njit
def best_composition(
    source: Ints, target: Ints, keys: Ints, slots: Ints, log_p: Floats, keep: Bools
) -> float:
    """ln p' of the best monotone segmentation of a pair into at least two pairs that stay; -inf without one.
    `source`, `target`: keys of its spans, see `span_keys`; `keys`, `log_p`, `keep` (rows,): of all pairs,
    with ln p(t | s)."""
    rows, columns = len(source), len(target)
    best = np.full((rows + 1, columns + 1), -np.inf)
    best[0, 0] = 0.0
    for i in range(rows):
        for j in range(columns):
            if best[i, j] == -np.inf:
                continue
            for k in range(i + 1, rows + 1):
                for m in range(j + 1, columns + 1):
                    # It leads nowhere if it ends on one side only; from start to end it is the pair itself.
                    if (k == rows) != (m == columns) or (i == 0 and k == rows):
                        continue
                    part = find_row(keys, slots, extend(source[i, k], target[j, m] * MIX))
                    if part != NO_ROW and keep[part]:
                        best[k, m] = max(best[k, m], best[i, j] + log_p[part])
    return float(best[rows, columns])


@njit
def prune_composed(
    source: Numbers,
    target: Numbers,
    source_bounds: Ints,
    target_bounds: Ints,
    order: Ints,
    log_p: Floats,
    weights: Floats,
    threshold: float,
    keep: Bools,
) -> None:
    """Set `keep` (rows,) to False for pairs that go. `order`: rows from short sources to long ones; `log_p`:
    ln p(t | s); `weights`: p(s, t); `threshold`: see `TablePairs.keep`."""
    rows = len(keep)
    keys = np.zeros(rows, np.int64)
    for row in range(rows):
        whole = span_keys(source, source_bounds[row], source_bounds[row + 1])[0, -1]
        target_key = span_keys(target, target_bounds[row], target_bounds[row + 1])[0, -1]
        keys[row] = extend(whole, target_key * MIX)
    size = 2
    while size < rows + rows // 2:
        size *= 2
    slots = np.full(size, NO_ROW, np.int64)
    fill_slots(keys, slots)
    for row in order:
        sources = span_keys(source, source_bounds[row], source_bounds[row + 1])
        targets = span_keys(target, target_bounds[row], target_bounds[row + 1])
        composed = best_composition(sources, targets, keys, slots, log_p, keep)
        if composed > -np.inf and weights[row] * (log_p[row] - composed) < threshold:
            keep[row] = False
