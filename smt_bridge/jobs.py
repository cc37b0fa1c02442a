"""The folder of a long scoring job, `OUTPUT.job/`: its settings, and the scores of its finished chunks.

    job.json    the settings; to be resumed, a job must be started with the same ones
    scores      one record per chunk, in order: number of rows and checksum (4 bytes each, little-endian),
                then rows x features float64

A chunk that was lost on a cluster has a record of nan, and is computed again when the job is resumed.

Records are appended as chunks are finished, and an incomplete last record is cut off, so a job may be killed
at any time. The running process holds a lock on the folder, as two processes would overwrite each other's
records.
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
Scores = NDArray[np.float64]  # scores of one chunk: (rows, features)
Chunk = TypeVar("Chunk")
Row = TypeVar("Row")


def lost_scores(rows: int, features: int) -> Scores:
    """The scores that mark a lost chunk, (rows, features): all nan."""
    return np.full((rows, features), np.nan)


def is_lost(scores: Scores) -> bool:
    return scores.size > 0 and bool(np.isnan(scores).all())


class ScoringJob:
    """A job's folder, with the scores of its finished chunks."""

    def __init__(self, folder: Path, features: int) -> None:
        """`features`: number of scores of a row."""
        self.path = folder / FILE
        self.folder = folder
        self.features = features
        self.end = 0  # size of all complete records in bytes; set by iterating over `finished`

    def finished(self) -> Iterator[Scores]:
        """Yield the scores of the finished chunks in order: (rows, features) each, read-only. Bytes after the
        last complete record are ignored, and the next `add` cuts them off."""
        self.end = 0
        if not self.path.exists():
            return
        size = self.path.stat().st_size
        with open(self.path, "rb") as stream:
            while len(head := stream.read(HEAD.size)) == HEAD.size:
                rows, checksum = HEAD.unpack(head)
                # A length of 0 means NUL bytes, which a power failure may leave behind.
                length = rows * self.features * 8
                if (
                    not 0 < length <= size - stream.tell()
                    or zlib.crc32(body := stream.read(length)) != checksum
                ):
                    break
                self.end = stream.tell()
                yield np.frombuffer(body).reshape(rows, self.features)

    def count(self) -> int:
        return sum(1 for _ in self.finished())

    def add(self, scores: Scores) -> None:
        """Append the scores of the next chunk, (rows, features). To resume a job, iterate over all of
        `finished` first: everything after the last record that it has read is cut off. UserError if the file
        cannot be written."""
        self.end = self.write(scores, self.end, last=True)

    def write(self, scores: Scores, position: int, last: bool) -> int:
        """Write a record at `position` and return the position after it. `last`: whether it is the last, so
        that what follows is cut off. UserError if the file cannot be written."""
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
        """Compute lost chunks again and replace their records; those that get lost again stay marked.
        `chunks`: all chunks of the input; `compute`: yields the chunks that it is given with their scores, in
        order. DataError if the record of a lost chunk has another number of rows than the chunk; UserError if
        the file cannot be written."""
        lost: dict[int, tuple[int, int]] = {}  # chunk number -> position of its record, number of rows
        position = 0
        for number, scores in enumerate(self.finished()):
            if is_lost(scores):
                lost[number] = position, len(scores)
            position = self.end
        numbered = islice(enumerate(chunks), max(lost, default=-1) + 1)
        lost_chunks = (chunk for number, chunk in numbered if number in lost)
        for (position, rows), (_, scores) in zip(lost.values(), compute(lost_chunks), strict=False):
            self.check_rows(rows, len(scores))
            self.write(scores, position, last=False)

    def check_rows(self, recorded: int, rows: int) -> None:
        """DataError unless a record has as many rows as its chunk of the input."""
        if recorded != rows:
            raise DataError(
                f"{self.path}: holds {recorded} scores where the input has {rows} rows; remove "
                f"{self.folder} to start over"
            )

    def remove(self) -> None:
        """Delete the files of the job, if it had anything to compute. Called when its output is complete."""
        if self.folder.exists():
            locks.clear(self.folder)


def resume_chunks(
    chunks: Iterable[list[Row]],
    compute: Callable[[Iterator[list[Row]]], Iterable[tuple[list[Row], Scores]]],
    job: ScoringJob | None,
    count_rows: Callable[[list[Row]], int],
) -> Iterator[tuple[list[Row], Scores]]:
    """Yield each chunk with its scores: first those that a resumed job has finished, then newly computed
    ones, which the job records. `compute`: yields chunks with their scores, in order; `job`: None to record
    nothing; `count_rows`: number of rows of a chunk; called once for each finished one. DataError if a
    finished chunk has another number of rows than the input; UserError if the job cannot be written.
    A lost chunk counts as finished, with scores of nan: call `recompute_lost` first."""
    stream = iter(chunks)
    if job:
        for scores in job.finished():
            chunk = next(stream, list[Row]())
            job.check_rows(len(scores), count_rows(chunk))
            yield chunk, scores
    for chunk, scores in compute(stream):
        if job:
            job.add(scores)
        yield chunk, scores


def open_job(output: str, settings: dict[str, object], features: int, resume: bool) -> ScoringJob:
    """Create or resume the job folder beside an output. `features`: number of scores of a row. ConfigError
    for an unfinished job without `resume`, or with other settings; DataError if its settings are damaged;
    UserError if the folder cannot be written."""
    return ScoringJob(store.start_job(output, settings, FILE, resume).parent, features)


def lost_chunks_remedy(job: ScoringJob | None) -> str:
    """The end of an error message about lost chunks, which says what to do."""
    if job is None:
        return "nothing is kept of a stream; give files"
    return f"all others are kept in {job.folder}: give the workers more memory, then --resume computes these"
