"""What loading a table or a language model made of text, kept for the next time: one file each in a cache
folder of the user.

    Cache().keep(["phrase-table.gz"], make, Table)     # make(), or what an earlier call made of the same file

A file is called KEY.CHECKSUM.npz: KEY tells what it was made from (paths, sizes, times, format), CHECKSUM is
that of its content. It gets this name when it is whole, so processes that fill the cache at once never mix,
and a damaged file is made again. The folder has a limit; what was not used for the longest time goes first.
"""

import hashlib
import json
import logging
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nmt import manifest
from nmt.errors import ConfigError, DataError, UserError
from nmt.locks import locked
from nmt.numbers import real

log = logging.getLogger("nmt.decode")

FORMAT = 2
FOLDER, LIMIT = "NMT_CACHE", "NMT_CACHE_GB"  # environment variables
DEFAULT_GB = 10.0
STAMP = "stamp"


class Kept(Protocol):
    """A dataclass or NamedTuple of arrays, numbers, lists of text, and dictionaries that number bytes."""

    def is_sound(self) -> bool:
        """Do all sizes fit, and does every index point into its array? Compiled code checks neither."""
        ...


@dataclass(frozen=True)
class Entry:
    """A file of the cache."""

    path: Path
    size: int
    used: float  # when, in seconds of the epoch

    def sources(self) -> list[str]:
        """The files it was made from; none when it is damaged."""
        try:
            with np.load(self.path, allow_pickle=False) as held:
                return [str(source[0]) for source in json.loads(held[STAMP].tobytes())["sources"]]
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


def default_folder() -> Path:
    """$NMT_CACHE, else nmt-smt in $XDG_CACHE_HOME, else ~/.cache/nmt-smt"""
    if given := os.environ.get(FOLDER):
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "nmt-smt"


def default_limit() -> int:
    """Bytes. ConfigError for a value of $NMT_CACHE_GB that is no number."""
    text = os.environ.get(LIMIT) or f"{DEFAULT_GB:g}"
    try:
        gigabytes = real(text)
    except ValueError as error:
        raise ConfigError(f"{LIMIT}: {error}, expected the size of the cache in GB") from error
    if gigabytes < 0:
        raise ConfigError(f"{LIMIT}: {gigabytes:g} is negative, expected the size of the cache in GB")
    return int(gigabytes * 1e9)


class Cache:
    def __init__(self, folder: str | Path = "", limit: int | None = None) -> None:
        """`folder`: instead of the user's; `limit`: bytes, instead of the user's."""
        self.folder = Path(folder) if folder else default_folder()
        self.limit = default_limit() if limit is None else limit

    def keep(self, sources: Sequence[str], make: Callable[[], Any], kind: type) -> Any:
        """`make()`, or what an earlier call made of the same sources."""
        stamp = stamp_of(sources, kind)
        key = hashlib.sha256(stamp).hexdigest()[:24]
        for entry in self.entries(key):
            try:
                found = load(entry.path, kind)
                with suppress(OSError):
                    os.utime(entry.path)
                return found
            except FileNotFoundError:
                continue  # another process made room
            except DAMAGED:
                log.warning("%s: damaged; made again from %s", entry.path, sources[0])
                with suppress(OSError):
                    entry.path.unlink()
        made = make()
        try:
            self.store(key, stamp, made)
        except (OSError, UserError) as error:
            log.info("%s: not kept in the cache: %s", sources[0], error)
        return made

    def entries(self, key: str = "*") -> list[Entry]:
        """The files of the cache, the last used first."""
        return sorted(self._entries(key), key=lambda entry: (-entry.used, entry.path))

    def _entries(self, key: str) -> Iterator[Entry]:
        for path in self.folder.glob(f"{key}.*.npz"):
            with suppress(FileNotFoundError):
                status = path.stat()
                yield Entry(path, status.st_size, status.st_mtime)

    def store(self, key: str, stamp: bytes, made: Any) -> None:
        """Write beside, then rename, then make room. UserError when another process stores something right
        now."""
        with locked(self.folder, "decoder cache"):
            self.sweep()
            part = self.folder / f"{key}.part"
            try:
                with open(part, "wb") as stream:
                    np.savez(
                        stream, allow_pickle=False, **{STAMP: np.frombuffer(stamp, np.uint8)}, **arrays(made)
                    )
                if part.stat().st_size > self.limit:
                    raise UserError(
                        f"{part.stat().st_size / 1e9:.1f} GB are more than the cache may hold ({LIMIT})"
                    )
                part.rename(self.folder / f"{key}.{manifest.digest(part)}.npz")
            finally:
                part.unlink(missing_ok=True)
            self.trim()

    def sweep(self) -> None:
        """Remove what a killed process left; the lock says that nobody is writing it."""
        for left in self.folder.glob("*.part"):
            left.unlink(missing_ok=True)

    def trim(self) -> None:
        total = 0
        for entry in self.entries():
            total += entry.size
            if total > self.limit:
                entry.path.unlink(missing_ok=True)

    def clear(self) -> list[Entry]:
        """Remove everything; returns what was there. UserError while another process stores something."""
        if not self.folder.exists():
            return []
        with locked(self.folder, "smt-cache clear"):
            self.sweep()
            found = self.entries()
            for entry in found:
                entry.path.unlink(missing_ok=True)
        return found


def stamp_of(sources: Sequence[str], kind: type) -> bytes:
    """What a file of the cache was made from."""
    states = [(os.path.realpath(source), os.stat(source)) for source in sources]
    told = {
        "format": FORMAT,
        "kind": kind.__name__,
        "parts": parts_of(kind),
        "sources": [[path, state.st_size, state.st_mtime_ns] for path, state in states],
    }
    return json.dumps(told).encode()


def parts_of(kind: type) -> list[str]:
    return list(getattr(kind, "_fields", ())) or [field.name for field in fields(kind)]


def arrays(made: Any) -> dict[str, Any]:
    """Everything as arrays; texts, in which no line ends, as the bytes of lines."""
    values = {name: getattr(made, name) for name in parts_of(type(made))}
    return {
        name: value if isinstance(value, np.ndarray | int) else lines(value) for name, value in values.items()
    }


def lines(texts: Any) -> Any:
    content = b"".join((text if isinstance(text, bytes) else text.encode()) + b"\n" for text in texts)
    return np.frombuffer(content, np.uint8)


def load(path: Path, kind: type) -> Any:
    """What was stored. DataError and others, see DAMAGED, when it is not what was written."""
    if manifest.digest(path) != path.name.split(".")[1]:
        raise DataError(f"{path}: damaged")
    types = kind.__annotations__
    content: dict[str, Any] = {}
    with np.load(path, allow_pickle=False) as held:
        for name in parts_of(kind):
            value = held[name]
            if types[name] is int:
                value = int(value)
            elif types[name] == list[str]:
                value = value.tobytes().decode().split("\n")[:-1]
            elif types[name] == dict[bytes, int]:
                value = {key: number for number, key in enumerate(value.tobytes().split(b"\n")[:-1])}
            content[name] = value
    found = kind(**content)
    if not found.is_sound():
        raise DataError(f"{path}: damaged")
    return found


def are_cuts(cut: Any, total: int) -> bool:
    """0, then never falling, up to the length of what is cut?"""
    return len(cut) > 0 and cut[0] == 0 and cut[-1] == total and not (np.diff(cut) < 0).any()


def within(indices: Any, size: int) -> bool:
    """0 <= every index < size?"""
    return not len(indices) or (int(indices.min()) >= 0 and int(indices.max()) < size)
