"""The training text as words: tokenized once, by one process or several, and kept in a file without a name,
which is gone with the process."""

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TypeVar

from nmt import files
from nmt.data.listed import ListedText
from nmt.jobs.lines import convert
from nmt.progress import Progress
from nmt.text.pipeline import TextPipeline
from nmt.text.tokenize import Tokenizer, TokenizerSettings

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
            weakref.finalize(self, close, file)
            rows = convert(splitting.begin, self.rows(), self.workers)
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


def close(file: IO[bytes]) -> None:
    """Give a temporary file up: what it could not take on a full disk has been reported already."""
    with suppress(OSError):
        file.close()
