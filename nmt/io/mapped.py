"""Folders of arrays that are mapped into memory: opened in milliseconds, shared by all processes that read
them, and read from the disk only where they are used.

    word.npy ...     an array each, in numpy's own format
    contents.json    their description: {"format": "nmt-arrays 1", "kind": ..., "numbers": {}, "sources": []}
    manifest.json    sizes and checksums of all files

Checksums of the arrays are verified only once on a machine: whoever has verified them leaves a stamp, a file
with the sizes and modification times of that moment. Sizes are compared on every opening, so that no index
leads past the end of a truncated file.
"""

import dataclasses
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Generic, Protocol, TypeVar

from nmt.errors import DataError, UserError
from nmt.io import files, manifest

if TYPE_CHECKING:  # commands that only ask whether a path is such a folder start without numpy
    import numpy as np
    from numpy.typing import NDArray

CONTENTS = "contents.json"
FORMAT = "nmt-arrays 1"
ENDING = ".npy"
VERIFIED = "verified"  # beginning of the names of stamps
# Regular expression of the names of files in a folder that was never finished: one without a manifest.
UNFINISHED = r"\w+\.npy|contents\.json(\.part.*)?|manifest\.json\.part.*"

Arrays = dict[str, "NDArray[np.generic]"]


@dataclass(frozen=True)
class MappedFolder:
    """An open folder of arrays. The arrays cannot be written to."""

    folder: Path
    kind: str  # what the arrays are, such as the name of a class
    arrays: Arrays
    numbers: dict[str, int]
    sources: list[str] = field(default_factory=list)  # the files that they were made from
    state: dict[str, object] = field(default_factory=dict)  # sizes and times of the files before the checks
    verified: bool = False  # whether a stamp says that the files have not changed since they were verified


def is_mapped(path: str | Path) -> bool:
    """Whether a path is a folder of arrays, of any kind."""
    return (Path(path) / CONTENTS).is_file()


def write(
    folder: Path,
    kind: str,
    arrays: "Mapping[str, NDArray[np.generic]]",
    numbers: Mapping[str, int],
    sources: Sequence[str] = (),
) -> None:
    """Write arrays and numbers, by name, to an existing folder. `kind`: what they are, such as the name of a
    class; `sources`: the files that they were made from. The manifest is written last: with it the folder is
    complete. UserError if that fails."""
    contents = {"format": FORMAT, "kind": kind, "numbers": dict(numbers), "sources": list(sources)}
    with files.naming_unwritten(folder):
        for name, array in arrays.items():
            save_array(folder / f"{name}{ENDING}", array)
    files.write_text(folder / CONTENTS, [json.dumps(contents, indent=1)])
    manifest.write(folder, [CONTENTS, *(f"{name}{ENDING}" for name in arrays)])


class PythonStream:
    """A stream of which numpy sees only `write`. Into a file numpy writes by itself, through a buffer of C
    whose last part is lost without an error if the disk is full."""

    def __init__(self, stream: BinaryIO) -> None:
        self.write = stream.write


def save_array(path: str | Path, array: "NDArray[np.generic]") -> None:
    """Write an array to a file in numpy's format, and to the disk. OSError if the disk is full."""
    import numpy as np

    with open(path, "wb") as stream:
        np.save(PythonStream(stream), array, allow_pickle=False)
        stream.flush()
        os.fsync(stream.fileno())


def load(folder: str | Path, stamp: Path | None = None, verify: bool = False) -> MappedFolder:
    """Open a folder of arrays by mapping them into memory. DataError if it is missing, damaged, or of another
    format.

    `stamp`: file that says in which state the folder has been verified. Without it, in another state, or with
    `verify`, all checksums are verified first. Writes no stamp.
    """
    folder = Path(folder)
    entries = manifest.load(folder)
    with manifest.open_verified(folder, CONTENTS, entries) as stream:
        contents = parse_contents(folder / CONTENTS, stream.read(files.SMALL_FILE))
    names = [name for name in entries if name.endswith(ENDING)]
    check_sizes(folder, entries, names)
    now = state(folder, names)
    verified = not verify and stamp is not None and read_stamp(stamp) == now
    if not verified:
        manifest.verify(folder, names)
    return MappedFolder(
        folder=folder,
        kind=contents["kind"],
        arrays={name.removesuffix(ENDING): map_array(folder / name) for name in names},
        numbers=contents["numbers"],
        sources=list(map(str, contents["sources"])),
        state=now,
        verified=verified,
    )


def parse_contents(path: Path, text: bytes) -> dict:  # type: ignore[type-arg]
    """Parse contents.json, the description of a folder of arrays. DataError, which names `path`, if it is
    malformed or of another format."""
    try:
        contents = json.loads(text)
        if contents["format"] != FORMAT:
            raise DataError(
                f"{path}: format {str(contents['format'])[:40]!r}, this version reads {FORMAT!r}; make the "
                "folder again"
            )
        numbers, sources = contents["numbers"], contents["sources"]
        fits = isinstance(numbers, dict) and all(type(value) is int for value in numbers.values())
        if fits and isinstance(sources, list) and isinstance(contents["kind"], str):
            return dict(contents)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise DataError(f"{path}: not a description of mapped arrays; make the folder again")


def check_sizes(folder: Path, entries: manifest.Entries, names: Sequence[str]) -> None:
    """DataError for one of these files that is missing, not regular, or not of the manifest's size."""
    for name in names:
        path = folder / name
        files.check_regular(path)
        if not path.exists():
            raise DataError(f"{path}: missing, but {manifest.FILE} lists it; was the folder copied whole?")
        if path.stat().st_size not in {entry.size for entry in entries[name]}:
            raise DataError(f"{path}: damaged: its size is not the one in {manifest.FILE}; copy it again")


def map_array(path: Path) -> "NDArray[np.generic]":
    """Map an array, which cannot be written to. DataError for a file of another format."""
    import numpy as np

    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except Exception as error:  # Python's own parser reads the header, and may raise a MemoryError
        raise DataError(f"{path}: not an array of numpy: {str(error)[:100]}") from error


def state(folder: Path, names: Sequence[str]) -> dict[str, object]:
    """The path of a folder with the sizes, modification times (ns) and inodes of these files and of its
    manifest, as JSON can store them. They differ after a change."""
    rows = {}
    for name in (manifest.FILE, *names):
        status = (folder / name).stat()
        rows[name] = [status.st_size, status.st_mtime_ns, status.st_ino]
    return {"folder": os.path.realpath(folder), "files": rows}


def read_stamp(stamp: Path) -> object:
    """The state that a stamp records; None if there is none."""
    try:
        return json.loads(files.read_small(stamp))
    except (OSError, ValueError, RecursionError):
        return None


def write_stamp(stamp: Path, mapped: MappedFolder) -> None:
    """Record in the file `stamp` that a folder has been verified, in the state in which it was opened. If
    that cannot be written, the folder will be verified again next time."""
    with suppress(OSError, UserError):
        files.write_text(stamp, [json.dumps(mapped.state)])


def stamp_file(cache: Path, folder: str | Path) -> Path:
    """Path of the stamp, in the folder `cache`, that says that `folder` has been verified."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:24]
    return cache / f"{VERIFIED}-{name}"


# ---- records -----------------------------------------------------------------------------------------------


class MappedRecord(Protocol):
    """A dataclass or NamedTuple of arrays, integers and lists of strings, kept as a folder of arrays."""

    def is_sound(self) -> bool:
        """Whether all sizes agree and all indices are within bounds, which compiled code does not check."""


K = TypeVar("K", bound=MappedRecord)


def field_names(kind: type[MappedRecord]) -> list[str]:
    """The names of the fields of a dataclass or NamedTuple."""
    return list(kind.__annotations__)


def optional_fields(kind: type[MappedRecord]) -> set[str]:
    """The names of the fields that older folders lack: those of a dataclass that have defaults."""
    fields: Mapping[str, dataclasses.Field[object]] = getattr(kind, "__dataclass_fields__", {})
    return {name for name, each in fields.items() if each.default_factory is not dataclasses.MISSING}


def write_record(folder: Path, record: MappedRecord, sources: Sequence[str]) -> None:
    """Write all fields to an empty folder. `sources`: what they were made from. UserError if that fails."""
    values = {name: getattr(record, name) for name in field_names(type(record))}
    write(
        folder,
        type(record).__name__,
        {name: as_array(value) for name, value in values.items() if not isinstance(value, int)},
        {name: value for name, value in values.items() if isinstance(value, int)},
        sources,
    )


def as_array(value: "NDArray[np.generic] | list[str]") -> "NDArray[np.generic]":
    """Convert strings, none of which has a line end, to an array of bytes, a line for each."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return value
    return np.frombuffer("".join(f"{text}\n" for text in value).encode(), np.uint8)


def load_record(
    folder: str | Path, kind: type[K], maker: str, stamp: Path | None = None, verify: bool = False
) -> K:
    """Open a folder of arrays as a record of type `kind`. `maker`: the command that writes such folders, for
    messages; `stamp`, `verify`: as in `load`. A record whose checksums are verified is also checked by
    `is_sound`, and then the stamp is written. DataError if the folder is damaged, or not of this kind."""
    opened = load(folder, stamp, verify)
    types = kind.__annotations__
    names = {*opened.arrays, *opened.numbers}
    if opened.kind != kind.__name__ or names | optional_fields(kind) != set(types):
        raise DataError(
            f"{folder}: holds {opened.kind[:40]!r} of this or another version, expected {kind.__name__!r} of "
            f"{maker}; make the folder again"
        )
    content: dict[str, object] = {**opened.arrays, **opened.numbers}
    try:
        for name, array in opened.arrays.items():
            if types[name] == list[str]:
                content[name] = array.tobytes().decode().split("\n")[:-1]
        record = kind(**content)
        if not opened.verified and not record.is_sound():
            raise ValueError
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise DataError(f"{folder}: damaged: sizes or indices do not agree; make the folder again") from error
    if stamp is not None and not opened.verified:
        write_stamp(stamp, opened)
    return record


# ---- temporary arrays --------------------------------------------------------------------------------------

ROWS = 1 << 20  # of a block
NumberT = TypeVar("NumberT", bound="np.generic")


class ArrayStorage:
    """Makes temporary arrays, in memory or in a folder. An array in a folder is mapped from a file without a
    name, which is gone with the array; the system writes it to the disk where memory is short."""

    def __init__(self, folder: str | Path | None = None) -> None:
        """`folder`: of the arrays; None: they are in memory."""
        self.folder = folder

    def empty(self, shape: "int | tuple[int, ...]", kind: "type[NumberT]") -> "NDArray[NumberT]":
        """Make an array of this shape and type (`kind`), of any values. OSError if the disk is full."""
        import numpy as np

        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        if self.folder is None or not size:
            return np.empty(shape, kind)
        with tempfile.TemporaryFile(dir=self.folder) as file:
            allocate(file.fileno(), size)
            return np.asarray(np.memmap(file, kind, "r+", shape=shape))

    def enlarge(self, array: "NDArray[NumberT]", used: int, size: int) -> "NDArray[NumberT]":
        """Make an array with space for `size` rows, or twice as many as `array` if that is more, and copy the
        first `used` rows of `array` into it. OSError as from `empty`."""
        larger = self.empty((max(size, 2 * len(array)), *array.shape[1:]), array.dtype.type)
        for rows in blocks(used):
            larger[rows] = array[rows]
        return larger

    def take(self, values: "NDArray[NumberT]", rows: "NDArray[np.int64]") -> "NDArray[NumberT]":
        """Make an array of the values with these indices: (M,), (K,) -> (K,). OSError as from `empty`."""
        result = self.empty(len(rows), values.dtype.type)
        for part in blocks(len(rows)):
            result[part] = values[rows[part]]
        return result

    def select(self, values: "NDArray[NumberT]", chosen: "NDArray[np.bool_]") -> "NDArray[NumberT]":
        """Make an array of the chosen values: (M,), (M,) -> (K,). OSError as from `empty`."""
        result, end = self.empty(int(chosen.sum()), values.dtype.type), 0
        for rows in blocks(len(values)):
            part = values[rows][chosen[rows]]
            result[end : end + len(part)] = part
            end += len(part)
        return result


MEMORY = ArrayStorage()
LARGE = 100_000_000  # bytes of files, as they are stored, whose arrays are made on disk


def choose_storage(folder: str | Path, sources: Sequence[str]) -> ArrayStorage:
    """Choose where to make arrays of what is read from `sources`: in memory, or in a folder if these files
    are large. OSError if one does not exist."""
    return ArrayStorage(folder) if sum(os.stat(path).st_size for path in sources) > LARGE else MEMORY


class GrowingArray(Generic[NumberT]):
    """A one-dimensional array to whose end values are added."""

    def __init__(self, storage: ArrayStorage, kind: type[NumberT]) -> None:
        """`kind`: the type of the values, such as np.int64."""
        self.storage, self.size = storage, 0
        self.array = storage.empty(0, kind)

    @property
    def values(self) -> "NDArray[NumberT]":
        """All values so far, as a view; values added later are not in it."""
        return self.array[: self.size]

    def add(self, values: "NDArray[NumberT]") -> None:
        """Add values at the end. OSError if the disk is full."""
        end = self.size + len(values)
        if end > len(self.array):
            self.array = self.storage.enlarge(self.array, self.size, end)
        self.array[self.size : end] = values
        self.size = end


def allocate(file: int, size: int) -> None:
    """Give an empty file `size` bytes of the disk: a mapped file that lacks them kills its process when it is
    written to. `file`: descriptor. OSError if the disk is full."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    for at in range(0, size, ROWS):
        os.pwrite(file, bytes(min(ROWS, size - at)), at)


def blocks(rows: int, size: int = 0) -> Iterator[slice]:
    """Cut `rows` rows into slices of `size` rows, by default ROWS; the last may be smaller."""
    size = size or ROWS
    for start in range(0, rows, size):
        yield slice(start, min(rows, start + size))


def count_values(values: "NDArray[NumberT]") -> "tuple[NDArray[NumberT], NDArray[np.int64]]":
    """The distinct values of an array in increasing order, at the end nan, and how often each occurs: (M,) ->
    (D,), (D,). Needs memory for a block of values and a few times the distinct ones."""
    import numpy as np

    distinct, counts = values[:0], np.zeros(0, np.int64)
    waiting: list[tuple[NDArray[NumberT], NDArray[np.int64]]] = []
    for rows in blocks(len(values)):
        waiting.append(np.unique(values[rows], return_counts=True))  # one nan, the last
        if rows.stop == len(values) or sum(len(part) for part, _ in waiting) > max(ROWS, len(distinct)):
            everything = np.concatenate([distinct, *(part for part, _ in waiting)])
            weights = np.concatenate([counts, *(part for _, part in waiting)])
            distinct, which = np.unique(everything, return_inverse=True)
            counts = np.bincount(which, weights, len(distinct)).astype(np.int64)
            waiting.clear()
    return distinct, counts
