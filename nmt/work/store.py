"""Persistent state of a long job: its folder with lock and settings, finished files and chunks, and the steps
that remain."""

import json
import os
import platform
import shutil
import struct
import uuid
import zlib
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Generic, TypeVar

from nmt.errors import ConfigError, DataError
from nmt.io import files, locks, manifest
from nmt.io.manifest import Entries

# ---- settings ----------------------------------------------------------------------------------------------
# A JSON file in the folder of a long job has the settings with which it was started; it is resumed only with
# the same ones.


def read_settings(path: Path) -> dict[str, object] | None:
    """Read recorded settings; None without a file or folder. DataError for a file that is no JSON object."""
    try:
        settings = json.loads(files.read_small(path).decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise damaged_settings(path) from error
    if not isinstance(settings, dict):
        raise damaged_settings(path)
    return settings


def damaged_settings(path: Path) -> DataError:
    return DataError(f"{path}: damaged; remove {path.parent} to start over")


def write_settings(path: Path, settings: Mapping[str, object]) -> None:
    """Record the settings, as JSON, with which a job starts. UserError if that fails."""
    files.write_text(path, [json.dumps(settings)])


def changed_settings(recorded: Mapping[str, object], settings: Mapping[str, object]) -> list[str]:
    """Names of the settings that differ from the recorded ones, in which tuples have become lists."""
    now = json.loads(json.dumps(settings))
    return [key for key in now if now[key] != recorded.get(key)]


def is_started(
    path: Path, settings: Mapping[str, object], folder: Path, suggestion: str = "another folder"
) -> bool:
    """Whether the job in `folder` has recorded settings in the file `path`. ConfigError if these differ from
    `settings`, whose message proposes `suggestion`; DataError if they are damaged."""
    recorded = read_settings(path)
    if recorded is not None and (changed := changed_settings(recorded, settings)):
        raise ConfigError(
            f"{folder}: was started with another {', '.join(changed)}; name {suggestion}, or remove this one "
            "to start over"
        )
    return recorded is not None


def is_ours(folder: Path, name: str) -> bool:
    """Whether a folder has recorded settings in the file `name`, or is free for a new job: missing, or empty
    except for a lock and unfinished settings files."""
    if not folder.is_dir():
        return not folder.exists()
    names = [path.name for path in folder.iterdir()]
    return name in names or all(entry == locks.FILE or entry.startswith(f"{name}.part") for entry in names)


def check_ours(folder: Path, name: str, what: str, suggestion: str = "another folder") -> None:
    """ConfigError for a folder that is neither free nor has a settings file `name`, see `is_ours`. The
    message says that it is not `what`, and proposes `suggestion`."""
    if not is_ours(folder, name):
        raise ConfigError(f"{folder}: is not empty, and not {what}; name {suggestion}")


# ---- folder beside an output -------------------------------------------------------------------------------


SETTINGS = "job.json"


def job_folder_path(output: str) -> Path:
    """Path of the job folder of an output file: beside it, with `.job` added."""
    return Path(f"{output}.job")


@contextmanager
def lock_job(output: str, command: str) -> Iterator[None]:
    """Context that locks the job folder of an output file. `command`: name of the command that locks it, for
    the messages of others. UserError if another process works on this output. A job that ends before its
    first result leaves no folder behind."""
    folder = job_folder_path(output)
    with locks.locked(folder, command):
        try:
            yield
        finally:
            if (folder / SETTINGS).exists() and not has_results(folder):
                locks.clear(folder)


def has_results(folder: Path) -> bool:
    """Whether a job folder has a non-empty file besides its settings, lock and unfinished output."""
    excluded = (SETTINGS, locks.FILE, files.UNFINISHED)
    return any(path.name not in excluded and path.stat().st_size for path in folder.iterdir())


def recorded_settings(output: str) -> dict[str, object]:
    """Settings of the unfinished job of an output file; {} if there is none. DataError if damaged."""
    return read_settings(job_folder_path(output) / SETTINGS) or {}


def is_unfinished(folder: Path, settings: Mapping[str, object], resume: bool) -> bool:
    """Whether the folder holds an unfinished job, which then is to be resumed. ConfigError if it holds one
    but `resume` is false, or one with other settings; DataError if its settings are damaged."""
    recorded = read_settings(folder / SETTINGS)
    if recorded is None:
        return False
    if not resume:
        raise ConfigError(
            f"{folder}: has an unfinished job; --resume continues it, or remove the folder to start over"
        )
    if changed := changed_settings(recorded, settings):
        raise ConfigError(
            f"{folder}: was started with other settings ({', '.join(changed)}); give the same ones, or "
            "remove the folder to start over"
        )
    return True


def start_job(output: str, settings: Mapping[str, object], results: str, resume: bool) -> Path:
    """Start or resume the job of an output file. `results`: name of the file of its results in the job
    folder. Returns the path of this file, which does not exist yet for a new job. A job that was killed
    before its first result counts as new. Errors as from `is_unfinished`, and UserError if the folder cannot
    be written."""
    folder = job_folder_path(output)
    if not (folder.is_dir() and has_results(folder)) or not is_unfinished(folder, settings, resume):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / results).unlink(missing_ok=True)
        except OSError as error:
            raise files.cannot_write(folder, error) from error
        write_settings(folder / SETTINGS, settings)
    return folder / results


# ---- files that workers read -------------------------------------------------------------------------------
# Models are not sent to workers: they read the same files, which checksums verify.


def file_digests(paths: Iterable[str | Path]) -> dict[str, str]:
    """The SHA-256 of each file, by its absolute path. DataError for one that cannot be read."""
    return {os.path.abspath(path): manifest.digest(path) for path in paths}


def check_digests(contents: Mapping[str, str]) -> None:
    """DataError for a file that is missing here or has another checksum. `contents`: SHA-256 by path."""
    for path, expected in contents.items():
        try:
            digest = manifest.digest(path)
        except DataError as error:
            raise DataError(
                f"{error} on {platform.node()}; workers read models from the same path"
            ) from error
        if digest != expected:
            raise DataError(f"{path}: differs on {platform.node()} from the file where the job was started")


# ---- finished files ----------------------------------------------------------------------------------------


@contextmanager
def unfinished(path: Path, recorded: bool = False, flush: bool = True) -> Iterator[Path]:
    """Yield a path beside `path`, to which the block writes a file. At the end this file is renamed to
    `path`, so that `path` is complete or missing whenever the process is killed; after an error it is
    removed. Creates the folder if it is missing. Several hosts may write the same file. UserError if it
    cannot be written.

    `recorded`: add the checksum to the manifest of the folder before the file is renamed. `flush`: wait until
    the file is on the disk first; not needed for a file whose own checksums reveal what a crash of the
    machine lost.
    """
    part = path.with_name(f"{path.name}.part{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(exist_ok=True)
        yield part
        if recorded:
            manifest.publish(path.parent, {path.name: part})
        else:
            if flush:
                manifest.sync(part)
            os.replace(part, path)
    except OSError as error:
        raise files.cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def unfinished_folder(path: Path) -> Iterator[Path]:
    """Yield a new, empty folder beside `path`. At the end it is renamed to `path`, so that `path` is complete
    or missing whenever the process is killed; after an error it is removed. UserError if it cannot be
    written."""
    part = path.with_name(f"{path.name}.part{uuid.uuid4().hex}")
    try:
        part.mkdir()
        yield part
        part.rename(path)
    except OSError as error:
        raise files.cannot_write(path, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def remove_unfinished(folder: Path, patterns: Iterable[str]) -> None:
    """Remove what matches glob patterns: unfinished files of killed steps. UserError if that fails."""
    try:
        for path in [path for pattern in patterns for path in folder.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    except OSError as error:
        raise files.cannot_write(folder, error) from error


@dataclass(frozen=True)
class Store:
    """A folder of finished files whose sizes and checksums are in its manifest, so that a resumed job detects
    files that were changed or damaged. All methods raise DataError for a damaged manifest."""

    folder: Path

    def entries(self) -> Entries:
        """The manifest; empty before anything is finished."""
        return manifest.read(self.folder) or {}

    def has(self, name: str) -> bool:
        """Whether a file is recorded and still there."""
        return name in self.entries() and (self.folder / name).exists()

    def record(self, patterns: Collection[str]) -> None:
        """Set the manifest's entries of the files that match glob patterns to their sizes and checksums;
        files that are gone lose theirs. Leaves out locks and unfinished files."""
        paths = {path for pattern in patterns for path in self.folder.glob(pattern) if path.is_file()}
        finished = {
            path.relative_to(self.folder).as_posix(): [manifest.entry(path)]
            for path in paths
            if ".part" not in path.name and path.name != locks.FILE
        }
        gone = {name for name in self.recorded(patterns) if not (self.folder / name).exists()}
        stay = {name: entry for name, entry in self.entries().items() if name not in gone}
        manifest.save(self.folder, stay | finished)

    def recorded(self, patterns: Iterable[str]) -> set[str]:
        """Names of the recorded files that match glob patterns."""
        flat = [pattern.replace("**/", "") for pattern in patterns]
        return {name for name in self.entries() if any(fnmatchcase(name, pattern) for pattern in flat)}

    def check(self, fixed: Container[str], top: Path) -> list[str]:
        """Compare all files with the manifest; returns the names of missing ones.

        DataError for a file with other content, and for a missing file of `fixed`, which no step can write
        again: then the remedy is to remove the folder `top`.
        """
        missing = []
        for name, contents in self.entries().items():
            path, remedy = self.folder / name, "remove it, and the same command creates it again"
            if name in fixed:
                remedy = f"remove {top} to start over"
            if path.exists():
                if manifest.entry(path) not in contents:
                    raise DataError(f"{path}: was changed since it was finished; restore it, or {remedy}")
            elif name in fixed:
                raise DataError(f"{path}: missing; restore it, or {remedy}")
            else:
                missing.append(name)
        return missing

    def forget(self, names: Container[str]) -> None:
        """Delete files and their entries in the manifest; names that are not recorded are ignored."""
        entries = self.entries()
        for name in entries:
            if name in names:
                (self.folder / name).unlink(missing_ok=True)
        manifest.save(self.folder, {name: row for name, row in entries.items() if name not in names})


# ---- finished chunks ---------------------------------------------------------------------------------------
# A file of records, one for each finished chunk, in any order:
#
#     number of the chunk, length in bytes (8 bytes each, little-endian), checksum (4), and the result
#
# Records are appended. A torn last record is cut off, so a job may be killed at any moment.


RECORD_KEY = struct.Struct("<QQ")
RECORD_CHECKSUM = struct.Struct("<I")


class ChunkRecords:
    """File of the results of finished chunks, by number. Its process must hold the job folder's lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.positions: dict[int, tuple[int, int]] = {}  # chunk -> offset and length of its result
        self.end = 0  # bytes of complete records
        if path.exists():
            self.scan()

    def __contains__(self, number: int) -> bool:
        return number in self.positions

    def __len__(self) -> int:
        return len(self.positions)

    def scan(self) -> None:
        """Read the positions of all complete records; stops at a torn one."""
        size, head = self.path.stat().st_size, RECORD_KEY.size + RECORD_CHECKSUM.size
        with open(self.path, "rb") as stream:
            while len(read := stream.read(head)) == head:
                number, length = RECORD_KEY.unpack(read[: RECORD_KEY.size])
                start = stream.tell()
                if length > size - start or read[RECORD_KEY.size :] != record_checksum(
                    read[: RECORD_KEY.size], stream.read(length)
                ):
                    break
                self.positions[number] = start, length
                self.end = stream.tell()

    def read(self, number: int) -> bytes:
        """The result of a finished chunk. KeyError for another one, DataError if it cannot be read."""
        start, length = self.positions[number]
        try:
            with open(self.path, "rb") as stream:
                stream.seek(start)
                return stream.read(length)
        except OSError as error:
            raise files.cannot_read(self.path, error) from error

    def add(self, number: int, result: bytes) -> None:
        """Append the result of chunk `number`, over a torn record at the end. UserError if that fails."""
        key = RECORD_KEY.pack(number, len(result))
        try:
            with open(self.path, "r+b" if self.path.exists() else "wb") as stream:
                stream.truncate(self.end)
                stream.seek(self.end)
                stream.write(key + record_checksum(key, result) + result)
                stream.flush()
                end = stream.tell()
        except OSError as error:
            raise files.cannot_write(self.path, error) from error
        self.positions[number] = end - len(result), len(result)
        self.end = end


def record_checksum(key: bytes, result: bytes) -> bytes:
    return RECORD_CHECKSUM.pack(zlib.crc32(result, zlib.crc32(key)))


# ---- steps -------------------------------------------------------------------------------------------------


Job = TypeVar("Job")


@dataclass(frozen=True)
class Step(Generic[Job]):
    """A step of a long job."""

    name: str
    result: str  # the file that it writes last, relative to the folder of the job
    work: Callable[[Job], None]  # does the step
    files: tuple[str, ...] = ()  # glob patterns of all files that it writes, for recording their checksums


def run_steps(
    steps: Iterable[Step[Job]],
    job: Job,
    finished: Callable[[Step[Job]], bool],
    record: Callable[[Step[Job]], None],
    around: Callable[[Step[Job]], AbstractContextManager[None]],
) -> None:
    """Run the unfinished steps in order. A job that is killed at any moment and started again ends with the
    same files. `finished`: whether a step is finished; `record`: records that it is; `around`: context for
    work and record of a step, such as a clock. Steps are drawn one at a time."""
    for step in steps:
        if not finished(step):
            with around(step):
                step.work(job)
                record(step)
