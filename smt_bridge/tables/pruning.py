"""Prune a phrase table: rare pairs, pairs that occur together by chance (Johnson et al. 2007), and pairs that
shorter ones replace (Zens et al. 2012). In this order: each criterion sees the pairs that are left."""

import logging
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress, count, islice

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import njit
from nmt.errors import ConfigError, DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from smt_bridge.extraction.config import PruneConfig, significance_threshold
from smt_bridge.tables import filter as filter_table
from smt_bridge.tables.cooccurrence import Cooccurrences, Floats, Ints, Numbers, significances
from smt_bridge.tables.filter import FilterPaths, Occurring, RowObserver, split

Bools = NDArray[np.bool_]

log = logging.getLogger(__name__)


class Pruner:
    """Decides which rows of a table stay, block by block. It counts the rows `read`, those that are too
    `rare`, those that occur together by `chance`, those that are `replaced` by shorter ones, and those that
    the texts have `together`."""

    def __init__(self, table: str, config: PruneConfig, texts: tuple[str, str] | None) -> None:
        """`table`: its name, for messages; `texts`: the parallel text that it was made from, which
        prune_significance needs. ConfigError if it is missing, or for a bad threshold; DataError for texts
        that are not parallel, or empty."""
        self.table, self.config, self.texts = table, config, texts
        self.read = self.rare = self.chance = self.replaced = self.together = 0
        self.counts: Cooccurrences | None = None
        if config.prune_significance:
            if texts is None:
                raise ConfigError(
                    "prune_significance needs the text that the table was made from; give both sides of it"
                )
            self.counts = Cooccurrences(*texts)
            self.threshold = significance_threshold(config.prune_significance, self.counts.pairs)

    def keep(self, pairs: Sequence[PhrasePair]) -> Bools:
        """Decide which rows of a block stay, by count and significance: (R,). Updates the numbers for the
        report. DataError for a table without counts, or texts that do not belong to it."""
        keep = np.ones(len(pairs), np.bool_)
        self.read += len(pairs)
        if self.config.prune_count:
            keep = np.array([self.joint_count(pair) >= self.config.prune_count for pair in pairs])
            self.rare += int(len(pairs) - keep.sum())
        if self.counts is not None and keep.any():
            counts = self.counts.count(list(compress(pairs, keep)))
            self.check_texts(counts)
            significant = significances(counts, self.counts.pairs) >= self.threshold
            self.chance += int(len(significant) - significant.sum())
            keep[keep] = significant
        return keep

    def check_texts(self, counts: Ints) -> None:
        """DataError if no pair seen so far occurs in the texts. `counts` (R, 3): as from `Cooccurrences`."""
        self.together += int((counts[:, 2] > 0).sum())
        if not self.together and self.texts:
            raise DataError(
                f"{self.texts[0]}, {self.texts[1]}: no pair of {self.table} occurs in these texts; give the "
                "text that the table was made from, tokenized and escaped likewise"
            )

    def joint_count(self, pair: PhrasePair) -> int:
        """How often a pair was extracted. DataError for a table without counts."""
        counts = phrase_table.counts(pair, self.table)
        if len(counts) < 3:
            raise DataError(
                f"{self.table}: '{pair.source.decode()} ||| {pair.target.decode()}' has no counts, which "
                "pruning by counts or entropy needs: the fifth field, of target, source and both"
            )
        return counts[2]

    def decide(self, pairs: Iterator[PhrasePair]) -> Bools:
        """Decide which rows of a whole table stay, by all criteria: (rows,). Errors as in `keep`."""
        store, flags = TablePairs(), [np.zeros(0, np.bool_)]
        while block := list(islice(pairs, filter_table.BLOCK)):
            keep = self.keep(block)
            flags.append(keep)
            remaining = list(compress(block, keep))
            store.add(remaining, map(self.joint_count, remaining))
        decided = np.concatenate(flags)
        stays = store.keep(self.config.prune_entropy)
        self.replaced = int(len(stays) - stays.sum())
        decided[decided] = stays
        return decided

    def report(self) -> None:
        """Log how many pairs each criterion has dropped."""
        remaining = self.read - self.rare
        if self.config.prune_count:
            log.info(
                "%s of %s pairs extracted fewer than %d times",
                f"{self.rare:,}", f"{self.read:,}", self.config.prune_count,
            )  # fmt: skip
        if self.counts is not None:
            log.info(
                "%s of %s pairs have a significance below %.3f (alpha, of pairs that occur once, is %.3f)",
                f"{self.chance:,}", f"{remaining:,}", self.threshold, np.log(self.counts.pairs),
            )  # fmt: skip
            remaining -= self.chance
        if self.config.prune_entropy:
            log.info("%s of %s pairs are replaced by shorter ones", f"{self.replaced:,}", f"{remaining:,}")


def prune_tables(
    paths: FilterPaths,
    wanted: Occurring | None,
    config: PruneConfig,
    texts: tuple[str, str] | None,
    observe: RowObserver = lambda rows: rows,
) -> int:
    """Write the rows of a phrase table that pruning keeps, and the same rows of its reordering table; returns
    their number. `wanted`, `observe`: see `wanted_rows`; `texts`: the parallel text that the table was made
    from. With prune_entropy the table is read twice, and all its rows are decided, so that a pair stays for
    every text or for none.

    ConfigError as from `Pruner`. DataError as from `filter_tables`, for a table without counts where they are
    needed, and if no pair of the first block that significance is computed for occurs in the texts.
    """
    pruner = Pruner(str(paths.table), config, texts)
    if not config.prune_entropy:
        rows = filter_table.filter_tables(paths, wanted, observe, pruner.keep)
    else:
        checked = paths.table in paths.checked
        rows_read = filter_table.wanted_rows(paths.table, None, paths.unsorted, observe, checked)
        flags = iter(pruner.decide(rows_read))
        paths = replace(paths, checked=(paths.table, *paths.checked))

        def keep(pairs: Sequence[PhrasePair]) -> list[bool]:
            decided = zip(pairs, islice(flags, len(pairs)), strict=True)
            return [bool(stays) and (wanted is None or pair.source in wanted) for pair, stays in decided]

        rows = filter_table.filter_tables(paths, None, keep=keep)
    pruner.report()
    return rows


# ---- relative entropy --------------------------------------------------------------------------------------
# Pairs that the table translates almost as well by shorter ones (Zens et al. 2012).
#
# A pair goes if p(s, t) (ln p(t | s) - ln p'(t | s)) is below a threshold. p' is the probability of the best
# segmentation of the pair into two or more pairs of the table, in the same order on both sides; a pair
# without any segmentation stays. Pairs are decided from short sources to long ones, so that a segmentation
# consists of pairs that stay. All pairs are in memory.


MIX = np.int64(-7046029254386353131)  # 2^64 / golden ratio
SHIFT, LOWER_HALF = np.int64(32), np.int64(0xFFFFFFFF)
NO_ROW = -1


class TablePairs:
    """The pairs of a table: their words as numbers, ln p(t | s), and how often they were extracted."""

    def __init__(self) -> None:
        self.numbers = defaultdict[bytes, int](count(1).__next__)  # a new word gets the next number
        self.words, self.bounds = (array("i"), array("i")), (array("q", [0]), array("q", [0]))
        self.log_p, self.joint = array("d"), array("d")

    def add(self, pairs: Iterable[PhrasePair], counts: Iterable[int]) -> None:
        """Add pairs and how often they were extracted. DataError for a pair with fewer than three scores."""
        number = self.numbers.__getitem__
        self.joint.extend(counts)
        source, source_words = b"", list[int]()  # of the row before: tables are sorted by source
        sources, targets = self.words
        source_bounds, target_bounds = self.bounds
        for pair in pairs:
            if pair.source != source:
                source = pair.source
                source_words = list(map(number, split(source)))
            sources.extend(source_words)
            targets.extend(map(number, split(pair.target)))
            source_bounds.append(len(sources))
            target_bounds.append(len(targets))
            self.log_p.append(phrase_table.direct(pair))

    def keep(self, threshold: float) -> Bools:
        """Decide which pairs stay: (rows,), in the order in which they were added. `threshold`: relative
        entropy, in natural logarithms, below which a pair goes."""
        source, target = map(np.asarray, self.words)  # no copies
        source_bounds, target_bounds = map(np.asarray, self.bounds)
        joint = np.asarray(self.joint)
        keep = np.ones(len(joint), np.bool_)
        order = np.argsort(np.diff(source_bounds), kind="stable")
        with np.errstate(over="ignore"):  # keys wrap around
            prune_composed(
                source, target, source_bounds, target_bounds, order, np.asarray(self.log_p),
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
