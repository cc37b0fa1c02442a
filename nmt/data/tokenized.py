"""The training text as words: tokenized once, by one process or several, and kept in a file without a name,
which is gone with the process."""

import logging
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import compress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TypeVar

import numpy as np
from numpy.typing import NDArray

from nmt.data.corpus import CorpusConfig, FilterConfig
from nmt.errors import DataError
from nmt.io import files
from nmt.io.manifest import digest64
from nmt.io.progress import Progress
from nmt.text.clean import CleanConfig, reason_against
from nmt.text.pipeline import TextPipeline
from nmt.text.tokenize import Tokenizer, TokenizerSettings
from nmt.work.executors import convert_lines

# ---- duplicate lines ---------------------------------------------------------------------------------------
# Lines that occurred before, found in bounded memory: digests are in a file without a name.


DIGEST_BUCKET = 1 << 19  # digests sorted at a time
DIGEST_BLOCK = 1 << 18  # digests read at a time


class Digests:
    """64-bit digests of lines, in order."""

    def __init__(self) -> None:
        self.file = TemporaryFile()
        self.count = 0

    def add(self, line: str) -> None:
        """Append a line."""
        self.file.write(digest64(line.encode()))
        self.count += 1

    def repeated(self, bucket: int = DIGEST_BUCKET) -> Iterator[NDArray[np.int64]]:
        """The numbers, from 0, of all lines that occurred before; then the file is closed."""
        buckets = -(-self.count // bucket)
        for number in range(buckets):
            found = [
                (keys[mask], first + np.flatnonzero(mask))
                for first, keys in self.blocks()
                if (mask := keys % buckets == number).any()
            ]
            if found:
                keys, rows = map(np.concatenate, zip(*found, strict=True))
                order = np.argsort(keys, kind="stable")  # the first of equal ones stays the first
                again = np.flatnonzero(np.diff(keys[order]) == 0) + 1
                yield rows[order[again]]
        self.file.close()

    def blocks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """The digests, many at a time, and the number of the first of each block."""
        self.file.seek(0)
        for first in range(0, self.count, DIGEST_BLOCK):
            yield first, np.frombuffer(self.file.read(8 * DIGEST_BLOCK), np.uint64)


# ---- text of several corpora -------------------------------------------------------------------------------
# The text of several corpora, without the lines that their filters drop.


log = logging.getLogger(__name__)


class ListedText:
    """The pairs of lines of corpora, one corpus after the other. A filter is applied once; what it keeps is a
    byte a line in memory."""

    def __init__(self, corpora: Sequence[CorpusConfig]) -> None:
        self.corpora = corpora

    @cached_property
    def kept(self) -> list[bytearray | None]:
        """Of each corpus: for each line, is it used? None: all are. DataError where none is."""
        return [kept_lines(corpus) if corpus.filters.active else None for corpus in self.corpora]

    @cached_property
    def sizes(self) -> list[int]:
        """The number of lines of each corpus that are used."""
        return [
            files.number_of_lines(corpus.source) if kept is None else kept.count(1)
            for corpus, kept in zip(self.corpora, self.kept, strict=True)
        ]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The lines of both sides."""
        for corpus, kept in zip(self.corpora, self.kept, strict=True):
            rows = files.parallel(corpus.source, corpus.target)
            yield from rows if kept is None else compress(rows, kept)


def kept_lines(corpus: CorpusConfig) -> bytearray:
    """1 for each line that the filters of a corpus keep, else 0; what they drop is logged."""
    config, kept, reasons = corpus.filters, bytearray(), Counter[str]()
    limits = clean_config(config)
    seen = Digests() if config.drop_duplicates else None
    for source, target in files.parallel(corpus.source, corpus.target):
        reason = reason_against(source, target, limits)
        if not reason and config.drop_copies and source.strip(" \t") == target.strip(" \t"):
            reason = "copy"
        if reason:
            reasons[reason] += 1
        if seen:
            seen.add(f"{source}\n{target}")
        kept.append(not reason)
    for rows in seen.repeated() if seen else ():
        flags = np.frombuffer(kept, np.uint8)
        reasons["duplicate"] += int(flags[rows].sum())
        flags[rows] = 0
    told = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()) if count)
    log.info("corpus %s: %s lines, dropped: %s", corpus.title, f"{len(kept):,}", told or "none")
    if not any(kept):
        raise DataError(f"{corpus.source}: the filters of data.corpora drop every line ({told})")
    return kept


def clean_config(config: FilterConfig) -> CleanConfig:
    """The limits of a filter as nmt-clean has them."""
    return CleanConfig(
        min_length=config.min_length,
        max_length=config.max_length or sys.maxsize,
        ratio=config.max_ratio,
        keep_duplicates=True,
    )


# ---- tokenized ---------------------------------------------------------------------------------------------


Item = TypeVar("Item")
Row = tuple[list[str], ...]  # the words of a line of each text


@dataclass(frozen=True)
class Splitting:
    """How the lines of each text are tokenized, in any process."""

    sides: tuple[TokenizerSettings, ...]

    def begin(self) -> Callable[[Sequence[tuple[str, ...]]], list[tuple[str, ...]]]:
        """What makes words between blanks of rows of lines."""
        tokenizers = [Tokenizer(*settings) for settings in self.sides]
        return lambda rows: [
            tuple(" ".join(one.split(line)) for one, line in zip(tokenizers, row, strict=True))
            for row in rows
        ]


class TokenizedText:
    """One text, or two line by line. It is read and tokenized the first time that somebody asks for its
    words; afterwards they come from the file. One reader at a time."""

    def __init__(
        self,
        paths: Sequence[str],
        workers: int = 1,
        folder: Path | None = None,
        show_bar: bool = False,
        listed: ListedText | None = None,
    ) -> None:
        """`folder`, if it exists, takes the file, which has no name; `workers`: processes that tokenize.
        `listed`: several corpora, instead of the lines of `paths`."""
        self.workers, self.show_bar, self.listed = workers, show_bar, listed
        self.rows = listed.rows if listed else partial(files.parallel, *paths)
        # whose lines are counted
        self.counting = [corpus.source for corpus in listed.corpora] if listed else paths[:1]
        self.folder = folder if folder and folder.is_dir() else None
        self.splitting: Splitting | None = None  # of the words in the file
        self.file: IO[bytes] | None = None

    def words(self, *pipelines: TextPipeline) -> Iterator[Row]:
        """`pipeline.words(line)` of each line. DataError for files of unequal length, and for bad text."""
        for row in self.split(*pipelines):
            yield tuple(pipeline.settle(words) for pipeline, words in zip(pipelines, row, strict=True))

    def split(self, *pipelines: TextPipeline) -> Iterator[Row]:
        """`pipeline.tokenizer.split(line)` of each line: words whose case is not learned yet."""
        splitting = Splitting(tuple(pipeline.tokenizer.settings for pipeline in pipelines))
        rows = self.kept() if splitting == self.splitting else self.made(splitting)
        for row in rows:
            yield tuple(line.split(" ") if line else [] for line in row)

    def made(self, splitting: Splitting) -> Iterator[tuple[str, ...]]:
        """The rows, which are kept once all of them have been asked for."""
        self.splitting = None
        try:
            file = TemporaryFile(dir=self.folder)
            weakref.finalize(self, close_file, file)
            rows = convert_lines(splitting.begin, self.rows(), self.workers)
            for row in self.counted(rows, "lines", "tokenizing"):
                file.write(("\n".join(row) + "\n").encode())
                yield row
            file.flush()
        except OSError as error:
            raise files.cannot_write(self.folder or "temporary file", error) from error
        self.file, self.splitting = file, splitting

    def kept(self) -> Iterator[tuple[str, ...]]:
        """The rows again."""
        assert self.file and self.splitting
        self.file.seek(0)
        lines = (line[:-1].decode() for line in self.file)
        yield from zip(*[lines] * len(self.splitting.sides), strict=True)

    def counted(self, items: Iterable[Item], unit: str, title: str) -> Iterator[Item]:
        """The items, of which each stands for a line of the text, with their progress."""
        total = partial(files.number_of_lines, *self.counting)
        with Progress(total, unit, self.show_bar, title) as progress:
            yield from progress.over(items)


def close_file(file: IO[bytes]) -> None:
    """Give a temporary file up: what it could not take on a full disk has been reported already."""
    with suppress(OSError):
        file.close()
