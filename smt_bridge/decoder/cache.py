"""A cache of parsed tables and language models, so that their text is parsed only once. Each is a folder of
mapped arrays (`nmt/io/mapped.py`) in the user's cache folder.

    Cache().keep(["phrase-table.gz"], make, Table)     # the result of make(), or that of an earlier call

An entry is a folder KEY.CHECKSUM: KEY is a hash of what it was created from (paths, sizes, times, format),
and CHECKSUM that of its manifest. It gets this name once it is complete, so that several processes may fill
the cache at the same time; a damaged entry is created again. The cache has a size limit; the least recently
used entries are removed first.
"""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nmt.errors import ConfigError, DataError, UserError
from nmt.io import manifest, mapped
from nmt.io.files import cache_folder
from nmt.io.locks import locked
from nmt.io.mapped import K, MappedRecord
from nmt.io.numbers import real

log = logging.getLogger(__name__)

FORMAT = 3
LIMIT_VARIABLE = "NMT_CACHE_GB"
DEFAULT_GB = 10.0
PART = ".part"  # ending of the names of unfinished entries
CHECKSUM = "[0-9a-f]" * 64  # pattern of the checksum in the names of finished ones


@dataclass(frozen=True)
class CacheEntry:
    """A folder of the cache."""

    path: Path
    size: int  # bytes
    used: float  # time of the last use, in seconds since the epoch

    def sources(self) -> list[str]:
        """Paths of the files that the entry was created from; empty if the entry is damaged."""
        try:
            return mapped.load(self.path, self.stamp).sources
        except DAMAGED:
            return []

    @property
    def stamp(self) -> Path:
        """Path of the file that records that the entry has been verified."""
        return self.path / mapped.VERIFIED

    def remove(self) -> None:
        """Remove the entry. Processes that have mapped it keep its content."""
        shutil.rmtree(self.path, ignore_errors=True)


# what reading a damaged entry may raise
DAMAGED = (OSError, ValueError, KeyError, TypeError, IndexError, EOFError, UserError, MemoryError)


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
        """`folder`, `limit` (bytes): override the user's cache folder and size limit. Errors as in
        `default_limit`."""
        self.folder = cache_folder(folder)
        self.limit = default_limit() if limit is None else limit

    def keep(self, sources: Sequence[str], make: Callable[[], K], kind: type[K]) -> K:
        """Return the result of `make()`, from the cache if an earlier call stored it for the same sources.

        `sources`: paths of the files that the result depends on; `kind`: its type, whose fields are arrays
        and numbers. Damaged entries are replaced, with a warning; a result that cannot be stored is returned
        all the same. OSError if a source does not exist; also the errors of `make`."""
        key = entry_key(sources, kind)
        for entry in self.entries(key):
            try:
                content = load_entry(entry, kind)
                with suppress(OSError):
                    os.utime(entry.path)
                return content
            except DAMAGED as error:
                if not entry.path.exists():
                    continue  # another process has removed it
                if isinstance(error.__cause__ or error, PermissionError):
                    continue  # the entry belongs to another user
                log.warning("%s: damaged; created again from %s", entry.path, sources[0])
                entry.remove()
        content = make()
        try:
            self.store(key, sources, content)
        except (OSError, UserError) as error:
            log.info("%s: not kept in the cache: %s", sources[0], error)
        return content

    def stamp(self, folder: str | Path) -> Path:
        """Path of the file that records that a folder outside the cache has been verified."""
        return mapped.stamp_file(self.folder, folder)

    def storage(self, sources: Sequence[str]) -> mapped.ArrayStorage:
        """Where to make the arrays of an entry: in the folder if the sources are large and it can be written
        to, otherwise in memory. OSError if a source does not exist."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self.folder, os.W_OK):
            return mapped.MEMORY
        return mapped.choose_storage(self.folder, sources)

    def entries(self, key: str = "*") -> list[CacheEntry]:
        """The entries of the cache, most recently used first. `key`: see `entry_key`; `*` for all."""
        entries: list[CacheEntry] = []
        for path in self.folder.glob(f"{key}.{CHECKSUM}"):
            with suppress(FileNotFoundError, NotADirectoryError):
                size = sum(part.stat().st_size for part in path.iterdir())
                entries.append(CacheEntry(path, size, path.stat().st_mtime))
        return sorted(entries, key=lambda entry: (-entry.used, entry.path))

    def store(self, key: str, sources: Sequence[str], content: MappedRecord) -> None:
        """Write an entry under a temporary name, rename it, and trim the cache. `key`: see `entry_key`;
        `sources`: paths of its sources, which it records. UserError if another process is writing to the
        cache, or if the entry is larger than its limit; OSError if it cannot be written."""
        with locked(self.folder, "decoder cache"):
            self.sweep()
            part = self.folder / f"{key}{PART}"
            part.mkdir()
            try:
                mapped.write_record(part, content, list(map(os.path.realpath, sources)))
                size = sum(path.stat().st_size for path in part.iterdir())
                if size > self.limit:
                    raise UserError(
                        f"{size / 1e9:.1f} GB are more than the cache may hold; raise {LIMIT_VARIABLE}"
                    )
                entry = self.folder / f"{key}.{manifest.digest(part / manifest.FILE)}"
                shutil.rmtree(entry, ignore_errors=True)  # damaged, and this process could not remove it
                part.rename(entry)
            finally:
                shutil.rmtree(part, ignore_errors=True)
            self.trim()

    def sweep(self) -> None:
        """Remove unfinished entries of killed processes. The caller's lock keeps others from writing."""
        for part in self.folder.glob(f"*{PART}"):
            shutil.rmtree(part, ignore_errors=True) if part.is_dir() else part.unlink(missing_ok=True)

    def trim(self) -> None:
        """Remove the least recently used entries until the cache is within its limit."""
        total = 0
        for entry in self.entries():
            total += entry.size
            if total > self.limit:
                entry.remove()

    def clear(self) -> list[CacheEntry]:
        """Remove all entries and return them. UserError if another process is writing to the cache."""
        if not self.folder.exists():
            return []
        with locked(self.folder, "smt-cache clear"):
            self.sweep()
            entries = self.entries()
            for entry in entries:
                entry.remove()
            for stamp in self.folder.glob(f"{mapped.VERIFIED}-*"):
                stamp.unlink(missing_ok=True)
        return entries


def entry_key(sources: Sequence[str], kind: type[MappedRecord]) -> str:
    """Hash what determines an entry: the cache format, its type and fields, and the paths, sizes and
    modification times of its sources. OSError if a source does not exist."""
    states = [(os.path.realpath(source), os.stat(source)) for source in sources]
    origin = {
        "format": FORMAT,
        "kind": kind.__name__,
        "parts": mapped.field_names(kind),
        "sources": [[path, state.st_size, state.st_mtime_ns] for path, state in states],
    }
    return hashlib.sha256(json.dumps(origin).encode()).hexdigest()[:24]


def load_entry(entry: CacheEntry, kind: type[K]) -> K:
    """Map a cache entry. Raises one of DAMAGED if it has been changed since it was written."""
    if manifest.digest(entry.path / manifest.FILE) != entry.path.name.split(".")[1]:
        raise DataError(f"{entry.path}: damaged")
    return mapped.load_record(entry.path, kind, "the decoder", entry.stamp)
