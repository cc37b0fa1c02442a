"""Jobs in stages, such as map and reduce, whose tasks write their results to a folder that all workers share.

    FOLDER/job.json         the settings of the job, which must be the same when it is resumed
    FOLDER/STAGE/00000      the result of task 0 of a stage, in parts

A task whose file exists and is complete is not computed again. So a job may be killed at any moment, and it
does no harm if two workers compute the same task.
"""

import os
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from nmt.errors import ConfigError, DataError, UserError
from nmt.io import files, locks
from nmt.work import store
from nmt.work.executors import SHOWN_RANGES, Executor, Lost
from nmt.work.store import SETTINGS, is_unfinished

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# ---- parts -------------------------------------------------------------------------------------------------
# The file of a task has numbered parts, one for each task of the next stage.
#
#     nmt-smt parts 1      and a line feed
#     number of parts      64-bit, little-endian, as all numbers
#     of each part         its offset in the file, its length in bytes, its CRC-32
#     the parts
#
# A file is written completely or not at all; checksums reveal damage. Processes on several hosts may write
# the same file at the same time: they write the same bytes.


PARTS_MAGIC = b"nmt-smt parts 1\n"
PART_COUNT, PART_ENTRY = struct.Struct("<Q"), struct.Struct("<QQQ")
PARTS_HEAD = len(PARTS_MAGIC) + PART_COUNT.size
Part: TypeAlias = "bytes | NDArray[np.uint64] | NDArray[np.int64]"


class Damaged(UserError):
    """A file of a job is missing, truncated or changed."""


def damaged_file(path: Path) -> Damaged:
    return Damaged(f"{path}: missing or damaged; start the command again with --resume, which recreates it")


def write_parts(path: Path, parts: Iterable[Part]) -> None:
    """Write a file of parts, completely or not at all. UserError if that fails."""
    views = [memoryview(part if isinstance(part, bytes) else part.data) for part in parts]
    buffers = [view if view.c_contiguous else memoryview(view.tobytes()) for view in views]
    sizes = [buffer.nbytes for buffer in buffers]
    start = PARTS_HEAD + PART_ENTRY.size * len(buffers)
    with store.unfinished(path, flush=False) as part, open(part, "wb") as out:
        out.write(PARTS_MAGIC + PART_COUNT.pack(len(buffers)))
        for buffer, size in zip(buffers, sizes, strict=True):
            out.write(PART_ENTRY.pack(start, size, zlib.crc32(buffer) if size else 0))
            start += size
        for buffer, size in zip(buffers, sizes, strict=True):
            if size:
                out.write(buffer)


@contextmanager
def open_parts(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file of parts, and read their number. Raises Damaged if it is missing or has no valid header,
    and if reading fails in the block."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(PARTS_HEAD)
            if not head.startswith(PARTS_MAGIC):
                raise damaged_file(path)
            yield stream, PART_COUNT.unpack(head[len(PARTS_MAGIC) :])[0]
    except (OSError, struct.error) as error:
        raise damaged_file(path) from error


def load_part(stream: BinaryIO, path: Path, number: int) -> tuple[int, bytes]:
    """Read the offset and the content of part `number`, counted from 0, from an open file. Raises Damaged if
    it is not what was written; `path` is for the message."""
    stream.seek(PARTS_HEAD + PART_ENTRY.size * number)
    start, size, checksum = PART_ENTRY.unpack(stream.read(PART_ENTRY.size))
    if start + size > os.fstat(stream.fileno()).st_size:
        raise damaged_file(path)
    stream.seek(start)
    content = stream.read(size)
    if len(content) != size or zlib.crc32(content) != checksum:
        raise damaged_file(path)
    return start, content


def read_part(path: Path, number: int) -> bytes:
    """Read part `number`, counted from 0. Raises Damaged if it is not what was written."""
    with open_parts(path) as (stream, _):
        return load_part(stream, path, number)[1]


def count_parts(path: Path) -> int:
    """Read the number of parts of a file. Raises Damaged if it has no valid header."""
    with open_parts(path) as (_, count):
        return count


def is_complete(path: Path) -> bool:
    """Whether the file exists with all its parts as they were written."""
    try:
        with open_parts(path) as (stream, count):
            size, end = os.fstat(stream.fileno()).st_size, PARTS_HEAD + PART_ENTRY.size * count
            if end > size:
                return False
            for number in range(count):
                start, content = load_part(stream, path, number)
                if start != end:
                    return False
                end += len(content)
            return end == size
    except Damaged:
        return False


# ---- stages ------------------------------------------------------------------------------------------------


Task = tuple[str, int]  # name of a stage, and number of a task in it, from 0


@dataclass(frozen=True)
class SharedFolder:
    """The folder of a job in stages, which all workers share, and how the job starts."""

    folder: Path  # absolute, since workers may have another working directory
    command: str  # name of the command that locks it
    resume: bool = False  # whether to resume an unfinished job


def task_file(folder: Path, stage: str, number: int) -> Path:
    """Path of the file that a task writes."""
    return folder / stage / f"{number:05d}"


class StageWorker(ABC):
    """Computes the tasks of a job, and holds the data that all tasks need. Subclasses are picklable, so that
    workers in other processes get a copy. `folder`: the shared folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def compute_parts(self, stage: str, number: int) -> Iterable[Part]:
        """Compute the parts of the file of task `number` of a stage."""

    def __call__(self, task: Task) -> None:
        """Compute and write the file of a task, unless it exists and is complete. Errors of `compute_parts`,
        and UserError if the file cannot be written."""
        ensure_file(task_file(self.folder, *task), partial(self.compute_parts, *task))


def begin_worker(worker: StageWorker) -> StageWorker:
    """Check that this process sees the shared folder, and return the worker. ConfigError if it does not."""
    if not (worker.folder / SETTINGS).is_file():
        raise ConfigError(
            f"{worker.folder}: is not the folder of the job here; all hosts have to share it (--work)"
        )
    return worker


def ensure_file(path: Path, make: Callable[[], Iterable[Part]]) -> None:
    """Write the parts that `make` computes, unless the file is complete. UserError as from `write_parts`."""
    if not is_complete(path):
        write_parts(path, make())


@contextmanager
def lock_shared(shared: SharedFolder, settings: Mapping[str, object]) -> Iterator[None]:
    """Context that locks the folder of a job and records its settings. The folder is removed when the block
    succeeds or raises DataError, and kept after any other error.

    ConfigError for an unfinished job without `resume` or with other settings, and for a folder with other
    files; DataError for damaged settings; UserError if another process has locked the folder."""
    folder = shared.folder
    store.check_ours(folder, SETTINGS, "the folder of a job", "another one")
    with locks.locked(folder, shared.command):
        if not is_unfinished(folder, settings, shared.resume):
            store.write_settings(folder / SETTINGS, settings)
        try:
            yield
        except DataError:
            locks.clear(folder)
            raise
        locks.clear(folder)


def run_stage(executor: Executor[Task, object], stage: str, names: Sequence[str]) -> Iterator[int]:
    """Compute the tasks of a stage and yield their numbers, in order, as they finish. `names`: names of the
    tasks, for messages. After all other tasks, UserError that names those that no worker survived."""
    lost: list[tuple[str, str]] = []
    results = executor.map((stage, number) for number in range(len(names)))
    for number, result in enumerate(results):
        if isinstance(result, Lost):
            lost.append((names[number], result.reason))
        else:
            yield number
    if lost:
        more = f" and {len(lost) - SHOWN_RANGES} more" if len(lost) > SHOWN_RANGES else ""
        raise UserError(
            f"{', '.join(name for name, _ in lost[:SHOWN_RANGES])}{more}: {lost[0][1]}; the rest is kept, "
            "--resume computes what is missing"
        )


# ---- shards ------------------------------------------------------------------------------------------------
# Parallel texts cut into shards of lines, in the folder of a job.
#
#     FOLDER/text/00000     the lines of each text, then the number of the first one
#     FOLDER/shards         the number of shards


SHARD_STAGE, SHARD_COUNT = "text", "shards"


@dataclass(frozen=True)
class Shard:
    """Consecutive lines of a parallel text."""

    first: int  # number of the first line, from 1
    rows: list[tuple[str, ...]]  # parallel lines

    def lines(self, name: str) -> str:
        """Name the lines of the shard for messages. `name`: of the text."""
        return f"{name}: lines {self.first}-{self.first + len(self.rows) - 1}"


def cut_shards(folder: Path, paths: Sequence[str], words: int) -> list[str]:
    """Cut parallel texts into shards of about `words` words, counted over the first two texts, and write them
    to the folder of a job; returns the names of the shards for messages. DataError for bad text and texts of
    unequal length."""
    names: list[str] = []
    rows: list[tuple[str, ...]] = []
    first = words_so_far = 0

    def finish() -> None:
        shard = Shard(first + 1, rows)
        columns = ["\n".join(column).encode() for column in zip(*rows, strict=True)]
        ensure_file(task_file(folder, SHARD_STAGE, len(names)), lambda: [*columns, str(shard.first).encode()])
        names.append(shard.lines(paths[0]))

    for number, row in enumerate(files.parallel(*paths), 1):
        rows.append(row)
        words_so_far += sum(text.count(" ") + 1 for text in row[:2])
        if words_so_far >= words:
            finish()
            first, rows, words_so_far = number, [], 0
    if rows:
        finish()
    ensure_file(folder / SHARD_COUNT, lambda: [str(len(names)).encode()])
    return names


def count_shards(folder: Path) -> int:
    return int(read_part(folder / SHARD_COUNT, 0))


def read_shard(folder: Path, number: int) -> Shard:
    """Read a shard. Raises Damaged if it is not what was written."""
    path = task_file(folder, SHARD_STAGE, number)
    *columns, first = (read_part(path, part).decode() for part in range(count_parts(path)))
    return Shard(int(first), list(zip(*(column.split("\n") for column in columns), strict=True)))


def read_shards(folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield the parallel lines of all shards. Raises Damaged as from `read_shard`."""
    for number in range(count_shards(folder)):
        yield from read_shard(folder, number).rows
