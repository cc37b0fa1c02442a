"""Counts the n-grams of a text that is larger than memory, by sorted runs on disk.

The text is cut into chunks of whole sentences. For each length, the n-grams of a chunk are counted in memory
and written as a run, sorted by key. Runs are merged by ranges of keys, and each gets the rows of its n-grams
among those of the whole text, from which the keys of the next longer n-grams are made. Files are read and
written from the beginning to the end. The counts are those of `count_ngrams`.

N tokens of a chunk, V words.
"""

import logging
import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nmt.io import files
from nmt.io.locks import WorkFolders
from nmt.io.mapped import ArrayStorage
from nmt.ngram.counting import (
    Counts,
    CountSettings,
    GrowingVocabulary,
    NgramCounts,
    check_words,
    distinct,
    distinct_ngrams,
    number_blocks,
    sentence_positions,
    unigram_counts,
)  # fmt: skip
from nmt.ngram.text_scorer import Ints

log = logging.getLogger(__name__)

BYTES_PER_NGRAM = 60  # of memory, for each word and order, where a text is counted in memory
BYTES_PER_ROW = 160  # of memory, for a token of a chunk, or an n-gram of a range
LEAST_ROWS = 100_000  # of a chunk: smaller ones save little memory
WORK = WorkFolders("nmt-ngram", r"chunk-.*|[0-9]+-grams\..*")
Kind = TypeVar("Kind", bound=np.generic)
SAMPLES = 8  # sampled keys of a run that fall into a range, on average


@dataclass(frozen=True)
class Chunk:
    """The files of a part of the text, each with one array.

    The text: `ids` (N,), its words. The n-grams of one length: `which`, the index in the run of the n-gram
    that ends at each token, for the tokens at which one ends; the sorted run, `keys`, `raw` and `suffix` (see
    NgramCounts); and `rows`, the index of each n-gram of the run among those of the whole text.
    """

    prefix: str  # of the paths

    def path(self, name: str) -> Path:
        return Path(f"{self.prefix}.{name}")

    def write(self, name: str, values: NDArray[np.generic]) -> None:
        self.path(name).write_bytes(values.data)

    def read(self, name: str, kind: type[np.generic] = np.int64) -> Ints:
        """Read a whole array of type `kind`, and convert it to 64-bit integers."""
        return np.fromfile(self.path(name), kind).astype(np.int64, copy=False)

    def read_rows(self, name: str, rows: slice) -> Ints:
        """Read a part of an array of the run; a mapped file would count as memory of this process."""
        return np.fromfile(self.path(name), np.int64, rows.stop - rows.start, offset=8 * rows.start)


def memory_to_count(path: str, order: int) -> float:
    """Estimate how many bytes of memory it takes to count the n-grams of a text in memory; 0 for stdin."""
    words = text_size(path) / 5  # a word and its blank: 5 bytes or more
    return words * order * BYTES_PER_NGRAM


def text_size(path: str) -> float:
    """Estimate the size of a text in bytes: four times that of a compressed file; 0 for stdin."""
    if path == "-":
        return 0.0
    files.existing([path])
    return os.path.getsize(path) * (4 if path.endswith(".gz") else 1)


def rows_in_memory(memory: float) -> int:
    """The number of tokens of a chunk, and of n-grams that are merged together, for `memory` bytes."""
    return max(LEAST_ROWS, int(memory / BYTES_PER_ROW))


def count_within(
    memory: float, lines: Iterable[str], settings: CountSettings, output: str | Path, stack: ExitStack
) -> tuple[Counts, ArrayStorage]:
    """Count as `count_on_disk` does, with `memory` bytes, in a folder beside the output that `stack` removes,
    and log where. Returns the counts, and the storage in that folder for estimating a model. UserError that
    names the output if the disk is full."""
    folder = stack.enter_context(WORK.make(str(output)))
    with files.naming_unwritten(output):
        log.info("counting on disk with %.1f GB of memory (--memory): %s", memory / 1e9, folder)
        return count_on_disk(lines, settings, folder, rows_in_memory(memory)), ArrayStorage(folder)


def count_on_disk(lines: Iterable[str], settings: CountSettings, folder: Path, rows: int) -> Counts:
    """Count the words of a text and its n-grams of every length, like `count_lines`, with the same errors.
    OSError if the disk is full.

    Writes to an existing, empty folder, about 40 bytes for each token and n-gram. The counts of two words and
    more are mapped from its files, which must stay as long as the counts are used.
    """
    words, chunks = write_chunks(lines, settings.skip_symbols, folder, rows)
    V, raw = len(words), np.zeros(len(words), np.int64)
    for chunk in chunks:
        raw += np.bincount(chunk.read("ids", np.int32), minlength=V)
    check_words(words, bool(raw[0]))
    levels = [unigram_counts(raw)]
    for n in range(2, settings.order + 1):
        for chunk in chunks:
            write_run(chunk, n, V)
        levels.append(merge_runs(chunks, folder / f"{n}-grams", levels[-1], rows))
    return words, levels


def write_chunks(
    lines: Iterable[str], skip_symbols: bool, folder: Path, rows: int
) -> tuple[list[str], list[Chunk]]:
    """Cut a text into chunks of `rows` tokens, and write their words as ids. Returns the words by their ids,
    and the chunks."""
    numbers, chunks, blocks, size = GrowingVocabulary(), list[Chunk](), list[NDArray[np.int32]](), 0

    def finish_chunk() -> None:
        chunks.append(Chunk(str(folder / f"chunk-{len(chunks)}")))
        chunks[-1].write("ids", np.concatenate(blocks))
        blocks.clear()

    for block in number_blocks(lines, skip_symbols, numbers):
        blocks.append(block)
        size += len(block)
        if size >= rows:
            finish_chunk()
            size = 0
    if blocks:
        finish_chunk()
    return numbers.words, chunks


def write_run(chunk: Chunk, n: int, V: int) -> None:
    """Count the n-grams of length n in a chunk and write its run. For n > 2, the files `which` and `rows`
    must be those of length n - 1. `V`: number of words."""
    ids = chunk.read("ids", np.int32)
    position = sentence_positions(ids)
    node = ids
    if n > 2:
        node = np.full(len(ids), -1, np.int64)
        node[position >= n - 2] = chunk.read("rows")[chunk.read("which", np.int32)]
    ends = np.flatnonzero(position >= n - 1)
    keys, suffix, raw, which = distinct_ngrams(ids, node, ends, V)
    for name, values in (("keys", keys), ("raw", raw), ("suffix", suffix), ("which", which.astype(np.int32))):
        chunk.write(name, values)


def merge_runs(chunks: list[Chunk], path: Path, below: NgramCounts, rows: int) -> NgramCounts:
    """Sum the runs of all chunks, about `rows` n-grams at a time, and write each chunk's file `rows`. `path`:
    the beginning of the names of the files that the counts are mapped from; `below`: the next shorter
    n-grams."""
    samples_of_range = SAMPLES * len(chunks)
    step = max(1, rows // samples_of_range)
    samples = np.sort(np.concatenate([map_file(chunk.path("keys"), np.int64)[::step] for chunk in chunks]))
    bounds = np.unique(samples[samples_of_range::samples_of_range])
    cuts = []
    for chunk in chunks:
        keys = map_file(chunk.path("keys"), np.int64)
        cuts.append([0, *np.searchsorted(keys, bounds).tolist(), len(keys)])
    V, first = below.vocab_size, 0
    with ExitStack() as stack:
        merged = {
            name: stack.enter_context(open(f"{path}.{name}", "wb"))
            for name in ("keys", "raw", "suffix", "begins")
        }
        row_files = [stack.enter_context(chunk.path("rows").open("wb")) for chunk in chunks]
        for number in range(len(bounds) + 1):
            parts = [slice(cut[number], cut[number + 1]) for cut in cuts]
            keys, raw, suffix = (
                np.concatenate(
                    [chunk.read_rows(name, part) for chunk, part in zip(chunks, parts, strict=True)]
                )
                for name in ("keys", "raw", "suffix")
            )
            keys, which, _ = distinct(keys)
            suffix_of = np.empty(len(keys), np.int64)
            suffix_of[which] = suffix
            counts = np.bincount(which, raw, len(keys)).astype(np.int64)
            arrays = {"keys": keys, "raw": counts, "suffix": suffix_of, "begins": below.begins[keys // V]}
            for name, values in arrays.items():
                merged[name].write(values.data)
            sizes = [part.stop - part.start for part in parts]
            part_rows = np.split(first + which, np.cumsum(sizes)[:-1])
            for stream, values in zip(row_files, part_rows, strict=True):
                stream.write(values.data)
            first += len(keys)
    keys, raw, suffix = (map_file(Path(f"{path}.{name}"), np.int64) for name in ("keys", "raw", "suffix"))
    begins = map_file(Path(f"{path}.begins"), np.bool_)
    return NgramCounts(keys=keys, raw=raw, suffix=suffix, begins=begins, vocab_size=V)


def map_file(path: Path, kind: type[Kind]) -> NDArray[Kind]:
    """Map a file of one array into memory."""
    if not path.stat().st_size:  # cannot be mapped
        return np.zeros(0, kind)
    return np.asarray(np.memmap(path, kind, "r"))
