"""The folder of a long job, `OUTPUT.job/`: what it was started with, and the scores of its finished chunks.

    job.json    the settings; a resumed job has to have the same ones
    scores      one record a chunk, in order: rows and checksum (4 bytes each, little-endian), then rows x features float64

Records are appended as chunks are finished, and a torn last one is cut off, so a job may be killed at any moment.
"""

import json
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt import files
from nmt.errors import ConfigError, DataError

HEAD = struct.Struct("<II")


class Job:
    """Scores of finished chunks on disk."""

    def __init__(self, folder: Path, features: int) -> None:
        self.path = folder / "scores"
        self.folder = folder
        self.features = features
        self.end = 0  # bytes of whole records, known once `finished` has been read

    def finished(self) -> Iterator[NDArray[np.float64]]:
        """The scores of the finished chunks, in order: (rows, features) each. Whatever follows the last whole one is cut off."""
        self.end = 0
        if not self.path.exists():
            return
        with open(self.path, "rb") as stream:
            while len(head := stream.read(HEAD.size)) == HEAD.size:
                rows, checksum = HEAD.unpack(head)
                body = stream.read(rows * self.features * 8)
                if len(body) < rows * self.features * 8 or zlib.crc32(body) != checksum:
                    break
                self.end = stream.tell()
                yield np.frombuffer(body).reshape(rows, self.features)

    def count(self) -> int:
        return sum(1 for _ in self.finished())

    def add(self, scores: NDArray[np.float64]) -> None:
        """Append the scores of the next chunk."""
        body = np.ascontiguousarray(scores).tobytes()
        try:
            with open(self.path, "r+b" if self.path.exists() else "wb") as stream:
                stream.truncate(self.end)
                stream.seek(self.end)
                stream.write(HEAD.pack(len(scores), zlib.crc32(body)) + body)
                stream.flush()
                self.end = stream.tell()
        except OSError as error:
            raise files.cannot_write(self.path, error) from error

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def open_job(output: str, settings: dict[str, Any], features: int, resume: bool) -> Job:
    """The job folder beside an output. ConfigError for an unfinished job that `resume` does not ask for, or of other settings."""
    settings = json.loads(json.dumps(settings))  # tuples become lists, as they are read back
    folder = Path(f"{output}.job")
    place = folder / "job.json"
    if place.exists():
        if not resume:
            raise ConfigError(f"{folder}: an unfinished job; --resume goes on with it, or remove the folder to start anew")
        try:
            before = dict(json.loads(place.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise DataError(f"{place}: damaged; remove {folder} to start anew") from error
        changed = [key for key in settings if settings[key] != before.get(key)]
        if changed:
            raise ConfigError(f"{folder}: was started with other settings ({', '.join(changed)}); give the same ones, or remove the folder to start anew")
        return Job(folder, features)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.cannot_write(folder, error) from error
    (folder / "scores").unlink(missing_ok=True)
    files.write_text(place, [json.dumps(settings)])
    return Job(folder, features)


def settings_of(output: str) -> dict[str, Any]:
    """What an unfinished job was started with; {} without one."""
    try:
        return dict(json.loads(Path(f"{output}.job/job.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}
