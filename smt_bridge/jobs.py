"""The folder of a long job, `OUTPUT.job/`: what it was started with, and the scores of its finished chunks.

    job.json    the settings; a resumed job has to have the same ones
    scores      one record per chunk, in order: number of rows and checksum (4 bytes each, little-endian),
                then rows x features float64

A chunk that was lost on a cluster has a record of nan, and is computed when the job is resumed.

Records are appended as chunks are finished, and a torn last one is cut off, so a job may be killed at any
moment. The process that works in the folder holds its lock: of two that append to one file, the second would
overwrite what the first writes.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.io import files, locks
from nmt.work import store

FILE = "scores"
HEAD = struct.Struct("<II")
Scores = NDArray[np.float64]  # of a chunk: (rows, features)
Chunk = TypeVar("Chunk")
Row = TypeVar("Row")


def lost_scores(rows: int, features: int) -> Scores:
    """The scores that stand for a lost chunk: all nan."""
    return np.full((rows, features), np.nan)


def is_lost(scores: Scores) -> bool:
    """Whether these scores stand for a lost chunk."""
    return scores.size > 0 and bool(np.isnan(scores).all())


class ScoringJob:
    """Scores of finished chunks on disk."""

    def __init__(self, folder: Path, features: int) -> None:
        self.path = folder / FILE
        self.folder = folder
        self.features = features
        self.end = 0  # bytes of whole records, known once `finished` has been read

    def finished(self) -> Iterator[Scores]:
        """The scores of the finished chunks, in order: (rows, features) each. Whatever follows the last whole
        record is cut off by the next `add`."""
        self.end = 0
        if not self.path.exists():
            return
        size = self.path.stat().st_size
        with open(self.path, "rb") as stream:
            while len(head := stream.read(HEAD.size)) == HEAD.size:
                rows, checksum = HEAD.unpack(head)
                # 0 only in the NUL bytes that a power failure may leave behind
                length = rows * self.features * 8
                if (
                    not 0 < length <= size - stream.tell()
                    or zlib.crc32(body := stream.read(length)) != checksum
                ):
                    break
                self.end = stream.tell()
                yield np.frombuffer(body).reshape(rows, self.features)

    def count(self) -> int:
        """The number of finished chunks."""
        return sum(1 for _ in self.finished())

    def add(self, scores: Scores) -> None:
        """Append the scores of the next chunk."""
        self.end = self.write(scores, self.end, last=True)

    def write(self, scores: Scores, position: int, last: bool) -> int:
        """Write a record; where it is the last one, whatever follows is cut off. Returns its end."""
        body = np.ascontiguousarray(scores).tobytes()
        try:
            with open(self.path, "r+b" if self.path.exists() else "wb") as stream:
                if last:
                    stream.truncate(position)
                stream.seek(position)
                stream.write(HEAD.pack(len(scores), zlib.crc32(body)) + body)
                stream.flush()
                return stream.tell()
        except OSError as error:
            raise files.cannot_write(self.path, error) from error

    def recompute_lost(
        self, chunks: Iterable[Chunk], compute: Callable[[Iterator[Chunk]], Iterable[tuple[Chunk, Scores]]]
    ) -> None:
        """Compute lost chunks again; one that is lost again stays lost. `chunks`: of the whole input."""
        lost: dict[int, tuple[int, int]] = {}  # by number of the chunk: where its record is, and its rows
        position = 0
        for number, scores in enumerate(self.finished()):
            if is_lost(scores):
                lost[number] = position, len(scores)
            position = self.end
        whole = islice(enumerate(chunks), max(lost, default=-1) + 1)
        again = (chunk for number, chunk in whole if number in lost)
        for (position, rows), (_, scores) in zip(lost.values(), compute(again), strict=False):
            self.check_rows(scores, rows)
            self.write(scores, position, last=False)

    def check_rows(self, values: Scores, rows: int) -> None:
        """DataError unless a finished chunk has as many rows as its part of the input."""
        if len(values) != rows:
            raise DataError(
                f"{self.path}: holds {len(values)} scores where the input has {rows} rows; remove "
                f"{self.folder} to start over"
            )

    def remove(self) -> None:
        """Delete the files of the job; its output is complete."""
        locks.clear(self.folder)


def resume_chunks(
    chunks: Iterable[list[Row]],
    compute: Callable[[Iterator[list[Row]]], Iterable[tuple[list[Row], Scores]]],
    job: ScoringJob | None,
    count_rows: Callable[[list[Row]], int],
) -> Iterator[tuple[list[Row], Scores]]:
    """Each chunk with its scores: of a resumed job those that are finished, then what is computed, which the
    job records. `count_rows`: called once for each finished chunk. DataError for another number of rows."""
    stream = iter(chunks)
    if job:
        for scores in job.finished():
            chunk = next(stream, list[Row]())
            job.check_rows(scores, count_rows(chunk))
            yield chunk, scores
    for chunk, scores in compute(stream):
        if job:
            job.add(scores)
        yield chunk, scores


def open_job(output: str, settings: dict[str, object], features: int, resume: bool) -> ScoringJob:
    """The job folder beside an output. ConfigError for an unfinished job that `resume` does not ask for, or
    of other settings."""
    return ScoringJob(store.start_job(output, settings, FILE, resume).parent, features)


def lost_chunks_remedy(job: ScoringJob | None) -> str:
    """The end of an error about lost chunks, which says what to do."""
    if job is None:
        return "nothing is kept of a stream; give files"
    return f"all others are kept in {job.folder}: give the workers more memory, then --resume computes these"
