"""Jobs that convert lines to lines: a text is cut into chunks, and an executor computes the lines that each
chunk adds to one or more outputs, in order.

With a job folder, the lines of finished chunks are recorded there, and a killed job continues after them,
with byte-identical output.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from nmt.errors import DataError
from nmt.work.executors import Executor, Lost, LostLines
from nmt.work.store import ChunkRecords

Task_co = TypeVar("Task_co", covariant=True)
Task = TypeVar("Task")

Lines = list[list[str]]  # the lines that a chunk adds to each output, any number of them


@dataclass(frozen=True)
class TextChunk(Generic[Task_co]):
    """Lines that are computed together."""

    first: int  # index of the first line in the input, from 0
    count: int  # number of lines
    task: Task_co  # what the executor gets


@dataclass(frozen=True)
class FinishedChunk:
    """The lines that a chunk adds to each output."""

    count: int  # number of lines of the input
    outputs: Lines
    earlier: bool  # finished before the job was resumed


def compute_chunks(
    chunks: Iterable[TextChunk[Task]],
    executor: Executor[Task, Lines],
    name: str,
    records: ChunkRecords | None = None,
) -> Iterator[FinishedChunk]:
    """Compute chunks and yield them in order; draws only as many new ones as keep the executor busy. `name`:
    of the input, for messages; `records`: results of chunks finished so far, to which new ones are added.

    UserError that names the lines of lost chunks: immediately, or with `records` after all others are
    computed. UserError and DataError also for records that cannot be written or read.
    """
    lost = LostLines()
    waiting: deque[tuple[int, int, int]] = deque()  # number of a chunk, its first line, its lines

    def tasks() -> Iterator[Task]:
        for number, chunk in enumerate(chunks):
            waiting.append((number, chunk.first, chunk.count))
            if records is None or number not in records:
                yield chunk.task

    def recorded_chunks() -> Iterator[FinishedChunk]:
        """Yield the next chunks that were finished before the job was resumed."""
        while records is not None and waiting and waiting[0][0] in records:
            number, _, count = waiting.popleft()
            yield FinishedChunk(count, read_chunk(records, number), earlier=True)

    for result in executor.map(tasks()):
        yield from recorded_chunks()
        number, first, count = waiting.popleft()
        if isinstance(result, Lost):
            lost.add(first + 1, first + count, result)
            if records is None:
                lost.check(name, "write to a file, not to a stream, and --resume computes only these")
            continue
        if records is not None:
            records.add(number, json.dumps(result, ensure_ascii=False).encode())
        yield FinishedChunk(count, result, earlier=False)
    yield from recorded_chunks()
    lost.check(name, "the others are kept, --resume computes only these")


def read_chunk(records: ChunkRecords, number: int) -> Lines:
    """Read the lines of finished chunk `number`. DataError if the file has changed since it was opened."""
    try:
        outputs: Lines = json.loads(records.read(number))
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{records.path}: damaged; --resume again, or remove {records.path.parent} to start over"
        ) from error
    return outputs
