"""The training text as words: tokenized once, by one or more processes, and stored in an anonymous temporary
file."""

import logging
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import compress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TypeVar

import numpy as np
from numpy.typing import NDArray

from nmt.data.corpus import CorpusConfig
from nmt.errors import DataError
from nmt.io import files
from nmt.io.manifest import digest64
from nmt.io.progress import Progress
from nmt.text.clean import CleanConfig, reason_against
from nmt.text.pipeline import TextPipeline
from nmt.text.tokenize import Tokenizer, TokenizerSettings
from nmt.work.executors import convert_lines

log = logging.getLogger(__name__)

# ---- duplicate lines ---------------------------------------------------------------------------------------
# Duplicate lines are detected in bounded memory: their digests are stored in an anonymous temporary file.

DIGEST_BUCKET = 1 << 19  # digests sorted at a time
DIGEST_BLOCK = 1 << 18  # digests read at a time


class Digests:
    """64-bit digests of lines, in order, in a temporary file. OSError if it cannot be written."""

    def __init__(self) -> None:
        self.file = TemporaryFile()
        self.count = 0

    def add(self, line: str) -> None:
        """Append the digest of a line."""
        self.file.write(digest64(line.encode()))
        self.count += 1

    def find_repeats(self, bucket: int = DIGEST_BUCKET) -> Iterator[NDArray[np.int64]]:
        """Yield arrays with the indices of all lines that repeat an earlier line, in no particular order;
        then close the file. `bucket`: average number of digests sorted at a time."""
        buckets = -(-self.count // bucket)
        for number in range(buckets):
            parts = [
                (keys[mask], first + np.flatnonzero(mask))
                for first, keys in self.blocks()
                if (mask := keys % buckets == number).any()
            ]
            if parts:
                keys, rows = map(np.concatenate, zip(*parts, strict=True))
                order = np.argsort(keys, kind="stable")  # the first of equal ones stays the first
                again = np.flatnonzero(np.diff(keys[order]) == 0) + 1
                yield rows[order[again]]
        self.file.close()

    def blocks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """Yield (index of the first line, digests) of each block of lines."""
        self.file.seek(0)
        for first in range(0, self.count, DIGEST_BLOCK):
            yield first, np.frombuffer(self.file.read(8 * DIGEST_BLOCK), np.uint64)


# ---- text of several corpora -------------------------------------------------------------------------------


class ListedText:
    """The pairs of lines of several corpora, one corpus after the other, without those that filters drop.
    Filters are applied once; their result takes one byte of memory per line."""

    def __init__(self, corpora: Sequence[CorpusConfig]) -> None:
        self.corpora = corpora

    @cached_property
    def flags(self) -> list[bytearray | None]:
        """For each corpus one flag per line, 1 if it is used; None if all lines are. Reads the text the first
        time; errors as from `filter_lines`."""
        return [filter_lines(corpus) if corpus.filters.active else None for corpus in self.corpora]

    @cached_property
    def sizes(self) -> list[int]:
        """Number of lines of each corpus that are used."""
        return [
            files.number_of_lines(corpus.source) if used is None else used.count(1)
            for corpus, used in zip(self.corpora, self.flags, strict=True)
        ]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the lines of both sides of each pair that is used. DataError as from `files.parallel` and
        `filter_lines`."""
        for corpus, used in zip(self.corpora, self.flags, strict=True):
            rows = files.parallel(corpus.source, corpus.target)
            yield from rows if used is None else compress(rows, used)


@files.naming_unwritten("temporary file")
def filter_lines(corpus: CorpusConfig) -> bytearray:
    """Apply the filters of a corpus: 1 for each line that is kept, else 0. Logs the reasons for dropped
    lines. DataError if no line is left, and as from `files.parallel`; UserError if the temporary file of
    `Digests` cannot be written."""
    config, used, reasons = corpus.filters, bytearray(), Counter[str]()
    limits = CleanConfig(
        min_length=config.min_length,
        max_length=config.max_length or sys.maxsize,
        ratio=config.max_ratio,
        keep_duplicates=True,
    )
    seen = Digests() if config.drop_duplicates else None
    for source, target in files.parallel(corpus.source, corpus.target):
        reason = reason_against(source, target, limits)
        if not reason and config.drop_copies and source.strip(" \t") == target.strip(" \t"):
            reason = "copy"
        if reason:
            reasons[reason] += 1
        if seen:
            seen.add(f"{source}\n{target}")
        used.append(not reason)
    for rows in seen.find_repeats() if seen else ():
        flags = np.frombuffer(used, np.uint8)
        reasons["duplicate"] += int(flags[rows].sum())
        flags[rows] = 0
    summary = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()) if count)
    log.info("corpus %s: %s lines, dropped: %s", corpus.title, f"{len(used):,}", summary or "none")
    if not any(used):
        raise DataError(f"{corpus.source}: the filters of data.corpora drop every line ({summary})")
    return used


# ---- tokenized text ----------------------------------------------------------------------------------------

Item = TypeVar("Item")
Row = tuple[list[str], ...]  # the words of a line of each text


def make_tokenizer(
    sides: Sequence[TokenizerSettings],
) -> Callable[[Sequence[tuple[str, ...]]], list[tuple[str, ...]]]:
    """Create the function that tokenizes rows, each with a line of every text; the words are joined with
    blanks. `sides`: the settings of the tokenizer of each text."""
    tokenizers = [Tokenizer(*settings) for settings in sides]
    return lambda rows: [
        tuple(" ".join(tokenizer.split(line)) for tokenizer, line in zip(tokenizers, row, strict=True))
        for row in rows
    ]


class TokenizedText:
    """One text, or two parallel texts. The text is tokenized when its words are first read; later reads with
    the same tokenizers use a temporary file. Supports only one reader at a time."""

    def __init__(
        self,
        paths: Sequence[str],
        workers: int = 1,
        folder: Path | None = None,
        show_bar: bool = False,
        listed: ListedText | None = None,
    ) -> None:
        """`paths`: one text, or two parallel texts. `workers`: number of tokenizing processes. `folder`:
        where the temporary file is written, if the folder exists. `show_bar`: show the progress. `listed`:
        several corpora, read instead of `paths`."""
        self.workers, self.show_bar, self.listed = workers, show_bar, listed
        self.rows = listed.rows if listed else partial(files.parallel, *paths)
        self.counted_files = [corpus.source for corpus in listed.corpora] if listed else paths[:1]
        self.folder = folder if folder and folder.is_dir() else None
        self.splitting: Sequence[TokenizerSettings] = ()  # of each text of the words in the file
        self.file: IO[bytes] | None = None

    def words(self, *pipelines: TextPipeline) -> Iterator[Row]:
        """Yield `pipeline.words(line)` of each line. DataError for unequal lengths of files and bad text."""
        for row in self.split(*pipelines):
            yield tuple(pipeline.finish_words(words) for pipeline, words in zip(pipelines, row, strict=True))

    def split(self, *pipelines: TextPipeline) -> Iterator[Row]:
        """Yield `pipeline.tokenizer.split(line)` of each line: words before truecasing. Errors as from
        `words` and `tokenize`."""
        splitting = [pipeline.tokenizer.settings for pipeline in pipelines]
        rows = self.read_stored() if splitting == self.splitting else self.tokenize(splitting)
        for row in rows:
            yield tuple(line.split(" ") if line else [] for line in row)

    def tokenize(self, splitting: Sequence[TokenizerSettings]) -> Iterator[tuple[str, ...]]:
        """Yield the tokenized rows, and store them if the caller reads all of them. UserError if the
        temporary file cannot be written."""
        self.splitting = ()
        try:
            file = TemporaryFile(dir=self.folder)
            weakref.finalize(self, close_file, file)
            rows = convert_lines(partial(make_tokenizer, splitting), self.rows(), self.workers)
            for row in self.show_progress(rows, "lines", "tokenizing"):
                file.write(("\n".join(row) + "\n").encode())
                yield row
            file.flush()
        except OSError as error:
            raise files.cannot_write(self.folder or "temporary file", error) from error
        self.file, self.splitting = file, splitting

    def read_stored(self) -> Iterator[tuple[str, ...]]:
        """Yield the rows from the temporary file."""
        assert self.file
        self.file.seek(0)
        lines = (line[:-1].decode() for line in self.file)
        yield from zip(*[lines] * len(self.splitting), strict=True)

    def show_progress(self, items: Iterable[Item], unit: str, title: str) -> Iterator[Item]:
        """Yield items, one for each line of the text, and show the progress. `unit`: what an item is;
        `title`: what is being done."""
        total = partial(files.number_of_lines, *self.counted_files)
        with Progress(total, unit, self.show_bar, title) as progress:
            yield from progress.over(items)


def close_file(file: IO[bytes]) -> None:
    """Close a temporary file. Ignores a full disk, which has been reported already."""
    with suppress(OSError):
        file.close()
