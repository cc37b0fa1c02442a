"""Prune a phrase table: rare pairs, pairs that occur together by chance (Johnson et al. 2007), and pairs that
shorter ones replace (Zens et al. 2012). In this order: each criterion sees the pairs that are left."""

import logging
from collections.abc import Iterator, Sequence
from itertools import compress, islice

import numpy as np

from nmt.errors import ConfigError, DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from smt_bridge.extraction.config import PruneConfig, significance_threshold
from smt_bridge.tables import filter as filter_table
from smt_bridge.tables.cooccurrence import Cooccurrences, Ints, significances
from smt_bridge.tables.entropy_pruning import Bools, TablePairs
from smt_bridge.tables.filter import FilterPaths, Occurring, RowObserver

log = logging.getLogger(__name__)


class Pruner:
    """Decides which rows of a table stay, block by block. It counts the rows `read`, those that are too
    `rare`, those that occur together by `chance`, and those that the texts have `together`."""

    def __init__(self, table: str, config: PruneConfig, texts: tuple[str, str] | None) -> None:
        """`table`: its name, for messages; `texts`: the parallel text that it was made from, which
        prune_significance needs. ConfigError if it is missing, or for a bad threshold; DataError for texts
        that are not parallel, or empty."""
        self.table, self.config, self.texts = table, config, texts
        self.read = self.rare = self.chance = self.together = 0
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
        decided[decided] = store.keep(self.config.prune_entropy)
        return decided

    def report(self, rows: int) -> None:
        """Log what was pruned. `rows`: number of rows that are left."""
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
            log.info("%s of %s pairs are replaced by shorter ones", f"{remaining - rows:,}", f"{remaining:,}")


def prune_tables(
    paths: FilterPaths,
    wanted: Occurring | None,
    config: PruneConfig,
    texts: tuple[str, str] | None,
    observe: RowObserver = lambda rows: rows,
) -> int:
    """Write the rows of a phrase table that pruning keeps, and the same rows of its reordering table; returns
    their number. `wanted`, `observe`: see `wanted_rows`; `texts`: the parallel text that the table was made
    from. With prune_entropy the table is read twice.

    ConfigError as from `Pruner`. DataError as from `filter_tables`, for a table without counts where they are
    needed, and if no pair of the first block that significance is computed for occurs in the texts.
    """
    pruner = Pruner(str(paths.table), config, texts)
    if not config.prune_entropy:
        rows = filter_table.filter_tables(paths, wanted, observe, pruner.keep)
    else:
        decided = pruner.decide(filter_table.wanted_rows(paths.table, wanted, paths.unsorted, observe))
        flags = iter(decided)
        rows = filter_table.filter_tables(paths, wanted, keep=lambda pairs: islice(flags, len(pairs)))
    pruner.report(rows)
    return rows
