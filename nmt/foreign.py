"""Files of folders that a stranger may have made: runs, hybrid systems, jobs.

A pipe or a device would hang the command or fill the memory, and a link to a file elsewhere would show that
file's lines in messages. So files are regular and not larger than their kind can be, and a link that leads
out of the folder is followed only where nothing of its target can be shown: to weights, say, and to a file
whose checksum the folder knows. A folder may be a link itself.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from nmt.errors import DataError

SMALL = 16 << 20  # bytes of a file that is read whole: JSON, a configuration
TEXT = 1 << 30  # of a vocabulary, of subwords, of a log
NOT_REGULAR = "not a regular file (a pipe or a device?)"


def opened(path: str | Path, most: int | None = None) -> BufferedReader:
    """A regular file, opened for reading; a pipe does not block. OSError for others, and for more than `most`
    bytes."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        check_status(os.fstat(number), most)
        return open(number, "rb")
    except OSError as error:
        os.close(number)
        error.filename = str(path)
        raise


def check_status(status: os.stat_result, most: int | None) -> None:
    """OSError for what is no regular file, or larger than `most` bytes."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, NOT_REGULAR)
    if most is not None and status.st_size > most:
        raise OSError(errno.EFBIG, f"{status.st_size:,} bytes, expected {most:,} at most")


def read(path: str | Path) -> bytes:
    """A small file. OSError as `opened`."""
    with opened(path, SMALL) as stream:
        return stream.read(SMALL)


def check(path: Path, most: int | None = None, inside: bool = True) -> None:
    """DataError for a file that is not regular, too large, or `inside` its folder only by name: a link that
    leads out of it. One that is missing is left to whoever reads it."""
    try:
        check_status(path.stat(), most)
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(f"{path}: cannot read: {error.strerror}") from error
    if inside and leads_out(path):
        raise DataError(f"{path}: a link that leads out of its folder; copy the file itself there (cp -L)")


def leads_out(path: Path) -> bool:
    """Is a file of a folder a link to a file elsewhere?"""
    folder = os.path.realpath(path.parent)
    return os.path.commonpath([folder, os.path.realpath(path)]) != folder
