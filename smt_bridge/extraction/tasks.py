"""What a worker does in an extraction by map and reduce: one task at a time, from the files of earlier stages
to a file of its own.

    text      (the command cuts it) shards of sentence pairs with their points
    survey    words of a shard
    extract   instances of a shard, in a part for each bucket of sources: the map
    count     distinct pairs of a bucket; their targets, in a part for each bucket of targets
    totals    how often each target of a bucket was extracted, in a part for each bucket of sources
    score     lines of a bucket, sorted
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from nmt import files
from nmt.jobs import arrays, begun, parts, shards, stages
from nmt.jobs.parts import Part
from nmt.jobs.stages import place
from smt_bridge.extraction import corpus, counts, scores
from smt_bridge.extraction.config import ExtractConfig
from smt_bridge.extraction.counts import UINT, PhrasePairs, WordTable
from smt_bridge.extraction.instances import Extractor, word_pairs
from smt_bridge.extraction.lines import TableLines

SURVEY, EXTRACT, COUNT, TOTALS, SCORE = "survey", "extract", "count", "totals", "score"
PLAN, WORDS, SHARED = "plan.json", "words", "shared"  # what all tasks know
SAMPLE = 200  # sentence pairs of a shard that say how many instances a word has
LINES = 256  # of a table in a part of a file: what the merge holds of each bucket


class Worker(stages.Worker):
    """The stages of an extraction."""

    def __init__(self, folder: Path, names: tuple[str, str, str], config: ExtractConfig) -> None:
        """`names`: the texts and their alignment, for messages."""
        super().__init__(folder)
        self.names, self.config = names, config

    def make(self, stage: str, number: int) -> Iterable[Part]:
        return STAGES[stage](self, number)

    @cached_property
    def buckets(self) -> int:
        """Their number."""
        return int(str((begun.read(self.folder / PLAN) or {})["buckets"]))

    @cached_property
    def words(self) -> corpus.Survey:
        return read_words([self.folder / WORDS]).survey(self.names)

    @cached_property
    def extractor(self) -> Extractor:
        return Extractor(self.words, self.config.max_length)

    @cached_property
    def lines(self) -> TableLines:
        keys, held, totals = (
            arrays.rows(self.folder / SHARED, part, 1)[:, 0].astype(np.int64) for part in range(3)
        )
        lexicon = WordTable(len(self.words.target))
        lexicon.join(keys, held)
        lexicon.finish()
        return TableLines(self.words, self.config, lexicon, scores.Totals(int(totals[0]), totals[1:]))

    def gather(self, stage: str, tasks: int, part: int, columns: int) -> list[UINT]:
        """What each task of a stage made for one task of a later stage: (N, columns) each"""
        return [arrays.rows(place(self.folder, stage, task), part, columns) for task in range(tasks)]


# ---- the stages --------------------------------------------------------------------------------------------


def survey(worker: Worker, number: int) -> Iterable[Part]:
    """The words of both sides, and how many words, pairs and instances there are."""
    shard = shards.read(worker.folder, number)
    found = corpus.count(shard.rows, worker.names, shard.first)
    instances, tokens = sample(shard.rows[:SAMPLE], worker.config.max_length)
    numbers = {"pairs": found.pairs, "tokens": found.tokens, "instances": instances, "sampled": tokens}
    return [*("\n".join(sorted(side)).encode() for side in found.sides), json.dumps(numbers).encode()]


def sample(lines: Sequence[tuple[str, ...]], longest: int) -> tuple[int, int]:
    """Instances of some sentence pairs, and words of both sides. Which words these are does not matter."""
    masked = [
        (*(" ".join("x" for _ in files.split_words(side)) for side in (left, right)), points)
        for left, right, points in lines
    ]
    words = corpus.Survey(corpus.SideVocab({"x"}), corpus.SideVocab({"x"}), 0, 0)
    (block,) = corpus.blocks(masked, words, 1 << 62)
    return len(Extractor(words, longest).instances(block)[1]), len(block.source) + len(block.target)


def extract(worker: Worker, number: int) -> Iterable[Part]:
    """Instances, condensed, a part for each bucket; then counts of linked words."""
    (block,) = corpus.blocks(shards.read(worker.folder, number).rows, worker.words, 1 << 62)
    rows = counts.condensed(*worker.extractor.instances(block))
    lexicon = WordTable(len(worker.words.target))
    lexicon.add(*word_pairs(block))
    lexicon.settle()
    where = arrays.bucket_of(rows[:, : worker.extractor.source.columns], worker.buckets)
    return [*arrays.spread(rows, where, worker.buckets), np.stack([lexicon.keys, lexicon.counts], 1)]


def count(worker: Worker, number: int) -> Iterable[Part]:
    """For each bucket of targets their counts and rows; then the distinct pairs, and what smoothing needs."""
    columns = worker.extractor.source.columns
    width = columns + worker.extractor.target.columns
    buckets = worker.buckets
    pairs = counts.pairs_of(
        np.concatenate(worker.gather(EXTRACT, shards.count(worker.folder), number, width + 8))
    )
    targets = pairs.keys[:, columns:]
    numbers = np.stack([pairs.count.astype(np.uint64), np.arange(len(targets), dtype=np.uint64)], 1)
    totals = scores.Totals()
    totals.add(pairs.count)
    return [
        *arrays.spread(np.hstack([targets, numbers]), arrays.bucket_of(targets, buckets), buckets),
        *(pairs.keys, pairs.count, pairs.direct, pairs.inverse, pairs.ways),
        np.array([totals.pairs, *totals.counts_of_counts]),
    ]


def totals(worker: Worker, number: int) -> Iterable[Part]:
    """For each bucket of sources the rows of its pairs, how often their targets were extracted, and with how
    many sources."""
    target, buckets = worker.extractor.target.columns, worker.buckets
    found = worker.gather(COUNT, buckets, number, target + 2)
    of = np.repeat(np.arange(buckets), [len(rows) for rows in found])
    rows = np.concatenate(found)
    order = arrays.order_of(rows, target)
    rows, of = rows[order], of[order]
    starts, sizes = counts.groups(rows, target)
    total = np.repeat(np.add.reduceat(rows[:, target], starts), sizes)
    partners = np.repeat(sizes, sizes).astype(np.uint64)
    return arrays.spread(np.stack([rows[:, target + 1], total, partners], 1), of, buckets)


def score(worker: Worker, number: int) -> Iterable[Part]:
    """The lines of both tables, in turn, LINES of them in a part."""
    pairs = read_pairs(worker, number)
    answer = np.concatenate(worker.gather(TOTALS, worker.buckets, number, 3)).astype(np.int64)
    answer = answer[np.argsort(answer[:, 0])]
    columns = worker.lines.of(pairs, answer[:, 1], answer[:, 2])
    return [
        "\n".join(column[at : at + LINES]).encode()
        for at in range(0, len(pairs.count), LINES)
        for column in columns
    ]


def read_pairs(worker: Worker, number: int) -> PhrasePairs:
    """The pairs of a bucket, as `count` wrote them."""
    path, first = place(worker.folder, COUNT, number), worker.buckets
    width = worker.extractor.source.columns + worker.extractor.target.columns
    keys, held, direct, inverse, ways = (
        arrays.rows(path, first + part, columns) for part, columns in enumerate((width, 1, 1, 1, 6))
    )
    return PhrasePairs(keys, held[:, 0].astype(np.int64), direct[:, 0], inverse[:, 0], ways.astype(np.int64))


STAGES: dict[str, Callable[[Worker, int], Iterable[Part]]] = {
    SURVEY: survey,
    EXTRACT: extract,
    COUNT: count,
    TOTALS: totals,
    SCORE: score,
}


def read_words(paths: Iterable[Path]) -> corpus.Counted:
    """The words of the files that `survey` wrote, together."""
    found = corpus.Counted((set(), set()))
    for path in paths:
        for part, side in enumerate(found.sides):
            side.update(parts.read(path, part).decode().split("\n"))
            side.discard("")  # of a side without words
        numbers = json.loads(parts.read(path, 2))
        found.pairs += numbers["pairs"]
        found.tokens += numbers["tokens"]
    return found
