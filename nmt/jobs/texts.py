"""Lines in, lines out: a text in chunks, computed by an executor, for one output or several.

    chunks -> executor -> the lines of each output, in order

Where there is a job folder, the lines of finished chunks are kept there, and a job that was killed continues
after them, with the same bytes.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from nmt.errors import DataError
from nmt.jobs.executors import Executor
from nmt.jobs.lost import Lost, LostLines
from nmt.jobs.records import Records

Task_co = TypeVar("Task_co", covariant=True)
Task = TypeVar("Task")

Lines = list[list[str]]  # of each output; a chunk may add any number of lines to it


@dataclass(frozen=True)
class Chunk(Generic[Task_co]):
    """Lines that are computed together."""

    first: int  # number of the first one in the input, from 0
    count: int
    task: Task_co


@dataclass(frozen=True)
class Done:
    """A finished chunk."""

    count: int  # lines of the input
    outputs: Lines
    before: bool  # was it finished by an earlier start?


def compute(
    chunks: Iterable[Chunk[Task]], executor: Executor[Task, Lines], name: str, kept: Records | None = None
) -> Iterator[Done]:
    """The finished chunks, in order; as many are drawn as keep the executor busy. `name`: of the input, for
    messages; `kept`: results of earlier starts, and of this one.

    UserError that names the lines of chunks that were lost: at once, or with `kept` after all others have
    been computed."""
    lost = LostLines()
    waiting: deque[tuple[int, int, int]] = deque()  # number of a chunk, its first line, its lines

    def tasks() -> Iterator[Task]:
        for number, chunk in enumerate(chunks):
            waiting.append((number, chunk.first, chunk.count))
            if kept is None or number not in kept:
                yield chunk.task

    def finished() -> Iterator[Done]:
        """What earlier starts have done of the next chunks."""
        while kept is not None and waiting and waiting[0][0] in kept:
            number, _, count = waiting.popleft()
            yield Done(count, read(kept, number), before=True)

    for found in executor.map(tasks()):
        yield from finished()
        number, first, count = waiting.popleft()
        if isinstance(found, Lost):
            lost.add(first + 1, first + count, found)
            if kept is None:
                lost.check(name, "write to a file, not to a stream, and --resume computes only these")
            continue
        if kept is not None:
            kept.add(number, json.dumps(found, ensure_ascii=False).encode())
        yield Done(count, found, before=False)
    yield from finished()
    lost.check(name, "the others are kept, --resume computes only these")


def read(kept: Records, number: int) -> Lines:
    """The lines of a finished chunk. DataError for a file that has changed meanwhile."""
    try:
        found: Lines = json.loads(kept.read(number))
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{kept.path}: damaged; --resume again, or remove {kept.path.parent} to start over"
        ) from error
    return found
