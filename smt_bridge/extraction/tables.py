"""From an aligned corpus to a phrase table and its reordering table: by one process in memory that does not
grow with the corpus, or by several workers, which gives the same bytes.

    read once: words -> extract block by block into buckets -> per bucket: distinct pairs, counts of sources
    -> counts of targets by a second set of buckets -> per bucket: scores, lines

The words of both sides and the counts of linked word pairs stay in memory, whatever the limit.
"""

import heapq
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from nmt.config import settings
from nmt.io import files, manifest
from nmt.work import arrays, executors, stages, store
from nmt.work.executors import Executor, ExecutorConfig, line_chunks
from nmt.work.stages import Part, SharedFolder, Task, task_file
from smt_bridge.extraction import corpus, scores
from smt_bridge.extraction.buckets import Buckets, quantiles, work_folder
from smt_bridge.extraction.config import BASE, ExtractConfig
from smt_bridge.extraction.corpus import CorpusSurvey
from smt_bridge.extraction.instances import Extractor, make_packing, word_pairs
from smt_bridge.extraction.scores import (
    UINT,
    CorpusTotals,
    PhrasePairs,
    TableLines,
    WordTable,
    write_lexical,
    write_tables,
)

log = logging.getLogger(__name__)

ROW_BYTES = 8  # of a number in a bucket
COPIES = 6  # of a bucket while it is sorted
INSTANCES = 3.0  # phrase pairs per word of the corpus: a guess, which only determines the number of files

Report = Callable[[int, int], None]  # called with the words read so far and all words


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
    progress: Report = lambda done, total: None,
    executor: ExecutorConfig | None = None,
    shared: SharedFolder | None = None,
) -> int:
    """Write the tables; returns the number of pairs. `shared`: where the workers of `executor` compute them,
    if not this process alone.

    DataError or ConfigError before anything is written; errors of the executor, and `stages.lock_shared`.
    """
    settings.check(config)
    if shared:
        return build_shared(inputs, outputs, config, progress, executor or ExecutorConfig(), shared)
    words = corpus.survey(inputs.source, inputs.target, inputs.alignment)
    log_survey(words)
    with work_folder(outputs.table) as folder:
        work = Extraction(folder, words, config)
        work.extract(inputs, progress)
        work.count()
        write_outputs(outputs, words, work.lexicon, work.lines())
        return work.totals.pairs


def build_shared(
    inputs: TableInputs,
    outputs: TableOutputs,
    config: ExtractConfig,
    progress: Report,
    executor: ExecutorConfig,
    shared: SharedFolder,
) -> int:
    """Write the tables with the workers of an executor; returns the number of pairs."""
    folder = shared.folder
    made_from: dict[str, object] = {
        name: manifest.digest(path) for name, path in asdict(inputs).items()
    } | asdict(config)
    del made_from["memory"]  # affects no result: the number of buckets is in the plan
    made_from |= executor.recorded()
    names = inputs.source, inputs.target, inputs.alignment
    with stages.lock_shared(shared, made_from):
        worker = ExtractionWorker(folder, names, config)
        with executors.make(worker, partial(stages.begin_worker, worker), executor) as running:
            return SharedExtraction(folder, names, config, running).run(outputs, progress)


def log_survey(words: CorpusSurvey) -> None:
    """Log the sizes of the corpus."""
    log.info(
        "%s sentence pairs, %s and %s different words",
        f"{words.pairs:,}",
        f"{len(words.source) - 2:,}",
        f"{len(words.target) - 2:,}",
    )


def write_outputs(
    outputs: TableOutputs,
    words: CorpusSurvey,
    lexicon: WordTable,
    lines: Iterable[tuple[list[str], list[str]]],
) -> None:
    """Write all tables. `lexicon` must be complete; `lines`: of both tables, in order."""
    write_tables(outputs.table, outputs.reordering, lines)
    if outputs.lexical:
        write_lexical(outputs.lexical, words, lexicon)


def rows_in_memory(config: ExtractConfig, width: int) -> int:
    """How many instances may be sorted at a time. `width`: numbers in the key of one."""
    memory = (round(1000 * config.memory) - BASE) << 20
    return max(1 << 16, memory // (COPIES * ROW_BYTES * (width + 8)))


# ---- one process -------------------------------------------------------------------------------------------


class Extraction:
    """The steps of one extraction, and the files between them."""

    def __init__(self, folder: Path, words: CorpusSurvey, config: ExtractConfig) -> None:
        self.folder, self.words, self.config = folder, words, config
        self.extractor = Extractor(words, config.max_length)
        self.source_columns = self.extractor.source.columns
        self.width = self.source_columns + self.extractor.target.columns
        self.lexicon = WordTable(len(words.target))
        self.totals = CorpusTotals()
        self.parts = 0
        self.most = rows_in_memory(config, self.width)

    def extract(self, inputs: TableInputs, progress: Report) -> None:
        """Spread all instances, condensed block by block, over files by their source phrase; count linked
        words."""
        files_wanted = int(self.words.tokens * INSTANCES / self.most) + 1
        self.buckets: Buckets | None = None
        done = 0
        lines = files.parallel(inputs.source, inputs.target, inputs.alignment)
        for block in corpus.blocks(lines, self.words, self.config.block):
            rows = scores.condense(*self.extractor.instances(block))
            if self.buckets is None:
                self.buckets = Buckets(
                    self.folder / "pairs", self.width + 8, quantiles(rows[:, 0], files_wanted)
                )
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
        for part, rows in enumerate(self.buckets.walk(self.most, self.source_columns)):
            pairs = scores.distinct_pairs(rows)
            if part == 0 and wanted > 1:
                splitters = quantiles(pairs.keys[:, self.source_columns], wanted)
                by_target = Buckets(self.folder / "targets", target + 3, splitters)
            by_target.add(scores.in_part(scores.target_rows(pairs, self.source_columns), part))
            self.totals.add(pairs.count)
            self.parts += 1
            np.savez(self.folder / f"part{part}.npz", **vars(pairs))
        self.back = Buckets(self.folder / "back", 4, np.arange(1, max(1, self.parts), dtype=np.uint64), by=1)
        for rows in by_target.walk(self.most, target):
            self.back.add(scores.target_totals(rows, target))

    def lines(self) -> Iterator[tuple[list[str], list[str]]]:
        """The lines of the phrase table and of the reordering table, a part at a time."""
        lines = TableLines(self.words, self.config, self.lexicon, self.totals)
        for part in range(self.parts):
            with np.load(self.folder / f"part{part}.npz", allow_pickle=False) as archive:
                pairs = PhrasePairs(**archive)
            yield lines.format(pairs, self.back.read(part)[:, [0, 2, 3]])


# ---- several workers ---------------------------------------------------------------------------------------
# Map and reduce: a worker computes one task at a time, from the files of earlier stages to a file of its own,
# in a folder that all of them share; only numbers of tasks are sent.
#
#     text      (the command cuts it) shards of sentence pairs with their points
#     survey    words of a shard
#     extract   instances of a shard, in a part for each bucket of sources: the map
#     count     distinct pairs of a bucket; their targets, in a part for each bucket of targets
#     totals    how often each target of a bucket was extracted, in a part for each bucket of sources
#     score     lines of a bucket, sorted


SURVEY, EXTRACT, COUNT, TOTALS, SCORE = "survey", "extract", "count", "totals", "score"
PLAN, WORDS, SHARED = "plan.json", "words", "shared"  # what all tasks know
SAMPLED_PAIRS = 200  # sentence pairs of a shard that say how many instances a word has
PART_LINES = 256  # of a table in a part of a file: what the merge holds of each bucket
BUCKET_ROOM = 1.25  # buckets are of different sizes
BUCKET_ROWS = 100_000  # instances, if memory allows more: or there would be too few buckets for many workers
MANY_BUCKETS = 64  # buckets that are enough for that


class ExtractionWorker(stages.StageWorker):
    """The stages of an extraction."""

    def __init__(self, folder: Path, names: tuple[str, str, str], config: ExtractConfig) -> None:
        """`names`: the texts and their alignment, for messages."""
        super().__init__(folder)
        self.names, self.config = names, config

    def compute_parts(self, stage: str, number: int) -> Iterable[Part]:
        return STAGES[stage](self, number)

    @cached_property
    def buckets(self) -> int:
        """Number of buckets, as recorded in the plan."""
        return int(str((store.read_settings(self.folder / PLAN) or {})["buckets"]))

    @cached_property
    def words(self) -> CorpusSurvey:
        return read_words([self.folder / WORDS]).survey(self.names)

    @cached_property
    def extractor(self) -> Extractor:
        return Extractor(self.words, self.config.max_length)

    @cached_property
    def lines(self) -> TableLines:
        keys, counts, totals = (
            arrays.read_rows(self.folder / SHARED, part, 1)[:, 0].astype(np.int64) for part in range(3)
        )
        lexicon = WordTable(len(self.words.target))
        lexicon.join(keys, counts)
        lexicon.finish()
        return TableLines(self.words, self.config, lexicon, CorpusTotals(int(totals[0]), totals[1:]))

    def gather(self, stage: str, tasks: int, part: int, columns: int) -> list[UINT]:
        """Read the rows that each task of a stage wrote for task `part` of a later one: (N, columns) each"""
        return [arrays.read_rows(task_file(self.folder, stage, task), part, columns) for task in range(tasks)]


def survey_shard(worker: ExtractionWorker, number: int) -> Iterable[Part]:
    """The words of both sides, and how many words, pairs and instances there are."""
    shard = stages.read_shard(worker.folder, number)
    counts = corpus.count_words(shard.rows, worker.names, shard.first)
    instances, tokens = sample_instances(shard.rows[:SAMPLED_PAIRS], worker.config.max_length)
    numbers = {"pairs": counts.pairs, "tokens": counts.tokens, "instances": instances, "sampled": tokens}
    return [*("\n".join(sorted(side)).encode() for side in counts.sides), json.dumps(numbers).encode()]


def sample_instances(lines: Sequence[tuple[str, ...]], longest: int) -> tuple[int, int]:
    """Instances of some sentence pairs, and words of both sides. Which words these are does not matter."""
    masked = [
        (*(" ".join("x" for _ in files.split_words(side)) for side in (left, right)), points)
        for left, right, points in lines
    ]
    words = corpus.CorpusSurvey(corpus.SideVocab({"x"}), corpus.SideVocab({"x"}), 0, 0)
    (block,) = corpus.blocks(masked, words, 1 << 62)
    return len(Extractor(words, longest).instances(block)[1]), len(block.source) + len(block.target)


def extract_shard(worker: ExtractionWorker, number: int) -> Iterable[Part]:
    """Instances, condensed, a part for each bucket; then counts of linked words."""
    (block,) = corpus.blocks(stages.read_shard(worker.folder, number).rows, worker.words, 1 << 62)
    rows = scores.condense(*worker.extractor.instances(block))
    lexicon = WordTable(len(worker.words.target))
    lexicon.add(*word_pairs(block))
    lexicon.settle()
    bucket_of_row = arrays.hash_buckets(rows[:, : worker.extractor.source.columns], worker.buckets)
    return [
        *arrays.split_buckets(rows, bucket_of_row, worker.buckets),
        np.stack([lexicon.keys, lexicon.counts], 1),
    ]


def count_bucket(worker: ExtractionWorker, number: int) -> Iterable[Part]:
    """For each bucket of targets their counts and rows; then the distinct pairs, and what smoothing needs."""
    columns = worker.extractor.source.columns
    width = columns + worker.extractor.target.columns
    pairs = scores.distinct_pairs(
        np.concatenate(worker.gather(EXTRACT, stages.count_shards(worker.folder), number, width + 8))
    )
    rows = scores.target_rows(pairs, columns)
    bucket_of_row = arrays.hash_buckets(rows[:, :-2], worker.buckets)
    totals = CorpusTotals()
    totals.add(pairs.count)
    return [
        *arrays.split_buckets(rows, bucket_of_row, worker.buckets),
        *(pairs.keys, pairs.count, pairs.direct, pairs.inverse, pairs.ways),
        np.array([totals.pairs, *totals.counts_of_counts]),
    ]


def total_bucket(worker: ExtractionWorker, number: int) -> Iterable[Part]:
    """For each bucket of sources the rows of its pairs, how often their targets were extracted, and with how
    many sources."""
    target, buckets = worker.extractor.target.columns, worker.buckets
    parts = enumerate(worker.gather(COUNT, buckets, number, target + 2))
    rows = np.concatenate([scores.in_part(rows, bucket) for bucket, rows in parts])
    totals = scores.target_totals(rows, target)
    return arrays.split_buckets(totals[:, [0, 2, 3]], totals[:, 1].astype(np.int64), buckets)


def score_bucket(worker: ExtractionWorker, number: int) -> Iterable[Part]:
    """The lines of both tables, in turn, PART_LINES of them in a part."""
    pairs = read_pairs(worker, number)
    totals = np.concatenate(worker.gather(TOTALS, worker.buckets, number, 3))
    columns = worker.lines.format(pairs, totals)
    return [
        "\n".join(column[at : at + PART_LINES]).encode()
        for at in range(0, len(pairs.count), PART_LINES)
        for column in columns
    ]


def read_pairs(worker: ExtractionWorker, number: int) -> PhrasePairs:
    """The pairs of a bucket, as `count` wrote them."""
    path, first = task_file(worker.folder, COUNT, number), worker.buckets
    width = worker.extractor.source.columns + worker.extractor.target.columns
    keys, count, direct, inverse, ways = (
        arrays.read_rows(path, first + part, columns) for part, columns in enumerate((width, 1, 1, 1, 6))
    )
    return PhrasePairs(keys, count[:, 0].astype(np.int64), direct[:, 0], inverse[:, 0], ways.astype(np.int64))


STAGES: dict[str, Callable[[ExtractionWorker, int], Iterable[Part]]] = {
    SURVEY: survey_shard,
    EXTRACT: extract_shard,
    COUNT: count_bucket,
    TOTALS: total_bucket,
    SCORE: score_bucket,
}


def read_words(paths: Iterable[Path]) -> corpus.WordCounts:
    """The words of the files that `survey` wrote, together."""
    words = corpus.WordCounts((set(), set()))
    for path in paths:
        for part, side in enumerate(words.sides):
            side.update(stages.read_part(path, part).decode().split("\n"))
            side.discard("")  # of a side without words
        numbers = json.loads(stages.read_part(path, 2))
        words.pairs += numbers["pairs"]
        words.tokens += numbers["tokens"]
    return words


class SharedExtraction:
    """The stages of one extraction, as the command sees them."""

    def __init__(
        self, folder: Path, names: tuple[str, str, str], config: ExtractConfig, executor: Executor[Task, None]
    ) -> None:
        self.folder, self.names, self.config, self.executor = folder, names, config, executor

    def run(self, outputs: TableOutputs, progress: Report) -> int:
        """All stages, and the tables."""
        self.shards = stages.cut_shards(self.folder, self.names, self.config.block)
        self.survey()
        done = 0
        for number in self.stage(EXTRACT, self.shards):
            done += self.tokens[number]
            progress(done, self.words.tokens)
        buckets = [f"bucket {number + 1} of {self.buckets}" for number in range(self.buckets)]
        list(self.stage(COUNT, buckets))
        lexicon, pairs = self.write_shared_counts()
        for stage in (TOTALS, SCORE):
            list(self.stage(stage, buckets))
        lexicon.finish()
        write_outputs(outputs, self.words, lexicon, self.merged_lines())
        return pairs

    def stage(self, name: str, what: list[str]) -> Iterator[int]:
        return stages.run_stage(self.executor, name, what)

    def survey(self) -> None:
        """Number the words, and decide on the number of buckets."""
        list(self.stage(SURVEY, self.shards))
        paths = [task_file(self.folder, SURVEY, number) for number in range(len(self.shards))]
        words = read_words(paths)
        self.words = words.survey(self.names)
        log_survey(self.words)
        numbers = [json.loads(stages.read_part(path, 2)) for path in paths]
        self.tokens = [shard["tokens"] for shard in numbers]
        instances = sum(shard["tokens"] * shard["instances"] / max(1, shard["sampled"]) for shard in numbers)
        stages.ensure_file(
            self.folder / WORDS,
            lambda: [
                *("\n".join(sorted(side)).encode() for side in words.sides),
                json.dumps({"pairs": words.pairs, "tokens": words.tokens}).encode(),
            ],
        )
        plan = store.read_settings(self.folder / PLAN) or {"buckets": self.choose_buckets(instances)}
        store.write_settings(self.folder / PLAN, plan)
        self.buckets = int(str(plan["buckets"]))

    def choose_buckets(self, instances: float) -> int:
        """How many buckets memory needs, or many workers."""
        if self.config.buckets:
            return self.config.buckets
        sides = self.words.source, self.words.target
        width = sum(make_packing(side, self.config.max_length).columns for side in sides)
        for_memory = int(BUCKET_ROOM * instances / rows_in_memory(self.config, width))
        return max(for_memory, min(MANY_BUCKETS, int(instances / BUCKET_ROWS))) + 1

    def write_shared_counts(self) -> tuple[WordTable, int]:
        """Add up what the shards and the buckets counted, for all workers; returns the counts of linked words
        and the number of pairs."""
        lexicon, totals = WordTable(len(self.words.target)), CorpusTotals()
        for number in range(len(self.shards)):
            rows = arrays.read_rows(task_file(self.folder, EXTRACT, number), self.buckets, 2).astype(np.int64)
            lexicon.join(rows[:, 0], rows[:, 1])
        lexicon.settle()
        for number in range(self.buckets):
            path = task_file(self.folder, COUNT, number)
            counts = arrays.read_rows(path, self.buckets + 5, 1)[:, 0].astype(np.int64)
            totals.pairs += int(counts[0])
            totals.counts_of_counts = totals.counts_of_counts + counts[1:]
        both = np.array([totals.pairs, *totals.counts_of_counts])
        stages.ensure_file(self.folder / SHARED, lambda: [lexicon.keys, lexicon.counts, both])
        return lexicon, totals.pairs

    def merged_lines(self) -> Iterator[tuple[list[str], list[str]]]:
        """The lines of both tables, in order. Lines of different pairs differ before their scores, so that
        the order of lines is that of pairs."""
        for rows in line_chunks(heapq.merge(*map(self.lines, range(self.buckets)))):
            yield [table for table, _ in rows], [reordering for _, reordering in rows]

    def lines(self, bucket: int) -> Iterator[tuple[str, str]]:
        """The lines of a bucket, a part at a time."""
        path = task_file(self.folder, SCORE, bucket)
        for part in range(0, stages.count_parts(path), 2):
            table, reordering = (
                stages.read_part(path, part + offset).decode().split("\n") for offset in (0, 1)
            )
            yield from zip(table, reordering, strict=True)
