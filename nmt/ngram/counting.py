"""Counts the n-grams of a text in arrays, in this process or by several workers; builds back-off models from
an estimator's results, and statistics from the counts.

M n-grams of one length, N tokens of the text, V words.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.io import files, manifest
from nmt.io.mapped import MEMORY, ArrayStorage, blocks
from nmt.ngram.count_models import NgramModel, NgramOrder, keep_ngrams
from nmt.ngram.text_scorer import BOS, EOS, MINUS_ALL, UNK, Floats, Ints
from nmt.work import arrays, executors, stages
from nmt.work.arrays import UINT, Int64s
from nmt.work.executors import ExecutorConfig
from nmt.work.stages import Part, SharedFolder, task_file

# ---- counting ----------------------------------------------------------------------------------------------

LINES = 1000  # whose words are numbered together
NO_WORD, LINE_END = -1, -2  # ids of the separators of words and of lines
SYMBOLS = [UNK, BOS, EOS]  # numbers 0 to 2


@dataclass
class NumberedText:
    """A text as word ids: `<s> words </s>` of each sentence, concatenated."""

    words: list[str]  # <unk>, <s>, </s>, then in order of appearance
    ids: NDArray[np.int32]  # (N,)


@dataclass
class NgramCounts:
    """The M n-grams of one length with their counts, sorted by key."""

    keys: Ints  # parent * V + last word; see `parents`
    raw: Ints  # number of occurrences
    suffix: Ints  # all words but the first: their index in the order below; of unigrams 0
    begins: NDArray[np.bool_]  # whether its first word is <s>
    vocab_size: int  # V

    @property
    def parents(self) -> Ints:
        """All words but the last: their index in the order below; of unigrams the empty context, 0."""
        return self.keys // self.vocab_size


@dataclass(frozen=True)
class CountSettings:
    """Settings of counting: the longest n-grams, and whether <s> and </s> in the text are skipped."""

    order: int
    skip_symbols: bool = False


Counts = tuple[list[str], list[NgramCounts]]  # words by their ids, n-grams of each length


def number_text(lines: Iterable[str], skip_symbols: bool = False) -> NumberedText:
    """Map the words of a text to ids, like `number_words`. `skip_symbols`: drop the words <s> and </s> of the
    text, for which there is otherwise a DataError. DataError also for a text without words."""
    text = number_words(lines, skip_symbols)
    check_words(text.words, 0 in text.ids)
    return text


def check_words(words: Sequence[str], has_unknown: bool) -> None:
    """DataError for a text without words. `words`: with SYMBOLS; `has_unknown`: whether <unk> occurs."""
    if len(words) == len(SYMBOLS) and not has_unknown:
        raise DataError("no words to estimate a language model from")


class GrowingVocabulary(dict[str, int]):
    """Word ids; a new word gets the next one when looked up. Those of separators are negative."""

    def __init__(self) -> None:
        super().__init__({UNK: 0, BOS: 1, EOS: 2, "": NO_WORD, "\n": LINE_END})

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self) - 2
        return number

    @property
    def words(self) -> list[str]:
        return [word for word, number in self.items() if number >= 0]


def number_words(lines: Iterable[str], skip_symbols: bool, first: int = 1) -> NumberedText:
    """Map the words of tokenized lines to ids; parameters and errors as in `number_blocks`."""
    numbers = GrowingVocabulary()
    parts = [np.zeros(0, np.int32), *number_blocks(lines, skip_symbols, numbers, first)]
    return NumberedText(numbers.words, np.concatenate(parts))


def number_blocks(
    lines: Iterable[str], skip_symbols: bool, numbers: GrowingVocabulary, first: int = 1
) -> Iterator[NDArray[np.int32]]:
    """Map the words of tokenized lines to ids; new words are added to `numbers`. Yields `<s> words </s>` of
    the sentences of up to LINES lines at a time, concatenated. The word <unk> is the unknown word. DataError
    for <s> or </s> in a line, unless `skip_symbols` drops them. `first`: number of the first line, for
    messages."""
    lines = iter(lines)
    while block := list(islice(lines, LINES)):
        text = "\n".join([*block, ""]).replace("\t", " ").replace("\n", " \n ")
        ids = np.array(list(map(numbers.__getitem__, text.split(" "))), np.int32)
        ids = ids[ids != NO_WORD]
        symbols = (ids == 1) | (ids == 2)
        if symbols.any():
            if not skip_symbols:
                row = int((ids[: symbols.argmax()] == LINE_END).sum())
                symbol = BOS if BOS in files.split_words(block[row]) else EOS
                raise DataError(
                    f"line {first + row}: the text contains {symbol}, which marks the edges of sentences; "
                    "remove it, as nmt-ngram --skip-symbols does"
                )
            ids = ids[~symbols]
        ends = np.flatnonzero(ids == LINE_END)
        ids[ends] = 2
        yield np.insert(ids, np.append(0, ends[:-1] + 1), 1)
        first += len(block)


def sentence_positions(ids: Ints) -> Ints:
    """The position of each token in its sentence, <s> at 0: (N,) -> (N,)"""
    index = np.arange(len(ids))
    return index - np.maximum.accumulate(np.where(ids == 1, index, 0))


def unigram_counts(raw: Ints) -> NgramCounts:
    """The counts of single words. `raw` (V,): number of occurrences of each word."""
    V = len(raw)
    ids = np.arange(V)
    return NgramCounts(keys=ids, raw=raw, suffix=np.zeros(V, np.int64), begins=ids == 1, vocab_size=V)


def count_lines(lines: Iterable[str], settings: CountSettings) -> Counts:
    """Count the words of a text and its n-grams of every length, in memory. DataError as in `number_text`."""
    text = number_text(lines, settings.skip_symbols)
    return text.words, count_ngrams(text, settings.order)


def count_ngrams(text: NumberedText, order: int) -> list[NgramCounts]:
    """Count the n-grams of every length up to `order`; none crosses a sentence boundary."""
    V, N = len(text.words), len(text.ids)
    ids = text.ids.astype(np.int64)
    position = sentence_positions(ids)
    levels = [unigram_counts(np.bincount(ids, minlength=V))]
    node = ids  # index, in its level, of the n-gram that ends at each token; -1 for none
    for n in range(2, order + 1):
        ends = np.flatnonzero(position >= n - 1)
        keys, suffix, raw, which = distinct_ngrams(ids, node, ends, V)
        node = np.full(N, -1, np.int64)
        node[ends] = which
        begins = levels[-1].begins[keys // V]
        levels.append(NgramCounts(keys=keys, raw=raw, suffix=suffix, begins=begins, vocab_size=V))
    return levels


def distinct_ngrams(ids: Ints, node: Ints, ends: Ints, V: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Find the distinct n-grams that end at the tokens `ends` (K,). `ids` (N,): word ids; `node` (N,): for
    each token the index of the n-gram of the length below that ends there. Returns keys, suffixes and number
    of occurrences as in NgramCounts, (M,), and the index among them of the n-gram at each of `ends`, (K,)."""
    keys, which, raw = distinct(node[ends - 1] * V + ids[ends])
    suffix = np.empty(len(keys), np.int64)
    suffix[which] = node[ends]
    return keys, suffix, raw, which


def distinct(keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Find the distinct ones of K keys in increasing order, (M,), the index of each key among them, (K,), and
    how often each occurs, (M,). Like `np.unique`, in half the time, for keys of at least 0."""
    bits = len(keys).bit_length()
    if keys.max(initial=0) < 1 << (63 - bits):  # sorting numbers is several times as fast as argsort
        packed = np.sort(keys << bits | np.arange(len(keys)))
        order, ranked = packed & ((1 << bits) - 1), packed >> bits
    else:
        order = np.argsort(keys)
        ranked = keys[order]
    begins = np.ones(len(keys), bool)
    begins[1:] = ranked[1:] != ranked[:-1]
    which = np.empty(len(keys), np.int64)
    which[order] = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    return ranked[starts], which, np.diff(starts, append=len(keys))


def safe_log10(probs: Floats) -> Floats:
    """log10 p of each n-gram, MINUS_ALL where p is 0."""
    with np.errstate(divide="ignore"):
        return np.where(probs > 0, np.log10(probs), MINUS_ALL)


def finish_model(
    words: list[str],
    levels: list[NgramOrder],
    gammas: list[Floats],
    retained: list[NDArray[np.bool_]],
    storage: ArrayStorage = MEMORY,
) -> NgramModel:
    """Build a model from the n-grams of all orders, and set their back-offs. `levels`: all n-grams, changed
    in place; `gammas`: back-off weights, not logarithms, first of the empty context, then of the first
    contexts of each length, (C,) each; the other contexts get log10 weight 0. `retained`, `storage`: see
    `keep_ngrams`."""
    for level, gamma in zip(levels, gammas[1:], strict=False):
        level.backoff = storage.empty(len(level.keys), np.float64)
        level.backoff[len(gamma) :] = 0.0
        for rows in blocks(len(gamma)):
            with np.errstate(divide="ignore"):
                level.backoff[rows] = np.where(gamma[rows] > 0, np.log10(gamma[rows]), 0.0)
    return keep_ngrams(NgramModel(words, levels), retained, storage)


# ---- statistics --------------------------------------------------------------------------------------------
# How many n-grams a text has and how many of another text's are new: why n-gram models stop at about five
# words (van Merriënboer 2018, figure 2.1).


@dataclass
class NgramStatistics:
    """Statistics of the n-grams of one length, none across sentences; these have <s> and </s>."""

    words: int  # n
    occurrences: int
    distinct: int
    once: float  # share of the distinct n-grams that occur once
    unseen: float | None  # share of the occurrences in the other text that this text does not have


def statistics(
    sentences: Iterable[Sequence[str]], order: int, others: Sequence[Sequence[str]] = ()
) -> list[NgramStatistics]:
    """Statistics of the n-grams of 1 to `order` words of a text. `others`: sentences in which to count unseen
    n-grams. DataError for a text without words, or with <s> or </s>."""
    text = number_text(map(" ".join, sentences))
    counts = count_ngrams(text, order)
    unseen = unseen_shares(text, counts, others)
    orders = []
    for n, (level, share) in enumerate(zip(counts, unseen, strict=True), 1):
        raw = level.raw[~level.begins] if n == 1 else level.raw  # <s> alone is no word
        raw = raw[raw > 0]
        orders.append(
            NgramStatistics(
                words=n,
                occurrences=int(raw.sum()),
                distinct=len(raw),
                once=float((raw == 1).mean()) if len(raw) else 0.0,
                unseen=share,
            )
        )
    return orders


def unseen_shares(
    text: NumberedText, counts: list[NgramCounts], others: Sequence[Sequence[str]]
) -> list[float | None]:
    """Share of the n-grams in other sentences that do not occur in the text, for each n from 1. Counts
    occurrences, and n-grams with <s> or </s> too; None for an n for which there are none."""
    # Looking up n-grams needs no probabilities.
    model = NgramModel(text.words, [NgramOrder(level.keys, np.zeros(0), np.zeros(0)) for level in counts])
    flat, first, _ = model.flatten(others)
    position = np.arange(len(flat)) - first
    shares: list[float | None] = []
    for n, (level, nodes) in enumerate(zip(counts, model.nodes(flat, first), strict=True), 1):
        seen = level.raw[nodes] > 0 if n == 1 else nodes >= 0  # <unk> has a node, whether it occurs or not
        predicted = position >= max(n - 1, 1)  # <s> alone is no word
        shares.append(float((~seen[predicted]).mean()) if predicted.any() else None)
    return shares


# ---- counting by several workers ---------------------------------------------------------------------------
# The n-grams of a text, counted by several workers, in processes or on the hosts of a cluster.
#
#     cut the text into shards -> number the words of a shard -> count its n-grams, spread over buckets by a
#     hash of all words but the last -> sum each bucket -> put the buckets together
#
# Workers read and write files of a folder that all of them share (nmt/work/stages.py).

NUMBER_STAGE, COUNT_STAGE, SUM_STAGE = "number", "count", "sum"
WORDS_FILE = "words"
SHARD_WORDS = 500_000  # words of a shard
MOST_BUCKETS = 64  # at most: their number is that of the shards


class CountWorker(stages.StageWorker):
    """Worker for the stages of counting: words, shards, buckets."""

    def __init__(self, folder: Path, settings: CountSettings) -> None:
        super().__init__(folder)
        self.settings = settings

    def compute_parts(self, stage: str, number: int) -> Iterable[Part]:
        return COUNT_STAGES[stage](self, number)

    @cached_property
    def words(self) -> list[str]:
        """All words by their numbers."""
        return read_words(self.folder / WORDS_FILE)

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def buckets(self) -> int:
        return choose_buckets(stages.count_shards(self.folder))


def choose_buckets(shards: int) -> int:
    """Choose the number of buckets for a number of shards."""
    return max(1, min(MOST_BUCKETS, shards))


def read_words(path: Path) -> list[str]:
    """Read a file of numbered words, and put <unk>, <s> and </s>, which are not in it, before them."""
    text = stages.read_part(path, 0).decode()
    return [*SYMBOLS, *(text.split("\n") if text else [])]


# ---- the stages --------------------------------------------------------------------------------------------


def number_shard(worker: CountWorker, task: int) -> Iterable[Part]:
    """Number the words of a shard in order of appearance; returns the words, and the text as numbers."""
    shard = stages.read_shard(worker.folder, task)
    text = number_words((line for (line,) in shard.rows), worker.settings.skip_symbols, shard.first)
    return ["\n".join(text.words[len(SYMBOLS) :]).encode(), text.ids.astype(np.int64)]


def count_shard(worker: CountWorker, task: int) -> Iterable[Part]:
    """Count a shard. Returns for each bucket the n-grams of each length from 2 on, with their counts; then
    the words with their counts."""
    path = task_file(worker.folder, NUMBER_STAGE, task)
    shard_ids = np.array([worker.numbers[word] for word in read_words(path)], np.int32)
    ids = shard_ids[arrays.read_rows(path, 1, 1)[:, 0].astype(np.int64)]
    levels = count_ngrams(NumberedText(worker.words, ids), worker.settings.order)
    V = len(worker.words)
    ngrams = np.arange(V, dtype=np.uint64)[:, None]  # word ids of the n-grams of a level: (M, n)
    spread: list[list[UINT]] = []
    for level in levels[1:]:
        last = (level.keys % V).astype(np.uint64)
        ngrams = np.hstack([ngrams[level.parents], last[:, None]])
        bucket_of = arrays.hash_buckets(ngrams[:, :-1], worker.buckets)
        rows = np.hstack([ngrams, level.raw.astype(np.uint64)[:, None]])
        spread.append(arrays.split_buckets(rows, bucket_of, worker.buckets))
    seen = np.flatnonzero(levels[0].raw)
    singles = np.stack([seen, levels[0].raw[seen]], 1)
    return [*(rows for bucket in zip(*spread, strict=True) for rows in bucket), singles]


def sum_bucket(worker: CountWorker, task: int) -> Iterable[Part]:
    """Sum a bucket over all shards; returns rows of word ids and count, (M, n + 1), for each length n > 1."""
    sums: list[Part] = []
    shards = range(stages.count_shards(worker.folder))
    paths = [task_file(worker.folder, COUNT_STAGE, shard) for shard in shards]
    for level, n in enumerate(range(2, worker.settings.order + 1)):
        part = task * (worker.settings.order - 1) + level
        rows = np.concatenate([arrays.read_rows(path, part, n + 1) for path in paths])
        rows = rows[arrays.sorted_order(rows, n)]
        starts = arrays.group_starts(rows, n)
        sums.append(np.hstack([rows[starts, :n], np.add.reduceat(rows[:, n:], starts, 0)]))
    return sums


COUNT_STAGES: dict[str, Callable[[CountWorker, int], Iterable[Part]]] = {
    NUMBER_STAGE: number_shard,
    COUNT_STAGE: count_shard,
    SUM_STAGE: sum_bucket,
}


# ---- from the text to the counts ---------------------------------------------------------------------------


def count_text(
    path: str,
    settings: CountSettings,
    executor: ExecutorConfig,
    shared: SharedFolder,
    words: int = SHARD_WORDS,
) -> Counts:
    """Count the words of a text and its n-grams of every length by several workers; returns the words by
    their ids, and the counts of each length. `words`: words of a shard. DataError for a text without words,
    or with reserved symbols; also raises the errors of the executor, and of `stages.lock_shared`."""
    folder = shared.folder
    made_from: dict[str, object] = {"text": manifest.digest(path), "order": settings.order, "words": words}
    made_from |= {"skip_symbols": settings.skip_symbols, **executor.recorded()}
    with stages.lock_shared(shared, made_from):
        names = stages.cut_shards(folder, (path,), words)
        worker = CountWorker(folder, settings)
        with executors.make(worker, partial(stages.begin_worker, worker), executor) as running:
            list(stages.run_stage(running, NUMBER_STAGE, names))
            vocabulary = number_all(folder, len(names))
            list(stages.run_stage(running, COUNT_STAGE, names))
            buckets = choose_buckets(len(names))
            what = [f"bucket {number + 1} of {buckets}" for number in range(buckets)]
            list(stages.run_stage(running, SUM_STAGE, what))
        return vocabulary, join_buckets(folder, len(names), settings.order, len(vocabulary))


def number_all(folder: Path, tasks: int) -> list[str]:
    """Number the words of all shards: first SYMBOLS, then the others in order of appearance. Writes the
    others to the folder, for the workers; returns the whole vocabulary, by id. `tasks`: number of shards.
    DataError for a text without words."""
    numbers = {word: number for number, word in enumerate(SYMBOLS)}
    unknown = False
    for task in range(tasks):
        path = task_file(folder, NUMBER_STAGE, task)
        for word in read_words(path):
            numbers.setdefault(word, len(numbers))
        unknown = unknown or bool((arrays.read_rows(path, 1, 1) == 0).any())
    vocabulary = list(numbers)
    check_words(vocabulary, unknown)
    text = "\n".join(vocabulary[len(SYMBOLS) :]).encode()
    stages.ensure_file(folder / WORDS_FILE, lambda: [text])
    return vocabulary


def join_buckets(folder: Path, tasks: int, order: int, V: int) -> list[NgramCounts]:
    """Merge all buckets, in order of their keys. `tasks`: number of shards; `V`: number of words."""
    raw = np.zeros(V, np.int64)
    buckets = choose_buckets(tasks)
    for task in range(tasks):
        singles = arrays.read_rows(task_file(folder, COUNT_STAGE, task), buckets * (order - 1), 2)
        words, counts = singles.astype(np.int64).T
        raw[words] += counts
    levels = [unigram_counts(raw)]
    for level, n in enumerate(range(2, order + 1)):
        paths = [task_file(folder, SUM_STAGE, bucket) for bucket in range(buckets)]
        rows = np.concatenate([arrays.read_rows(path, level, n + 1) for path in paths]).astype(np.int64)
        keys = level_nodes(levels, rows[:, : n - 1]) * V + rows[:, n - 1]
        ranks = np.argsort(keys)
        keys, rows = keys[ranks], rows[ranks]
        begins = levels[-1].begins[keys // V]
        levels.append(NgramCounts(keys, rows[:, n].copy(), level_nodes(levels, rows[:, 1:n]), begins, V))
    return levels


def level_nodes(levels: list[NgramCounts], ngrams: Int64s) -> Int64s:
    """Index of each n-gram in its level, from its word ids: (M, n) -> (M,). All must be in `levels`."""
    nodes = ngrams[:, 0]
    for level, column in zip(levels[1:], ngrams.T[1:], strict=False):
        nodes = np.searchsorted(level.keys, nodes * level.vocab_size + column)
    return nodes
