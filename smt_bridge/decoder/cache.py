"""A cache of parsed tables and language models, so that their text is parsed only once. Each is a file in the
user's cache folder.

    Cache().keep(["phrase-table.gz"], make, Table)     # the result of make(), cached for later calls

A file is named KEY.CHECKSUM.npz: KEY is a hash of what it was created from (paths, sizes, times, format), and
CHECKSUM that of its content. It gets this name once it is complete, so that several processes may fill the
cache at the same time; a damaged file is created again. The folder has a size limit; the least recently used
files are removed first.
"""

import hashlib
import json
import logging
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from nmt.errors import ConfigError, DataError, UserError
from nmt.io import manifest
from nmt.io.files import cache_folder
from nmt.io.locks import locked
from nmt.io.numbers import real

log = logging.getLogger(__name__)

FORMAT = 2
LIMIT_VARIABLE = "NMT_CACHE_GB"
DEFAULT_GB = 10.0
STAMP = "stamp"


class Cacheable(Protocol):
    """A dataclass or NamedTuple that can be cached. Its fields are arrays, integers, lists of strings, and
    dictionaries from byte strings to consecutive numbers."""

    def is_sound(self) -> bool:
        """Whether all sizes agree and all indices are within bounds, which compiled code does not check."""
        ...


K = TypeVar("K", bound=Cacheable)


@dataclass(frozen=True)
class CacheEntry:
    """A file of the cache."""

    path: Path
    size: int
    used: float  # time of the last use, in seconds since the epoch

    def sources(self) -> list[str]:
        """Paths of the files from which the entry was created; empty if the entry is damaged."""
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                return [str(source[0]) for source in json.loads(archive[STAMP].tobytes())["sources"]]
        except DAMAGED:
            return []


DAMAGED = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    UserError,
    zipfile.BadZipFile,
    NotImplementedError,
    MemoryError,
)


def default_limit() -> int:
    """The user's size limit in bytes. ConfigError if $NMT_CACHE_GB is not a number of 0 or more."""
    text = os.environ.get(LIMIT_VARIABLE) or f"{DEFAULT_GB:g}"
    try:
        gigabytes = real(text)
    except ValueError as error:
        raise ConfigError(f"{LIMIT_VARIABLE}: {error}, expected the size of the cache in GB") from error
    if gigabytes < 0:
        raise ConfigError(
            f"{LIMIT_VARIABLE}: {gigabytes:g} is negative, expected the size of the cache in GB"
        )
    return int(gigabytes * 1e9)


class Cache:
    """The cache folder. Several processes may share it."""

    def __init__(self, folder: str | Path = "", limit: int | None = None) -> None:
        """`folder`, `limit` (bytes): override the user's cache folder and size limit."""
        self.folder = cache_folder(folder)
        self.limit = default_limit() if limit is None else limit

    def keep(self, sources: Sequence[str], make: Callable[[], K], kind: type[K]) -> K:
        """Return the result of `make()`, or a cached result of an earlier call for the same sources."""
        stamp = stamp_of(sources, kind)
        key = hashlib.sha256(stamp).hexdigest()[:24]
        for entry in self.entries(key):
            try:
                content = load(entry.path, kind)
                with suppress(OSError):
                    os.utime(entry.path)
                return content
            except FileNotFoundError:
                continue  # another process has removed it
            except DAMAGED as error:
                if isinstance(error.__cause__ or error, PermissionError):
                    continue  # the file belongs to another user
                log.warning("%s: damaged; created again from %s", entry.path, sources[0])
                with suppress(OSError):
                    entry.path.unlink()
        content = make()
        try:
            self.store(key, stamp, content)
        except (OSError, UserError) as error:
            log.info("%s: not kept in the cache: %s", sources[0], error)
        return content

    def entries(self, key: str = "*") -> list[CacheEntry]:
        """The files of the cache, most recently used first."""
        return sorted(self._entries(key), key=lambda entry: (-entry.used, entry.path))

    def _entries(self, key: str) -> Iterator[CacheEntry]:
        for path in self.folder.glob(f"{key}.*.npz"):
            with suppress(FileNotFoundError):
                status = path.stat()
                yield CacheEntry(path, status.st_size, status.st_mtime)

    def store(self, key: str, stamp: bytes, content: Cacheable) -> None:
        """Write an entry to a temporary file, rename it, and trim the cache. UserError if another process is
        writing to the cache."""
        with locked(self.folder, "decoder cache"):
            self.sweep()
            part = self.folder / f"{key}.part"
            try:
                with open(part, "wb") as stream:
                    np.savez(
                        stream,
                        allow_pickle=False,
                        **{STAMP: np.frombuffer(stamp, np.uint8)},
                        **arrays(content),
                    )
                if (size := part.stat().st_size) > self.limit:
                    raise UserError(
                        f"{size / 1e9:.1f} GB exceed the size limit of the cache ({LIMIT_VARIABLE})"
                    )
                part.rename(self.folder / f"{key}.{manifest.digest(part)}.npz")
            finally:
                part.unlink(missing_ok=True)
            self.trim()

    def sweep(self) -> None:
        """Remove temporary files of killed processes. The caller holds the lock, so none of them is still
        being written."""
        for path in self.folder.glob("*.part"):
            path.unlink(missing_ok=True)

    def trim(self) -> None:
        """Remove the least recently used files until the cache is within its limit."""
        total = 0
        for entry in self.entries():
            total += entry.size
            if total > self.limit:
                entry.path.unlink(missing_ok=True)

    def clear(self) -> list[CacheEntry]:
        """Remove all entries and return them. UserError if another process is writing to the cache."""
        if not self.folder.exists():
            return []
        with locked(self.folder, "smt-cache clear"):
            self.sweep()
            entries = self.entries()
            for entry in entries:
                entry.path.unlink(missing_ok=True)
        return entries


def stamp_of(sources: Sequence[str], kind: type[Cacheable]) -> bytes:
    """Describe an entry in JSON: its format, type and fields, and the sizes and times of its sources."""
    states = [(os.path.realpath(source), os.stat(source)) for source in sources]
    made_from = {
        "format": FORMAT,
        "kind": kind.__name__,
        "parts": parts_of(kind),
        "sources": [[path, state.st_size, state.st_mtime_ns] for path, state in states],
    }
    return json.dumps(made_from).encode()


def parts_of(kind: type[Cacheable]) -> list[str]:
    """The names of the fields of a dataclass or NamedTuple."""
    return list(kind.__annotations__)


def arrays(content: Cacheable) -> dict[str, "NDArray[np.generic] | int"]:
    """Convert all fields to arrays. A list of strings becomes bytes, one line for each string; no string may
    contain a line end."""
    values = {name: getattr(content, name) for name in parts_of(type(content))}
    return {
        name: value if isinstance(value, np.ndarray | int) else lines(value) for name, value in values.items()
    }


def lines(texts: Iterable[str | bytes]) -> NDArray[np.uint8]:
    """Join strings into an array of bytes, one line for each."""
    content = b"".join((text if isinstance(text, bytes) else text.encode()) + b"\n" for text in texts)
    return np.frombuffer(content, np.uint8)


def load(path: Path, kind: type[K]) -> K:
    """Read a cache entry. Raises one of DAMAGED if the file has changed since it was written."""
    if manifest.digest(path) != path.name.split(".")[1]:
        raise DataError(f"{path}: damaged")
    types = kind.__annotations__
    content: dict[str, object] = {}
    with np.load(path, allow_pickle=False) as archive:
        for name in parts_of(kind):
            value = archive[name]
            if types[name] is int:
                value = int(value)
            elif types[name] == list[str]:
                value = value.tobytes().decode().split("\n")[:-1]
            elif types[name] == dict[bytes, int]:
                value = {key: number for number, key in enumerate(value.tobytes().split(b"\n")[:-1])}
            content[name] = value
    loaded = kind(**content)
    if not loaded.is_sound():
        raise DataError(f"{path}: damaged")
    return loaded


def are_cuts(cut: NDArray[np.integer], total: int) -> bool:
    """Whether `cut` starts at 0, never decreases, and ends at `total`."""
    return bool(len(cut) and cut[0] == 0 and cut[-1] == total and not (np.diff(cut) < 0).any())


def within(indices: NDArray[np.integer], size: int) -> bool:
    """Whether 0 <= index < size for every index."""
    return not len(indices) or (int(indices.min()) >= 0 and int(indices.max()) < size)
