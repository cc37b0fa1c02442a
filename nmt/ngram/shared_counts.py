"""N-grams of a text that several workers count, in processes or on the hosts of a cluster: what
`counting.count` finds.

    cut the text into shards -> number the words of a shard -> count its n-grams, spread over buckets by a
    hash of all words but the last -> sum each bucket -> put the buckets together

Workers read and write files of a folder that all of them share (nmt/jobs/stages.py).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from nmt import files, manifest
from nmt.jobs import arrays, executors, parts, shards, stages
from nmt.jobs.arrays import UINT, Int64s
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.parts import Part
from nmt.jobs.stages import Place, place
from nmt.ngram.arpa import BOS, EOS, UNK
from nmt.ngram.counting import Counted, NumberedText, count, nothing, number

NUMBER, COUNT, SUM = "number", "count", "sum"
WORDS_FILE = "words"
WORDS = 500_000  # of a shard
BUCKETS = 64  # at most: their number is that of the shards
SYMBOLS = [UNK, BOS, EOS]  # numbers 0 to 2


@dataclass(frozen=True)
class Settings:
    """What is counted."""

    order: int
    skip_symbols: bool = False


class Worker(stages.Worker):
    """The stages of counting."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        super().__init__(folder)
        self.settings = settings

    def make(self, stage: str, number: int) -> Iterable[Part]:
        return STAGES[stage](self, number)

    @cached_property
    def words(self) -> list[str]:
        """All words by their numbers."""
        return read_words(self.folder / WORDS_FILE)

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def buckets(self) -> int:
        return buckets_of(shards.count(self.folder))


def buckets_of(shards: int) -> int:
    """How many buckets there are."""
    return max(1, min(BUCKETS, shards))


def read_words(path: Path) -> list[str]:
    """The words of a file: those that it has beside <unk>, <s> and </s>."""
    text = parts.read(path, 0).decode()
    return [*SYMBOLS, *(text.split("\n") if text else [])]


# ---- the stages --------------------------------------------------------------------------------------------


def number_words(worker: Worker, task: int) -> Iterable[Part]:
    """The words of a shard in order of appearance, and its text in numbers."""
    shard = shards.read(worker.folder, task)
    sentences = (files.split_words(line) for (line,) in shard.rows)
    text = number(sentences, worker.settings.skip_symbols, shard.first)
    return ["\n".join(text.words[len(SYMBOLS) :]).encode(), text.ids.astype(np.int64)]


def count_shard(worker: Worker, task: int) -> Iterable[Part]:
    """Of each bucket the n-grams of each length from 2 on, with their counts; then the words with theirs."""
    path = place(worker.folder, NUMBER, task)
    known = np.array([worker.numbers[word] for word in read_words(path)], np.int32)
    ids = known[arrays.rows(path, 1, 1)[:, 0].astype(np.int64)]
    levels = count(NumberedText(worker.words, ids), worker.settings.order)
    V = len(worker.words)
    words = np.arange(V, dtype=np.uint64)[:, None]
    spread: list[list[UINT]] = []
    for level in levels[1:]:
        last = (level.keys % V).astype(np.uint64)
        words = np.hstack([words[level.parents], last[:, None]])
        where = arrays.bucket_of(words[:, :-1], worker.buckets)
        rows = np.hstack([words, level.raw.astype(np.uint64)[:, None]])
        spread.append(arrays.spread(rows, where, worker.buckets))
    seen = np.flatnonzero(levels[0].raw)
    singles = np.stack([seen, levels[0].raw[seen]], 1)
    return [*(rows for bucket in zip(*spread, strict=True) for rows in bucket), singles]


def sum_bucket(worker: Worker, task: int) -> Iterable[Part]:
    """The n-grams of each length, with the counts of all shards."""
    found: list[Part] = []
    for level, n in enumerate(range(2, worker.settings.order + 1)):
        part = task * (worker.settings.order - 1) + level
        paths = [place(worker.folder, COUNT, shard) for shard in range(shards.count(worker.folder))]
        rows = np.concatenate([arrays.rows(path, part, n + 1) for path in paths])
        rows = rows[arrays.order_of(rows, n)]
        starts = arrays.group_starts(rows, n)
        found.append(np.hstack([rows[starts, :n], np.add.reduceat(rows[:, n:], starts, 0)]))
    return found


STAGES: dict[str, Callable[[Worker, int], Iterable[Part]]] = {
    NUMBER: number_words,
    COUNT: count_shard,
    SUM: sum_bucket,
}


# ---- the command -------------------------------------------------------------------------------------------


def count_text(
    path: str, settings: Settings, executor: ExecutorConfig, where: Place, words: int = WORDS
) -> tuple[list[str], list[Counted]]:
    """The words of a text, and its n-grams of every length. DataError for a text without words, or with
    symbols; errors of the executor, and of `stages.held`."""
    folder = where.folder
    made_from: dict[str, object] = {"text": manifest.digest(path), "order": settings.order, "words": words}
    made_from |= {"skip_symbols": settings.skip_symbols, **executor.recorded()}
    with stages.held(where, made_from):
        names = shards.cut(folder, (path,), words)
        worker = Worker(folder, settings)
        with executors.make(worker, partial(stages.begin, worker), executor) as running:
            list(stages.run(running, NUMBER, names))
            vocabulary = number_all(folder, len(names))
            list(stages.run(running, COUNT, names))
            buckets = buckets_of(len(names))
            what = [f"bucket {number + 1} of {buckets}" for number in range(buckets)]
            list(stages.run(running, SUM, what))
        return vocabulary, together(folder, len(names), settings.order, len(vocabulary))


def number_all(folder: Path, tasks: int) -> list[str]:
    """Number the words of all shards in order of appearance, for all workers."""
    numbers = {word: number for number, word in enumerate(SYMBOLS)}
    unknown = False
    for task in range(tasks):
        path = place(folder, NUMBER, task)
        for word in read_words(path):
            numbers.setdefault(word, len(numbers))
        unknown = unknown or bool((arrays.rows(path, 1, 1) == 0).any())
    vocabulary = list(numbers)
    if len(vocabulary) == len(SYMBOLS) and not unknown:
        raise nothing()
    text = "\n".join(vocabulary[len(SYMBOLS) :]).encode()
    stages.finish(folder / WORDS_FILE, lambda: [text])
    return vocabulary


def together(folder: Path, tasks: int, order: int, V: int) -> list[Counted]:
    """The n-grams of all buckets, in order of their keys. `V`: number of words."""
    raw = np.zeros(V, np.int64)
    buckets = buckets_of(tasks)
    for task in range(tasks):
        singles = arrays.rows(place(folder, COUNT, task), buckets * (order - 1), 2).astype(np.int64)
        raw[singles[:, 0]] += singles[:, 1]
    words = np.arange(V)
    levels = [Counted(words, raw, np.zeros(V, np.int64), words == 1, V)]
    for level, n in enumerate(range(2, order + 1)):
        rows = np.concatenate(
            [arrays.rows(place(folder, SUM, bucket), level, n + 1) for bucket in range(buckets)]
        ).astype(np.int64)
        keys = nodes(levels, rows[:, : n - 1]) * V + rows[:, n - 1]
        ranks = np.argsort(keys)
        keys, rows = keys[ranks], rows[ranks]
        begins = levels[-1].begins[keys // V]
        levels.append(Counted(keys, rows[:, n].copy(), nodes(levels, rows[:, 1:n]), begins, V))
    return levels


def nodes(levels: list[Counted], words: Int64s) -> Int64s:
    """The number of each n-gram in its level, from its words: (M, n) -> (M,)"""
    found = words[:, 0]
    for level, column in zip(levels[1:], words.T[1:], strict=False):
        found = np.searchsorted(level.keys, found * level.vocab_size + column)
    return found
