"""Phrase pairs of a corpus that several workers extract, in processes or on the hosts of a cluster: the bytes
of `tables.build`.

    cut the texts into shards -> survey their words -> extract, instances spread over buckets by source
    -> count the pairs of each bucket, targets spread over buckets again -> totals of the targets -> score
    -> merge

Workers read and write files of a folder that all of them share (`tasks.py`); only numbers of tasks are sent.
"""

import heapq
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from nmt import manifest, settings
from nmt.jobs import arrays, begun, executors, parts, shards, stages
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.executors import Executor
from nmt.jobs.lines import chunks
from nmt.jobs.stages import Place, Task, place
from smt_bridge.extraction import tasks
from smt_bridge.extraction.config import ExtractConfig
from smt_bridge.extraction.counts import WordTable
from smt_bridge.extraction.instances import packing_of
from smt_bridge.extraction.lines import write_lexical, write_tables
from smt_bridge.extraction.scores import Totals
from smt_bridge.extraction.tables import Inputs, Outputs, rows_in_memory

log = logging.getLogger(__name__)

ROOM = 1.25  # buckets are of different sizes
BUCKET = 100_000  # instances, if memory allows more: or there would be too few buckets for many workers
MANY = 64  # buckets that are enough for that
Told = Callable[[int, int], None]


def build(
    inputs: Inputs,
    outputs: Outputs,
    config: ExtractConfig,
    executor: ExecutorConfig,
    where: Place,
    progress: Told = lambda done, total: None,
) -> int:
    """Write the tables; returns the number of pairs. Errors are those of `tables.build`, of the executor, and
    of `stages.held`. `progress` is called with the words read so far and all words."""
    settings.check(config)
    names = inputs.source, inputs.target, inputs.alignment
    folder = where.folder
    made_from: dict[str, object] = {
        name: manifest.digest(path) for name, path in asdict(inputs).items()
    } | asdict(config)
    del made_from["memory"]  # affects no result: the number of buckets is in the plan
    made_from |= executor.recorded()
    with stages.held(where, made_from):
        worker = tasks.Worker(folder, names, config)
        with executors.make(worker, partial(stages.begin, worker), executor) as running:
            return Work(folder, names, config, running).run(outputs, progress)


class Work:
    """The stages of one extraction, as the command sees them."""

    def __init__(
        self,
        folder: Path,
        names: tuple[str, str, str],
        config: ExtractConfig,
        executor: Executor[Task, None],
    ) -> None:
        self.folder, self.names, self.config, self.executor = folder, names, config, executor

    def run(self, outputs: Outputs, progress: Told) -> int:
        """All stages, and the tables."""
        self.shards = shards.cut(self.folder, self.names, self.config.block)
        self.survey()
        done = 0
        for number in self.stage(tasks.EXTRACT, self.shards):
            done += self.tokens[number]
            progress(done, self.words.tokens)
        buckets = [f"bucket {number + 1} of {self.buckets}" for number in range(self.buckets)]
        list(self.stage(tasks.COUNT, buckets))
        lexicon, pairs = self.share()
        for stage in (tasks.TOTALS, tasks.SCORE):
            list(self.stage(stage, buckets))
        write_tables(outputs.table, outputs.reordering, self.merged())
        if outputs.lexical:
            lexicon.finish()
            write_lexical(outputs.lexical, self.words, lexicon)
        return pairs

    def stage(self, name: str, what: list[str]) -> Iterator[int]:
        return stages.run(self.executor, name, what)

    def survey(self) -> None:
        """Number the words, and decide on the number of buckets."""
        list(self.stage(tasks.SURVEY, self.shards))
        paths = [place(self.folder, tasks.SURVEY, number) for number in range(len(self.shards))]
        found = tasks.read_words(paths)
        self.words = found.survey(self.names)
        log.info(
            "%s sentence pairs, %s and %s different words",
            f"{self.words.pairs:,}",
            f"{len(self.words.source) - 2:,}",
            f"{len(self.words.target) - 2:,}",
        )
        numbers = [json.loads(parts.read(path, 2)) for path in paths]
        self.tokens = [shard["tokens"] for shard in numbers]
        instances = sum(shard["tokens"] * shard["instances"] / max(1, shard["sampled"]) for shard in numbers)
        stages.finish(
            self.folder / tasks.WORDS,
            lambda: [
                *("\n".join(sorted(side)).encode() for side in found.sides),
                json.dumps({"pairs": found.pairs, "tokens": found.tokens}).encode(),
            ],
        )
        plan = begun.read(self.folder / tasks.PLAN) or {
            "buckets": self.wanted(instances),
        }
        begun.write(self.folder / tasks.PLAN, plan)
        self.buckets = int(str(plan["buckets"]))

    def wanted(self, instances: float) -> int:
        """How many buckets memory needs, or many workers."""
        if self.config.buckets:
            return self.config.buckets
        sides = self.words.source, self.words.target
        width = sum(packing_of(side, self.config.max_length).columns for side in sides)
        return (
            max(
                int(ROOM * instances / rows_in_memory(self.config, width)), min(MANY, int(instances / BUCKET))
            )
            + 1
        )

    def share(self) -> tuple[WordTable, int]:
        """Add up what the shards and the buckets counted, for all workers; returns the counts of linked words
        and the number of pairs."""
        lexicon, totals = WordTable(len(self.words.target)), Totals()
        for number in range(len(self.shards)):
            rows = arrays.rows(place(self.folder, tasks.EXTRACT, number), self.buckets, 2).astype(np.int64)
            lexicon.join(rows[:, 0], rows[:, 1])
        lexicon.settle()
        for number in range(self.buckets):
            path = place(self.folder, tasks.COUNT, number)
            found = arrays.rows(path, self.buckets + 5, 1)[:, 0].astype(np.int64)
            totals.pairs += int(found[0])
            totals.counts_of_counts = totals.counts_of_counts + found[1:]
        both = np.array([totals.pairs, *totals.counts_of_counts])
        stages.finish(self.folder / tasks.SHARED, lambda: [lexicon.keys, lexicon.counts, both])
        return lexicon, totals.pairs

    def merged(self) -> Iterator[tuple[list[str], list[str]]]:
        """The lines of both tables, in order. Lines of different pairs differ before their scores, so that
        the order of lines is that of pairs."""
        for rows in chunks(heapq.merge(*map(self.lines, range(self.buckets)))):
            yield [table for table, _ in rows], [reordering for _, reordering in rows]

    def lines(self, bucket: int) -> Iterator[tuple[str, str]]:
        """The lines of a bucket, a part at a time."""
        path = place(self.folder, tasks.SCORE, bucket)
        for part in range(0, parts.count(path), 2):
            table, reordering = (parts.read(path, part + other).decode().split("\n") for other in (0, 1))
            yield from zip(table, reordering, strict=True)
