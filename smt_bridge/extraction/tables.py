"""Extract a phrase table and its reordering table from an aligned corpus, in this process or by workers of an
executor.

    cut the texts into shards -> survey their words -> extract, instances spread over buckets by source
    -> count the pairs of each bucket, targets spread over buckets again -> totals of the targets -> score
    -> merge

`ExtractConfig.memory` limits the memory for phrase pairs. The words of both sides and the counts of linked
word pairs stay in memory in addition.
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
from nmt.io.locks import WorkFolders
from nmt.work import arrays, executors, stages, store
from nmt.work.executors import Executor, ExecutorConfig, line_chunks
from nmt.work.stages import Part, SharedFolder, Task, task_file
from smt_bridge.extraction import corpus, scores
from smt_bridge.extraction.config import BASE_MEMORY, ExtractConfig
from smt_bridge.extraction.corpus import CorpusSurvey
from smt_bridge.extraction.instances import UINT, Extractor, make_packing, word_pairs
from smt_bridge.extraction.scores import (
    CorpusTotals,
    PhrasePairs,
    TableLines,
    WordTable,
    write_lexical,
    write_tables,
)
from smt_bridge.moses.reordering import trained_type

log = logging.getLogger(__name__)

ROW_BYTES = 8  # of a number in a bucket
COPIES = 6  # of a bucket in memory while it is sorted

# Called with the share of the total time that has passed, as a number of words of the corpus, and with the
# number of all its words.
Report = Callable[[int, int], None]


@dataclass
class TableInputs:
    """The texts, and their word alignment."""

    source: str
    target: str
    alignment: str


@dataclass
class TableOutputs:
    """Paths of the output tables; None: not written."""

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
    """Extract the phrase pairs of an aligned corpus and write their tables; returns the number of distinct
    pairs.

    `progress`: see `Report`; `shared`: the folder in which the workers of `executor` compute; None: this
    process computes, in a temporary folder beside the table. DataError or ConfigError before any table is
    written; UserError if one cannot be written; also raises the errors of the executor, and of
    `stages.lock_shared`.
    """
    settings.check(config)
    trained_type(config.reordering_type)
    if shared is None:
        with WORK.make(outputs.table) as folder:
            return compute_tables(folder, inputs, outputs, config, progress, ExecutorConfig())
    executor = executor or ExecutorConfig()
    job_settings: dict[str, object] = {
        name: manifest.digest(path) for name, path in asdict(inputs).items()
    } | asdict(config)
    del job_settings["memory"]  # affects no result: the number of buckets is in the plan
    job_settings |= executor.recorded()
    with stages.lock_shared(shared, job_settings):
        return compute_tables(shared.folder, inputs, outputs, config, progress, executor)


def compute_tables(
    folder: Path,
    inputs: TableInputs,
    outputs: TableOutputs,
    config: ExtractConfig,
    progress: Report,
    executor: ExecutorConfig,
) -> int:
    """Run all stages in `folder`, and write the tables; returns the number of distinct pairs."""
    names = inputs.source, inputs.target, inputs.alignment
    worker = ExtractionWorker(folder, names, config)
    with executors.make(worker, partial(stages.begin_worker, worker), executor) as running:
        return Extraction(folder, names, config, running).run(outputs, progress)


def rows_in_memory(config: ExtractConfig, width: int) -> int:
    """Number of instances that can be sorted in memory. `width`: 64-bit columns in the key of an instance."""
    memory = (round(1000 * config.memory) - BASE_MEMORY) << 20
    columns = width + scores.count_columns(config.reordering)
    return max(1 << 16, memory // (COPIES * ROW_BYTES * columns))


WORK = WorkFolders(
    "smt-extract", r"(text|shards|survey|words|plan\.json|extract|count|shared|totals|score)(\.part.*)?"
)


# ---- what a worker does ------------------------------------------------------------------------------------
# One task at a time, from the files of earlier stages to a file of its own, in a folder that all workers
# share; only numbers of tasks are sent.
#
#     text      (the command cuts it) shards of sentence pairs with their points
#     survey    words of a shard
#     extract   instances of a shard, in a part for each bucket of sources: the map
#     count     distinct pairs of a bucket; their targets, in a part for each bucket of targets
#     totals    how often each target of a bucket was extracted, in a part for each bucket of sources
#     score     lines of a bucket, sorted


SURVEY, EXTRACT, COUNT, TOTALS, SCORE = "survey", "extract", "count", "totals", "score"
WRITE = "write"  # not a task: the command merges the lines of all buckets
# Start and end of each stage as shares of the total time, measured with 2 million pairs.
STAGE_TIMES = {
    EXTRACT: (0.0, 0.25),
    COUNT: (0.25, 0.37),
    TOTALS: (0.37, 0.4),
    SCORE: (0.4, 0.84),
    WRITE: (0.84, 1.0),
}
PLAN, WORDS, SHARED = "plan.json", "words", "shared"  # files that all tasks read
SAMPLED_PAIRS = 200  # sentence pairs of a shard from which the number of instances per word is estimated
PART_LINES = 256  # table lines in a part of a file; the merge holds one part of each bucket in memory
BUCKET_ROOM = 1.25  # safety factor, since buckets differ in size
BUCKET_ROWS = 100_000  # instances of a bucket if memory allows more, so that many workers have enough buckets
MANY_BUCKETS = 64  # no more buckets than this are made only to keep workers busy


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
        return Extractor(self.words, self.config.max_length, self.config.reordering)

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
    """Survey a shard. Returns the words of both sides; then JSON with the numbers of pairs, of words, and of
    the instances in a sample. DataError as from `corpus.count_words`."""
    shard = stages.read_shard(worker.folder, number)
    counts = corpus.count_words(shard.rows, worker.names, shard.first)
    instances, tokens = sample_instances(shard.rows[:SAMPLED_PAIRS], worker.config.max_length)
    numbers = {"pairs": counts.pairs, "tokens": counts.tokens, "instances": instances, "sampled": tokens}
    return [*("\n".join(sorted(side)).encode() for side in counts.sides), json.dumps(numbers).encode()]


def sample_instances(lines: Sequence[tuple[str, ...]], longest: int) -> tuple[int, int]:
    """Count the instances in some sentence pairs, and the words of both sides. `lines`: source, target and
    points of each pair; `longest`: maximum phrase length in words."""
    # Which words a sentence has does not matter, only how many; a vocabulary of one word is fast.
    masked = [
        (*(" ".join("x" for _ in files.split_words(side)) for side in (left, right)), points)
        for left, right, points in lines
    ]
    words = corpus.CorpusSurvey(corpus.SideVocab({"x"}), corpus.SideVocab({"x"}), 0, 0)
    (block,) = corpus.blocks(masked, words, 1 << 62)
    return len(Extractor(words, longest).instances(block)[1]), len(block.source) + len(block.target)


def extract_shard(worker: ExtractionWorker, number: int) -> Iterable[Part]:
    """Extract a shard: condensed instances, in a part for each bucket, then counts of linked words."""
    (block,) = corpus.blocks(stages.read_shard(worker.folder, number).rows, worker.words, 1 << 62)
    rows = scores.condense(*worker.extractor.instances(block), worker.config.reordering)
    lexicon = WordTable(len(worker.words.target))
    lexicon.add(*word_pairs(block))
    lexicon.merge_pending()
    bucket_of_row = arrays.hash_buckets(rows[:, : worker.extractor.source.columns], worker.buckets)
    return [
        *arrays.split_buckets(rows, bucket_of_row, worker.buckets),
        np.stack([lexicon.keys, lexicon.counts], 1),
    ]


def count_bucket(worker: ExtractionWorker, number: int) -> Iterable[Part]:
    """Count the distinct pairs of a bucket. Returns the targets with their counts and rows, in a part for
    each bucket of targets; then the arrays of the distinct pairs; then the totals for smoothing."""
    columns = worker.extractor.source.columns
    reordering = worker.config.reordering
    width = columns + worker.extractor.target.columns + scores.count_columns(reordering)
    rows = worker.gather(EXTRACT, stages.count_shards(worker.folder), number, width)
    pairs = scores.distinct_pairs(np.concatenate(rows), reordering)
    targets = pairs.keys[:, columns:]
    numbers = np.stack([pairs.count, np.arange(len(targets))], 1).astype(np.uint64)
    bucket_of_row = arrays.hash_buckets(targets, worker.buckets)
    totals = CorpusTotals()
    totals.add(pairs.count)
    return [
        *arrays.split_buckets(np.hstack([targets, numbers]), bucket_of_row, worker.buckets),
        *(pairs.keys, pairs.count, pairs.direct, pairs.inverse, pairs.orientations),
        np.array([totals.pairs, *totals.counts_of_counts]),
    ]


def total_bucket(worker: ExtractionWorker, number: int) -> Iterable[Part]:
    """Add up the counts of each target in a bucket of targets. Returns a part for each bucket of sources: for
    each of its pairs with such a target, the row of the pair, how often the target was extracted, and with
    how many sources."""
    target, buckets = worker.extractor.target.columns, worker.buckets
    parts = worker.gather(COUNT, buckets, number, target + 2)
    source_buckets = np.repeat(np.arange(buckets), [len(rows) for rows in parts])
    rows = np.concatenate(parts)
    order = arrays.sorted_order(rows, target)
    rows, source_buckets = rows[order], source_buckets[order]
    starts, sizes = scores.row_groups(rows, target)
    total = np.repeat(np.add.reduceat(rows[:, target], starts), sizes)
    partners = np.repeat(sizes, sizes).astype(np.uint64)
    columns = np.stack([rows[:, target + 1], total, partners], 1)
    return arrays.split_buckets(columns, source_buckets, buckets)


def score_bucket(worker: ExtractionWorker, number: int) -> Iterable[Part]:
    """Score a bucket. Returns parts of up to PART_LINES lines, of phrase and reordering table in turn."""
    pairs = read_pairs(worker, number)
    totals = np.concatenate(worker.gather(TOTALS, worker.buckets, number, 3))
    columns = worker.lines.format(pairs, totals)
    return [
        "\n".join(column[first : first + PART_LINES]).encode()
        for first in range(0, len(pairs.count), PART_LINES)
        for column in columns
    ]


def read_pairs(worker: ExtractionWorker, number: int) -> PhrasePairs:
    """Read the pairs of a bucket from the file of stage `count`."""
    path, first = task_file(worker.folder, COUNT, number), worker.buckets
    width = worker.extractor.source.columns + worker.extractor.target.columns
    keys, count, direct, inverse, orientations = (
        arrays.read_rows(path, first + part, columns)
        for part, columns in enumerate((width, 1, 1, 1, 2 * worker.config.reordering.size))
    )
    return PhrasePairs(
        keys, count[:, 0].astype(np.int64), direct[:, 0], inverse[:, 0], orientations.astype(np.int64)
    )


STAGES: dict[str, Callable[[ExtractionWorker, int], Iterable[Part]]] = {
    SURVEY: survey_shard,
    EXTRACT: extract_shard,
    COUNT: count_bucket,
    TOTALS: total_bucket,
    SCORE: score_bucket,
}


def read_words(paths: Iterable[Path]) -> corpus.WordCounts:
    """Read and merge word counts from the files of stage `survey`."""
    words = corpus.WordCounts((set(), set()))
    for path in paths:
        for part, side in enumerate(words.sides):
            side.update(stages.read_part(path, part).decode().split("\n"))
            side.discard("")  # of a side without words
        numbers = json.loads(stages.read_part(path, 2))
        words.pairs += numbers["pairs"]
        words.tokens += numbers["tokens"]
    return words


class Extraction:
    """Runs the stages of one extraction. `names`: paths of the texts and their alignment."""

    shards: list[str]  # descriptions for messages; set by `run`
    words: CorpusSurvey  # set by `survey`
    buckets: int  # number of them; set by `survey`

    def __init__(
        self, folder: Path, names: tuple[str, str, str], config: ExtractConfig, executor: Executor[Task, None]
    ) -> None:
        self.folder, self.names, self.config, self.executor = folder, names, config, executor

    def run(self, outputs: TableOutputs, progress: Report) -> int:
        """Run all stages and write the tables; returns the number of distinct pairs."""
        self.shards = stages.cut_shards(self.folder, self.names, self.config.block)
        self.survey()
        self.timed_stage(EXTRACT, self.shards, progress)
        buckets = [f"bucket {number + 1} of {self.buckets}" for number in range(self.buckets)]
        self.timed_stage(COUNT, buckets, progress)
        lexicon, pairs = self.write_shared_counts()
        for stage in (TOTALS, SCORE):
            self.timed_stage(stage, buckets, progress)
        write_tables(outputs.table, outputs.reordering, self.merged_lines(pairs, progress))
        if outputs.lexical:
            lexicon.finish()
            write_lexical(outputs.lexical, self.words, lexicon)
        return pairs

    def timed_stage(self, name: str, tasks: list[str], progress: Report) -> None:
        """Run all tasks of a stage, and report progress after each. `tasks`: their names for messages."""
        for number in stages.run_stage(self.executor, name, tasks):
            self.report(progress, name, (number + 1) / len(tasks))

    def report(self, progress: Report, stage: str, part: float) -> None:
        """Report that all stages before `stage` are done, and the share `part` of it, 0 to 1."""
        start, end = STAGE_TIMES[stage]
        progress(round(self.words.tokens * (start + part * (end - start))), self.words.tokens)

    def survey(self) -> None:
        """Survey all shards, write the vocabulary and the plan for workers, and set `words` and `buckets`."""
        list(stages.run_stage(self.executor, SURVEY, self.shards))
        paths = [task_file(self.folder, SURVEY, number) for number in range(len(self.shards))]
        words = read_words(paths)
        self.words = words.survey(self.names)
        distinct = [f"{len(side):,}" for side in words.sides]
        log.info("%s sentence pairs, %s and %s different words", f"{words.pairs:,}", *distinct)
        numbers = [json.loads(stages.read_part(path, 2)) for path in paths]
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
        """Number of buckets: as configured, or else enough to stay within memory and to keep many workers
        busy. `instances`: their estimated number in the corpus."""
        if self.config.buckets:
            return self.config.buckets
        sides = self.words.source, self.words.target
        width = sum(make_packing(side, self.config.max_length).columns for side in sides)
        for_memory = int(BUCKET_ROOM * instances / rows_in_memory(self.config, width))
        return max(for_memory, min(MANY_BUCKETS, int(instances / BUCKET_ROWS))) + 1

    def write_shared_counts(self) -> tuple[WordTable, int]:
        """Add up the counts of all shards and buckets, and write them for all workers; returns the counts of
        linked words and the number of pairs."""
        lexicon, totals = WordTable(len(self.words.target)), CorpusTotals()
        for number in range(len(self.shards)):
            rows = arrays.read_rows(task_file(self.folder, EXTRACT, number), self.buckets, 2).astype(np.int64)
            lexicon.join(rows[:, 0], rows[:, 1])
        lexicon.merge_pending()
        for number in range(self.buckets):
            path = task_file(self.folder, COUNT, number)
            counts = arrays.read_rows(path, self.buckets + 5, 1)[:, 0].astype(np.int64)
            totals.pairs += int(counts[0])
            totals.counts_of_counts = totals.counts_of_counts + counts[1:]
        both = np.array([totals.pairs, *totals.counts_of_counts])
        stages.ensure_file(self.folder / SHARED, lambda: [lexicon.keys, lexicon.counts, both])
        return lexicon, totals.pairs

    def merged_lines(self, pairs: int, progress: Report) -> Iterator[tuple[list[str], list[str]]]:
        """Merge the sorted lines of all buckets; yields blocks of lines of the phrase table and of the
        reordering table. Lines of different pairs differ before their scores, so that sorted lines are in the
        order of pairs."""
        done = 0
        for rows in line_chunks(heapq.merge(*map(self.lines, range(self.buckets)))):
            yield [table for table, _ in rows], [reordering for _, reordering in rows]
            done += len(rows)
            self.report(progress, WRITE, done / pairs)

    def lines(self, bucket: int) -> Iterator[tuple[str, str]]:
        """Yield the lines of a bucket for both tables, reading one part at a time."""
        path = task_file(self.folder, SCORE, bucket)
        for part in range(0, stages.count_parts(path), 2):
            table, reordering = (
                stages.read_part(path, part + offset).decode().split("\n") for offset in (0, 1)
            )
            yield from zip(table, reordering, strict=True)
