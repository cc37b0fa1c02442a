"""Parallel texts in shards: files of some lines of each text, in the folder of a job (nmt/jobs/stages.py).

FOLDER/text/00000     the lines of each text, then the number of the first one
FOLDER/shards         how many shards there are
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt import files
from nmt.jobs import parts, stages

STAGE, COUNT = "text", "shards"


@dataclass(frozen=True)
class Shard:
    """Lines of a parallel text."""

    first: int  # number of the first line, from 1
    rows: list[tuple[str, ...]]  # the lines of all texts, side by side

    def lines(self, name: str) -> str:
        """What messages call it."""
        return f"{name}: lines {self.first}-{self.first + len(self.rows) - 1}"


def cut(folder: Path, paths: Sequence[str], words: int) -> list[str]:
    """Write shards of about this many words, which the first two texts have together; returns what messages
    call them. DataError for texts of unequal length."""
    names: list[str] = []
    rows: list[tuple[str, ...]] = []
    first = held = 0

    def finish() -> None:
        shard = Shard(first + 1, rows)
        columns = ["\n".join(column).encode() for column in zip(*rows, strict=True)]
        stages.finish(stages.place(folder, STAGE, len(names)), lambda: [*columns, str(shard.first).encode()])
        names.append(shard.lines(paths[0]))

    for number, row in enumerate(files.parallel(*paths), 1):
        rows.append(row)
        held += sum(text.count(" ") + 1 for text in row[:2])
        if held >= words:
            finish()
            first, rows, held = number, [], 0
    if rows:
        finish()
    stages.finish(folder / COUNT, lambda: [str(len(names)).encode()])
    return names


def count(folder: Path) -> int:
    """The number of shards."""
    return int(parts.read(folder / COUNT, 0))


def read(folder: Path, number: int) -> Shard:
    """A shard. Damaged where it is not what was cut."""
    path = stages.place(folder, STAGE, number)
    *columns, first = (parts.read(path, part).decode() for part in range(parts.count(path)))
    return Shard(int(first), list(zip(*(column.split("\n") for column in columns), strict=True)))


def read_all(folder: Path) -> Iterator[tuple[str, ...]]:
    """The lines of all shards, side by side."""
    for number in range(count(folder)):
        yield from read(folder, number).rows
