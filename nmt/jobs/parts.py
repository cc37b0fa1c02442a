"""Files between the steps of a map and reduce: each has numbered parts, one for each task of the next step.

    nmt-smt parts 1      and a line feed
    number of parts      64-bit, little-endian, as all numbers
    of each part         where it begins in the file, its bytes, its CRC-32
    the parts

A file is written whole or not at all; what a power failure leaves of it is noticed by its checksums. Several
processes, on several hosts, may write the same file at the same time: they write the same bytes.
"""

import os
import struct
import uuid
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from nmt import files
from nmt.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = b"nmt-smt parts 1\n"
NUMBER, ENTRY = struct.Struct("<Q"), struct.Struct("<QQQ")
HEAD = len(MAGIC) + NUMBER.size
Part: TypeAlias = "bytes | NDArray[np.uint64] | NDArray[np.int64]"


class Damaged(UserError):
    """A file of a job that is missing, cut off or changed."""


def damaged(path: Path) -> Damaged:
    """The error that names the file, and the remedy."""
    return Damaged(f"{path}: missing or damaged; start the command again with --resume, which makes it anew")


def write(path: Path, parts: Iterable[Part]) -> None:
    """Write a file. UserError on a full disk, for instance."""
    views = [memoryview(part if isinstance(part, bytes) else part.data) for part in parts]
    buffers = [view if view.c_contiguous else memoryview(view.tobytes()) for view in views]
    sizes = [buffer.nbytes for buffer in buffers]
    begin = HEAD + ENTRY.size * len(buffers)
    beside = path.with_name(f"{path.name}.part{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(exist_ok=True)
        with open(beside, "wb") as out:
            out.write(MAGIC + NUMBER.pack(len(buffers)))
            for buffer, size in zip(buffers, sizes, strict=True):
                out.write(ENTRY.pack(begin, size, zlib.crc32(buffer) if size else 0))
                begin += size
            for buffer, size in zip(buffers, sizes, strict=True):
                if size:
                    out.write(buffer)
        os.replace(beside, path)
    except OSError as error:
        raise files.cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def entry(path: Path, number: int) -> tuple[int, int, int]:
    """Where a part begins, its bytes and its checksum."""
    try:
        with open(path, "rb") as stream:
            stream.seek(HEAD + ENTRY.size * number)
            begin, size, checksum = ENTRY.unpack(stream.read(ENTRY.size))
            if begin + size > os.fstat(stream.fileno()).st_size:
                raise damaged(path)
    except (OSError, struct.error) as error:
        raise damaged(path) from error
    return begin, size, checksum


def read(path: Path, number: int) -> bytes:
    """A part. Damaged where it is not what was written."""
    begin, size, checksum = entry(path, number)
    try:
        with open(path, "rb") as stream:
            stream.seek(begin)
            found = stream.read(size)
    except OSError as error:
        raise damaged(path) from error
    if len(found) != size or zlib.crc32(found) != checksum:
        raise damaged(path)
    return found


def count(path: Path) -> int:
    """The number of parts of a file."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(HEAD)
    except OSError as error:
        raise damaged(path) from error
    if len(head) < HEAD or not head.startswith(MAGIC):
        raise damaged(path)
    found: int = NUMBER.unpack_from(head, len(MAGIC))[0]
    return found


def is_whole(path: Path) -> bool:
    """Is the file there, with all its parts as they were written?"""
    try:
        size = path.stat().st_size
        number = count(path)
        end = HEAD + ENTRY.size * number
        if end > size:
            return False
        for part in range(number):
            if entry(path, part)[0] != end:
                return False
            end += len(read(path, part))
    except (Damaged, OSError):
        return False
    return end == size
