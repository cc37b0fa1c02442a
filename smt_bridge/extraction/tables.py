"""From an aligned corpus to a phrase table and its reordering table, in memory that does not grow with the
corpus.

    read once: words -> extract block by block into buckets -> per bucket: distinct pairs, counts of sources
    -> counts of targets by a second set of buckets -> per bucket: scores, lines

The words of both sides and the counts of linked word pairs stay in memory, whatever the limit.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.config import settings
from nmt.io import files
from smt_bridge.extraction import corpus, scores
from smt_bridge.extraction.buckets import Buckets, quantiles, work_folder
from smt_bridge.extraction.config import BASE, ExtractConfig
from smt_bridge.extraction.corpus import CorpusSurvey
from smt_bridge.extraction.instances import Extractor, make_packing, unpack, word_pairs
from smt_bridge.extraction.scores import Int64s, PhrasePairs, WordTable

# ---- lines of the tables -----------------------------------------------------------------------------------
# The lines of the phrase table and the reordering table, and of the word translation probabilities.


class TableLines:
    """Formats pairs as table lines, with the vocabularies and totals of the whole corpus."""

    def __init__(
        self, words: CorpusSurvey, config: ExtractConfig, lexicon: WordTable, totals: scores.CorpusTotals
    ) -> None:
        """`lexicon` must be complete: call its `finish` first."""
        self.words, self.config, self.lexicon, self.totals = words, config, lexicon, totals
        self.source = make_packing(words.source, config.max_length)
        self.target = make_packing(words.target, config.max_length)

    def of(
        self, pairs: PhrasePairs, of_target: Int64s, target_partners: Int64s
    ) -> tuple[list[str], list[str]]:
        """Format phrase pairs as lines of the phrase table and of the reordering table. `of_target` (P,): how
        often the target of each pair was extracted; `target_partners` (P,): with how many sources."""
        width = self.source.columns
        starts, sizes = scores.row_groups(pairs.keys, width)
        of_source = np.repeat(np.add.reduceat(pairs.count, starts), sizes)
        source_partners = np.repeat(sizes, sizes)
        numbers = scores.PairCounts(
            joint=pairs.count,
            target=of_target,
            source=of_source,
            target_partners=target_partners,
            source_partners=source_partners,
        )
        inverse, direct = scores.phi(numbers, self.totals, self.config.smoothing)
        longest, S, T = self.config.max_length, self.words.source, self.words.target
        source = unpack(pairs.keys[:, :width], self.source, longest)
        target = unpack(pairs.keys[:, width:], self.target, longest)
        word_source, word_target = np.where(source == S.end, 0, source), np.where(target == T.end, 0, target)
        lexicon = self.lexicon
        lex_direct = scores.lexical_weights(
            lexicon.keys, lexicon.direct, lexicon.targets, word_source, word_target, pairs.direct, True
        )
        lex_inverse = scores.lexical_weights(
            lexicon.keys, lexicon.inverse, lexicon.targets, word_source, word_target, pairs.inverse, False
        )
        sources = [
            text
            for text, size in zip(phrase_texts(word_source[starts], S.words), sizes.tolist(), strict=True)
            for _ in range(size)
        ]
        heads = [
            f"{a} ||| {b} ||| " for a, b in zip(sources, phrase_texts(word_target, T.words), strict=True)
        ]
        columns = [
            array.tolist()
            for array in (inverse, lex_inverse, direct, lex_direct, of_target, of_source, pairs.count)
        ]
        shapes = [alignment_text(square) for square in pairs.direct.tolist()]
        table = [
            f"{head}{a:.6g} {b:.6g} {c:.6g} {d:.6g} ||| {shape} ||| {t} {s} {j} ||| |||"
            for head, shape, a, b, c, d, t, s, j in zip(heads, shapes, *columns, strict=True)
        ]
        text_by_way: dict[tuple[int, ...], str] = {}
        probabilities = scores.orientation_scores(pairs.ways)
        reordering = []
        for row, (head, way) in enumerate(zip(heads, map(tuple, pairs.ways.tolist()), strict=True)):
            text = text_by_way.get(way)
            if text is None:
                text = text_by_way[way] = " ".join(f"{value:.6g}" for value in probabilities[row])
            reordering.append(head + text)
        return table, reordering


def write_tables(table: str, reordering: str | None, lines: Iterable[tuple[list[str], list[str]]]) -> None:
    """Write the lines of both tables, whole or not at all."""
    with ExitStack() as stack:
        first = stack.enter_context(files.Writing(table))
        second = stack.enter_context(files.Writing(reordering)) if reordering else None
        for rows, others in lines:
            for at in range(0, len(rows), 4096):
                first.write("\n".join(rows[at : at + 4096]) + "\n")
                if second:
                    second.write("\n".join(others[at : at + 4096]) + "\n")


def write_lexical(stem: str, words: CorpusSurvey, lexicon: WordTable) -> None:
    """Write word translation probabilities as Moses does: `target source p(target | source)`, and the
    inverse."""
    source, target = lexicon.keys // lexicon.targets, lexicon.keys % lexicon.targets
    S, T = ([b"NULL", *side.words[1:]] for side in (words.source, words.target))
    texts = [(S[s].decode(), T[t].decode()) for s, t in zip(source.tolist(), target.tolist(), strict=True)]
    files.write_text(
        f"{stem}.f2e",
        (f"{t} {s} {p:.7f}" for (s, t), p in zip(texts, lexicon.direct.tolist(), strict=True)),
    )
    files.write_text(
        f"{stem}.e2f",
        (f"{s} {t} {p:.7f}" for (s, t), p in zip(texts, lexicon.inverse.tolist(), strict=True)),
    )


def phrase_texts(ids: NDArray[np.int32], words: list[bytes]) -> list[str]:
    """Phrases as text, from rows of word numbers that are 0 from the end on."""
    texts = [word.decode() for word in words]
    lengths = (ids > 0).sum(1).tolist()
    return [
        " ".join([texts[word] for word in row[:length]])
        for row, length in zip(ids.tolist(), lengths, strict=True)
    ]


@lru_cache(1 << 20)
def alignment_text(square: int) -> str:
    """The points 0-0 1-2 of an alignment square, by target word, as Moses writes them."""
    return " ".join(f"{i}-{j}" for j in range(8) for i in range(8) if square >> (8 * i + j) & 1)


# ---- from corpus to tables ---------------------------------------------------------------------------------


log = logging.getLogger(__name__)

ROW_BYTES = 8  # of a number in a bucket
COPIES = 6  # of a bucket while it is sorted
INSTANCES = 3.0  # phrase pairs per word of the corpus: a guess, which only determines the number of files


@dataclass
class TableInputs:
    """The texts, and their word alignment."""

    source: str
    target: str
    alignment: str


@dataclass
class TableOutputs:
    """Where the tables are written; None: not at all."""

    table: str
    reordering: str | None = None
    lexical: str | None = None  # stem of .e2f and .f2e, as Moses calls them


def build(
    inputs: TableInputs,
    outputs: TableOutputs,
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
        work = Extraction(folder, words, config)
        work.extract(inputs, progress)
        work.count()
        return work.write(outputs)


def rows_in_memory(config: ExtractConfig, width: int) -> int:
    """How many instances may be sorted at a time. `width`: numbers in the key of one."""
    memory = (round(1000 * config.memory) - BASE) << 20
    return max(1 << 16, memory // (COPIES * ROW_BYTES * (width + 8)))


class Extraction:
    """The steps of one extraction, and the files between them."""

    def __init__(self, folder: Path, words: corpus.CorpusSurvey, config: ExtractConfig) -> None:
        self.folder, self.words, self.config = folder, words, config
        self.extractor = Extractor(words, config.max_length)
        self.source_columns = self.extractor.source.columns
        self.width = self.source_columns + self.extractor.target.columns
        self.lexicon = WordTable(len(words.target))
        self.totals = scores.CorpusTotals()
        self.parts: list[int] = []  # pairs of each part
        self.most = rows_in_memory(config, self.width)

    def extract(self, inputs: TableInputs, progress: Callable[[int, int], None]) -> None:
        """Spread all instances, condensed block by block, over files by their source phrase; count linked
        words."""
        files_wanted = int(self.words.tokens * INSTANCES / self.most) + 1
        self.buckets: Buckets | None = None
        done = 0
        lines = files.parallel(inputs.source, inputs.target, inputs.alignment)
        for block in corpus.blocks(lines, self.words, self.config.block):
            keys, square, ways = self.extractor.instances(block)
            rows = scores.condense(keys, square, ways)
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
            pairs = scores.distinct_pairs(rows)
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
            rows = scores.sorted_rows(rows, target)
            starts, sizes = scores.row_groups(rows, target)
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
            with np.load(self.folder / f"part{part}.npz", allow_pickle=False) as archive:
                pairs = PhrasePairs(**archive)
            answer = self.back.read(part)
            numbers = answer[np.argsort(answer[:, 1])].astype(np.int64)
            assert len(numbers) == size
            yield lines.of(pairs, numbers[:, 2], numbers[:, 3])

    def write(self, outputs: TableOutputs) -> int:
        """Write all tables, whole or not at all; returns the number of pairs."""
        write_tables(outputs.table, outputs.reordering, self.lines())
        if outputs.lexical:
            write_lexical(outputs.lexical, self.words, self.lexicon)
        return sum(self.parts)
