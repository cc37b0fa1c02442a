"""`manifest.json`: sizes and checksums of the files of a folder, to detect changed or truncated files before
they do harm.

    {"format": "nmt-manifest 1", "files": {"step-100.pt": [{"size": 4242, "sha256": "..."}], ...}}

While a file is being replaced, it is listed with its old and its new checksum, so that the folder is valid
whenever a process is killed. Stamps record in the same way whether an input has changed.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from io import BufferedReader
from pathlib import Path

from nmt.errors import DataError
from nmt.io import files

FILE = "manifest.json"
FORMAT = "nmt-manifest 1"


@dataclass(frozen=True)
class ManifestEntry:
    """One version of a file: its size in bytes and its checksum."""

    size: int
    sha256: str


# the version of a file; while it is being replaced, also the previous version
Entries = dict[str, list[ManifestEntry]]
Stamp = dict[str, int | str]  # of an input: size, modification time (ns), sha256; stored as JSON


def digest(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits. DataError if it cannot be read."""
    with files.naming_unread(path), files.open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def entry(path: Path) -> ManifestEntry:
    """Size and checksum of a file as it is now. DataError if it cannot be read."""
    checksum = digest(path)
    return ManifestEntry(path.stat().st_size, checksum)


def read(folder: str | Path) -> Entries | None:
    """The manifest of a folder, None without one. DataError if it is damaged or of another format."""
    path = Path(folder) / FILE
    try:
        content = json.loads(files.read_small(path).decode("utf-8"))
        if content["format"] != FORMAT:
            raise DataError(
                f"{path}: format {str(content['format'])[:40]!r}, this version reads {FORMAT!r}: train "
                "again, or use the version that wrote it"
            )
        return {
            str(name): [ManifestEntry(int(row["size"]), str(row["sha256"])) for row in entries]
            for name, entries in content["files"].items()
        }
    except FileNotFoundError:
        return None
    except OSError as error:
        raise files.cannot_read(path, error) from error
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}: damaged manifest; copy the folder again") from error


def load(folder: str | Path) -> Entries:
    """The manifest of a folder that must have one. DataError if it is missing, or as from `read`."""
    entries = read(folder)
    if entries is None:
        raise DataError(f"{Path(folder) / FILE}: missing; was the folder copied whole?")
    return entries


def write(folder: str | Path, names: Iterable[str]) -> None:
    """Write a manifest of these files of a folder, with their present sizes and checksums. DataError if one
    cannot be read, UserError if the manifest cannot be written."""
    save(folder, {name: [entry(Path(folder) / name)] for name in names})


def save(folder: str | Path, entries: Entries) -> None:
    """Write the manifest of a folder. UserError if that fails."""
    content = {name: [asdict(entry) for entry in parts] for name, parts in sorted(entries.items())}
    files.write_text(Path(folder) / FILE, [json.dumps({"format": FORMAT, "files": content}, indent=1)])


def publish(folder: str | Path, parts: Mapping[str, Path], drop: Iterable[str] = ()) -> None:
    """Move finished files into a folder, in the order of `parts`, and enter them in its manifest; then remove
    the files named in `drop` from both. `parts`: final name -> present path, on the same disk. UserError if
    that fails.

    At every moment the manifest has a checksum for each file of the folder: until all are renamed it lists
    the old versions too.
    """
    folder, previous = Path(folder), read(folder) or {}
    for part in parts.values():
        sync(part)
    after = previous | {name: [entry(part)] for name, part in parts.items()}
    save(folder, after | {name: [*after[name], *previous.get(name, [])] for name in parts})
    with files.naming_unwritten(folder):
        for name, part in parts.items():
            os.replace(part, folder / name)
        forgotten = set(drop)
        save(folder, {name: rows for name, rows in after.items() if name not in forgotten})
        for name in forgotten:
            (folder / name).unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file is on the disk. UserError if that fails."""
    with files.naming_unwritten(path), open(path, "rb") as stream:
        os.fsync(stream.fileno())


def verify(folder: str | Path, names: Iterable[str]) -> None:
    """Check these files against the manifest. DataError for the first that differs, is missing or is not
    listed, or if there is no manifest."""
    entries = load(folder)
    for name in names:
        with open_verified(folder, name, entries):
            pass


def open_verified(folder: str | Path, name: str, entries: Entries | None) -> BufferedReader:
    """Open a file of a folder, and verify its size and checksum against the manifest `entries` (None: do not
    verify). The caller reads the very file that was verified, even if it is replaced in the meantime.
    DataError if the file is missing, unreadable, damaged or not in the manifest."""
    path = Path(folder) / name
    listed = entries is not None and name in entries
    try:
        stream = files.open_regular(path)
    except FileNotFoundError as error:
        raise DataError(
            f"{path}: missing{f', but {FILE} lists it' if listed else ''}; was the folder copied whole?"
        ) from error
    except OSError as error:
        raise files.cannot_read(path, error) from error
    if entries is None:
        return stream
    try:
        if not listed:
            raise DataError(
                f"{path}: not in {FILE} of its folder; was it put there by hand? Restore the folder from a "
                "copy"
            )
        sizes, digests = {entry.size for entry in entries[name]}, {entry.sha256 for entry in entries[name]}
        if (
            os.fstat(stream.fileno()).st_size not in sizes
            or hashlib.file_digest(stream, "sha256").hexdigest() not in digests
        ):
            raise DataError(f"{path}: damaged: size or checksum is not the one in {FILE}; copy it again")
        stream.seek(0)
    except OSError as error:  # a directory of that name, or a failing disk
        stream.close()
        raise files.cannot_read(path, error) from error
    except DataError:
        stream.close()
        raise
    return stream


def stamp(path: str | Path) -> Stamp:
    """Size, modification time and checksum of an input as it is now. DataError if it cannot be read."""
    status = files.status(path)
    return {"size": status.st_size, "time": status.st_mtime_ns, "sha256": digest(path)}


def unchanged(path: str | Path, recorded: Mapping[str, object]) -> bool:
    """Whether an input still has the content that its stamp records. It is read only if its size is the
    recorded one and its modification time is not. DataError if it cannot be read."""
    status = files.status(path)
    if status.st_size != recorded.get("size"):
        return False
    return status.st_mtime_ns == recorded.get("time") or digest(path) == recorded.get("sha256")


def digest64(text: bytes) -> bytes:
    """8-byte digest to find equal texts; of 100 million, any collide with a probability of 0.03%."""
    return blake2b(text, digest_size=8).digest()
