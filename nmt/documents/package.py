"""ZIP files of office documents. They may come from anywhere: nothing is extracted to a folder, and what they
unpack to is bounded."""

import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO

from nmt.errors import DataError

MOST_PARTS = 5000
LARGEST_PART = 64 << 20  # bytes, unpacked
# What a file may unpack to: so many bytes, or its own size times so much if that is more.
UNPACKED, RATIO = 64 << 20, 50
OLD_OFFICE = b"\xd0\xcf\x11\xe0"  # the beginning of .doc, and of encrypted files
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1
DAMAGES = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, OverflowError, RuntimeError,
    NotImplementedError, IndexError,
)  # fmt: skip


@dataclass(frozen=True)
class Package:
    """The parts of a ZIP file, unpacked."""

    entries: list[zipfile.ZipInfo]
    parts: Mapping[str, bytes]  # by name

    def write(self, changed: Mapping[str, bytes]) -> bytes:
        """The ZIP file with some parts changed, in the same order. The same parts give the same bytes."""
        out = BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for entry in self.entries:
                copy = zipfile.ZipInfo(entry.filename, entry.date_time)
                copy.compress_type, copy.external_attr = entry.compress_type, entry.external_attr
                copy.create_system = entry.create_system
                archive.writestr(copy, changed.get(entry.filename, self.parts[entry.filename]))
        return out.getvalue()


def read_package(data: bytes, name: str) -> Package:
    """Unpack a ZIP file in memory. DataError for one that is damaged or encrypted, that unpacks to far more
    than a document does, or whose names are ambiguous or lead out of it. `name`: of the file."""
    if data.startswith(OLD_OFFICE):
        raise DataError(
            f"{name}:1: is a .doc, or encrypted, expected .docx; save it as .docx, without a password"
        )
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            entries = archive.infolist()
            check_entries(entries, len(data), name)
            parts = {entry.filename: archive.read(entry) for entry in entries}
    except DAMAGES as error:
        what = str(error).split("\n")[0] or type(error).__name__
        raise DataError(
            f"{name}:1: damaged ZIP file ({what}), expected a document; was it copied whole?"
        ) from error
    return Package(entries, parts)


def check_entries(entries: list[zipfile.ZipInfo], size: int, name: str) -> None:
    """DataError for what `read_package` refuses, as far as the directory of a ZIP file of `size` bytes tells.
    No part is unpacked to more than the directory says."""
    if len(entries) > MOST_PARTS:
        raise DataError(
            f"{name}:1: {len(entries):,} parts, expected at most {MOST_PARTS:,}; is this a document?"
        )
    names = [entry.filename for entry in entries]
    for entry in entries:
        location = f"{name}:1: part {entry.filename}"
        if entry.flag_bits & ENCRYPTED:
            raise DataError(f"{location}: is encrypted; save the document without a password")
        if entry.compress_type not in METHODS:
            raise DataError(f"{location}: compression method {entry.compress_type}, expected deflate")
        if entry.filename.startswith("/") or ".." in entry.filename.split("/") or "\\" in entry.filename:
            raise DataError(f"{location}: its name leads out of the document; is this from a trusted source?")
        if entry.file_size > LARGEST_PART:
            raise DataError(f"{location}: unpacks to more than {LARGEST_PART >> 20} MiB; is this a document?")
    if len(set(names)) < len(names):
        twice = next(part for part in names if names.count(part) > 1)
        raise DataError(f"{name}:1: part {twice}: is there twice, expected once; is this a document?")
    if sum(entry.file_size for entry in entries) > max(UNPACKED, RATIO * size):
        raise DataError(
            f"{name}:1: unpacks to more than {RATIO} times its size, expected a document; if you trust it "
            "save it again with less compression"
        )
