"""From an aligned corpus to a phrase table and its reordering table, in memory that does not grow with the
corpus.

    read once: words -> extract block by block into buckets -> per bucket: distinct pairs, counts of sources
    -> counts of targets by a second set of buckets -> per bucket: scores, lines

The words of both sides and the counts of linked word pairs stay in memory, whatever the limit.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmt import files, settings
from smt_bridge.extraction import corpus, counts, scores
from smt_bridge.extraction.buckets import Buckets, quantiles
from smt_bridge.extraction.config import BASE, ExtractConfig
from smt_bridge.extraction.counts import PhrasePairs, WordTable
from smt_bridge.extraction.instances import Extractor, word_pairs
from smt_bridge.extraction.lines import TableLines, write_lexical, write_tables
from smt_bridge.extraction.work_folder import work_folder

log = logging.getLogger(__name__)

ROW_BYTES = 8  # of a number in a bucket
COPIES = 6  # of a bucket while it is sorted
INSTANCES = 3.0  # phrase pairs per word of the corpus: a guess, which only determines the number of files


@dataclass
class Inputs:
    """The texts, and their word alignment."""

    source: str
    target: str
    alignment: str


@dataclass
class Outputs:
    """Where the tables are written; None: not at all."""

    table: str
    reordering: str | None = None
    lexical: str | None = None  # stem of .e2f and .f2e, as Moses calls them


def build(
    inputs: Inputs,
    outputs: Outputs,
    config: ExtractConfig,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Write the tables; returns the number of pairs. DataError or ConfigError before anything is written.
    `progress` is called with the words read so far and all words."""
    settings.check(config)
    words = corpus.survey(inputs.source, inputs.target, inputs.alignment)
    log.info(
        "%s sentence pairs, %s and %s different words",
        f"{words.pairs:,}",
        f"{len(words.source) - 2:,}",
        f"{len(words.target) - 2:,}",
    )
    with work_folder(outputs.table) as folder:
        work = Work(folder, words, config)
        work.extract(inputs, progress)
        work.count()
        return work.write(outputs)


def rows_in_memory(config: ExtractConfig, width: int) -> int:
    """How many instances may be sorted at a time. `width`: numbers in the key of one."""
    memory = (round(1000 * config.memory) - BASE) << 20
    return max(1 << 16, memory // (COPIES * ROW_BYTES * (width + 8)))


class Work:
    """The steps of one extraction, and the files between them."""

    def __init__(self, folder: Path, words: corpus.Survey, config: ExtractConfig) -> None:
        self.folder, self.words, self.config = folder, words, config
        self.extractor = Extractor(words, config.max_length)
        self.source_columns = self.extractor.source.columns
        self.width = self.source_columns + self.extractor.target.columns
        self.lexicon = WordTable(len(words.target))
        self.totals = scores.Totals()
        self.parts: list[int] = []  # pairs of each part
        self.most = rows_in_memory(config, self.width)

    def extract(self, inputs: Inputs, progress: Callable[[int, int], None]) -> None:
        """Spread all instances, condensed block by block, over files by their source phrase; count linked
        words."""
        files_wanted = int(self.words.tokens * INSTANCES / self.most) + 1
        self.buckets: Buckets | None = None
        done = 0
        lines = files.parallel(inputs.source, inputs.target, inputs.alignment)
        for block in corpus.blocks(lines, self.words, self.config.block):
            keys, square, ways = self.extractor.instances(block)
            rows = counts.condensed(keys, square, ways)
            if self.buckets is None:
                splitters = (
                    quantiles(rows[:, 0], files_wanted) if files_wanted > 1 else np.zeros(0, np.uint64)
                )
                self.buckets = Buckets(self.folder / "pairs", self.width + 8, splitters)
            self.buckets.add(rows)
            self.lexicon.add(*word_pairs(block))
            done += len(block.source) + len(block.target)
            progress(done, self.words.tokens)
        self.lexicon.finish()

    def count(self) -> None:
        """Turn each file of instances into a part of distinct pairs, and count targets over all parts."""
        assert self.buckets
        target = self.width - self.source_columns
        by_target = Buckets(self.folder / "targets", target + 3, np.zeros(0, np.uint64))
        wanted = int(self.buckets.rows.sum() * (target + 3) / (self.width + 8) / self.most) + 1
        for rows in self.buckets.walk(self.most, self.source_columns):
            pairs = counts.pairs_of(rows)
            part = len(self.parts)
            if part == 0 and wanted > 1:
                by_target = Buckets(
                    self.folder / "targets", target + 3, quantiles(pairs.keys[:, self.source_columns], wanted)
                )
            numbers = np.empty((len(pairs.count), target + 3), np.uint64)
            numbers[:, :target] = pairs.keys[:, self.source_columns :]
            numbers[:, target], numbers[:, target + 1], numbers[:, target + 2] = (
                pairs.count,
                part,
                np.arange(len(pairs.count)),
            )
            by_target.add(numbers)
            self.totals.add(pairs.count)
            self.parts.append(len(pairs.count))
            np.savez(
                self.folder / f"part{part}.npz",
                keys=pairs.keys,
                count=pairs.count,
                direct=pairs.direct,
                inverse=pairs.inverse,
                ways=pairs.ways,
            )
        back = Buckets(self.folder / "back", 4, np.arange(1, max(1, len(self.parts)), dtype=np.uint64))
        for rows in by_target.walk(self.most, target):
            rows = counts.sorted_rows(rows, target)
            starts, sizes = counts.groups(rows, target)
            total = np.repeat(np.add.reduceat(rows[:, target], starts), sizes)
            back.add(
                np.stack(
                    [
                        rows[:, target + 1],
                        rows[:, target + 2],
                        total,
                        np.repeat(sizes, sizes).astype(np.uint64),
                    ],
                    1,
                )
            )
        self.back = back

    def lines(self) -> Iterator[tuple[list[str], list[str]]]:
        """The lines of the phrase table and of the reordering table, a part at a time."""
        lines = TableLines(self.words, self.config, self.lexicon, self.totals)
        for part, size in enumerate(self.parts):
            with np.load(self.folder / f"part{part}.npz", allow_pickle=False) as held:
                pairs = PhrasePairs(**held)
            answer = self.back.read(part)
            numbers = answer[np.argsort(answer[:, 1])].astype(np.int64)
            assert len(numbers) == size
            yield lines.of(pairs, numbers[:, 2], numbers[:, 3])

    def write(self, outputs: Outputs) -> int:
        """Write all tables, whole or not at all; returns the number of pairs."""
        write_tables(outputs.table, outputs.reordering, self.lines())
        if outputs.lexical:
            write_lexical(outputs.lexical, self.words, self.lexicon)
        return sum(self.parts)
