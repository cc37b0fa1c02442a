"""Results of finished chunks on disk, in any order, each under the number of its chunk.

    number of the chunk, length in bytes (8 bytes each, little-endian), checksum (4), and the result

Records are appended; what follows the last whole one is cut off, so a job may be killed at any moment.
"""

import struct
import zlib
from pathlib import Path

from nmt import files
from nmt.errors import DataError

KEY = struct.Struct("<QQ")
CHECKSUM = struct.Struct("<I")


class Records:
    """A file of results. Whoever has it open holds the lock of its folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[int, tuple[int, int]] = {}  # of a chunk: where its result begins, and its length
        self.end = 0  # bytes of whole records
        if path.exists():
            self.find()

    def __contains__(self, number: int) -> bool:
        return number in self.places

    def __len__(self) -> int:
        return len(self.places)

    def find(self) -> None:
        """Note the place of each whole record."""
        size, head = self.path.stat().st_size, KEY.size + CHECKSUM.size
        with open(self.path, "rb") as stream:
            while len(read := stream.read(head)) == head:
                number, length = KEY.unpack(read[: KEY.size])
                begin = stream.tell()
                if length > size - begin or read[KEY.size :] != checksum(
                    read[: KEY.size], stream.read(length)
                ):
                    break
                self.places[number] = begin, length
                self.end = stream.tell()

    def read(self, number: int) -> bytes:
        """The result of a finished chunk. DataError where it can no longer be read."""
        begin, length = self.places[number]
        try:
            with open(self.path, "rb") as stream:
                stream.seek(begin)
                return stream.read(length)
        except OSError as error:
            raise DataError(f"{self.path}: cannot read: {error.strerror or error}") from error

    def add(self, number: int, result: bytes) -> None:
        """Append the result of a chunk. UserError where it cannot be written."""
        key = KEY.pack(number, len(result))
        try:
            with open(self.path, "r+b" if self.path.exists() else "wb") as stream:
                stream.truncate(self.end)
                stream.seek(self.end)
                stream.write(key + checksum(key, result) + result)
                stream.flush()
                end = stream.tell()
        except OSError as error:
            raise files.cannot_write(self.path, error) from error
        self.places[number] = end - len(result), len(result)
        self.end = end


def checksum(key: bytes, result: bytes) -> bytes:
    """Of a whole record."""
    return CHECKSUM.pack(zlib.crc32(result, zlib.crc32(key)))
