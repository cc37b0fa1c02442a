"""Folders of arrays that are mapped into memory: opened in milliseconds, shared by all processes that read
them, and read from the disk only where they are used.

    word.npy ...     an array each, in numpy's own format
    contents.json    what they are: {"format": "nmt-arrays 1", "kind": ..., "numbers": {}, "sources": []}
    manifest.json    sizes and checksums of all files

Checksums of the arrays are verified only once on a machine: whoever has verified them leaves a stamp, a file
with the sizes and modification times of that moment. Sizes are compared on every opening, so that no index
leads behind the end of a truncated file.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.errors import DataError, UserError
from nmt.io import files, manifest

if TYPE_CHECKING:  # commands that only ask whether a path is such a folder start without numpy
    import numpy as np
    from numpy.typing import NDArray

CONTENTS = "contents.json"
FORMAT = "nmt-arrays 1"
ENDING = ".npy"

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
    """Write arrays and numbers to an existing folder. UserError if that fails. The folder is complete once
    its manifest is there, which is written last."""
    import numpy as np

    contents = {"format": FORMAT, "kind": kind, "numbers": dict(numbers), "sources": list(sources)}
    try:
        for name, array in arrays.items():
            with open(folder / f"{name}{ENDING}", "wb") as stream:
                np.save(stream, array, allow_pickle=False)
                stream.flush()
                os.fsync(stream.fileno())
    except OSError as error:
        raise files.cannot_write(folder, error) from error
    files.write_text(folder / CONTENTS, [json.dumps(contents, indent=1)])
    manifest.write(folder, [CONTENTS, *(f"{name}{ENDING}" for name in arrays)])


def load(folder: str | Path, stamp: Path | None = None, verify: bool = False) -> MappedFolder:
    """Map the arrays of a folder. DataError for a folder that is damaged, or of another format.

    `stamp`: file that says that the folder has been verified. Without such a file, or with `verify`, all
    checksums are verified first.
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
        kind=str(contents["kind"]),
        arrays={name.removesuffix(ENDING): map_array(folder / name) for name in names},
        numbers={str(name): int(value) for name, value in contents["numbers"].items()},
        sources=list(map(str, contents["sources"])),
        state=now,
        verified=verified,
    )


def parse_contents(path: Path, text: bytes) -> dict:  # type: ignore[type-arg]
    """Parse the description of a folder. DataError for anything else."""
    try:
        contents = json.loads(text)
        if contents["format"] != FORMAT:
            raise DataError(
                f"{path}: format {str(contents['format'])[:40]!r}, this version reads {FORMAT!r}; make the "
                "folder again"
            )
        fits = isinstance(contents["numbers"], dict) and isinstance(contents["sources"], list)
        if fits and isinstance(contents["kind"], str):
            return dict(contents)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise DataError(f"{path}: not a description of mapped arrays; make the folder again")


def check_sizes(folder: Path, entries: manifest.Entries, names: Sequence[str]) -> None:
    """DataError for a file that is missing, not regular, or of another size than the manifest says."""
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
    except (OSError, ValueError, EOFError, SyntaxError, TypeError, OverflowError) as error:
        raise DataError(f"{path}: not an array of numpy: {str(error)[:100]}") from error


def state(folder: Path, names: Sequence[str]) -> dict[str, object]:
    """Sizes, modification times and inodes of files, from which a later change can be told."""
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
    """Record that a folder has been verified in the state in which it was opened. Where that cannot be
    written, the folder will be verified again next time."""
    with suppress(OSError, UserError):
        files.write_text(stamp, [json.dumps(mapped.state)])
