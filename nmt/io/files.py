r"""Lines in, lines out: strict UTF-8, plain or gzip, `-` for stdin and stdout. Output is written to a file
beside its target, which is then renamed.

A line ends at `\n` and nowhere else: U+2028, U+0085, form feed, NBSP and a lone `\r` are data. One `\r` at
the end of a line and a byte order mark on line 1 are removed with a warning. Gzip is recognized by the
content of a file, not by its name."""

import errno
import gzip
import io
import itertools
import logging
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import AnyStr, BinaryIO, cast

from nmt.errors import ConfigError, DataError, UserError
from nmt.io import numbers

# ---- folders -----------------------------------------------------------------------------------------------
# The folders above an output are created for writing, and removed again if nothing is written.


@contextmanager
def parent_folders(path: str | Path) -> Iterator[None]:
    """Create the missing folders above a path; remove empty ones at the end. OSError as `make_parents`."""
    folders = make_parents(path)
    try:
        yield
    finally:
        remove_empty_folders(folders)


def make_parents(path: str | Path) -> list[Path]:
    """Create the missing folders above a path; returns them, the innermost first.

    OSError if that fails, and for an absolute path whose first folder does not exist, which is probably a
    mistyped name (`/hme/ann/out`).
    """
    above = list(Path(os.path.abspath(path)).parents)
    missing = [folder for folder in above if not os.path.lexists(folder)]
    if missing and len(missing) == len(above) - 1:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(missing[-1]))
    folders: list[Path] = []
    try:
        for folder in reversed(missing):
            with suppress(FileExistsError):  # another process was faster
                folder.mkdir()
                folders.insert(0, folder)
    except OSError:
        remove_empty_folders(folders)
        raise
    return folders


def remove_empty_folders(folders: Iterable[Path]) -> None:
    """Remove folders, given the innermost first, up to the first that is not empty."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


CACHE_VARIABLE = "NMT_CACHE"


def cache_folder(folder: str | Path = "") -> Path:
    """Choose the folder for files that can be created again: the first of `folder`, $NMT_CACHE, nmt-smt in
    $XDG_CACHE_HOME (if that is absolute) and ~/.cache/nmt-smt that is not empty. Creates nothing."""
    if folder := folder or os.environ.get(CACHE_VARIABLE, ""):
        return Path(folder)
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "nmt-smt"


# ---- files -------------------------------------------------------------------------------------------------


try:  # unpacks twice as fast as zlib
    from isal.igzip import IGzipFile as GzipReader
    from isal.isal_zlib import error as isal_error

    # The stub of isal calls its error an instance.
    UNPACK_ERRORS = (gzip.BadGzipFile, zlib.error, cast("type[Exception]", isal_error))
except ImportError:
    from gzip import GzipFile as GzipReader  # type: ignore[assignment]

    UNPACK_ERRORS = (gzip.BadGzipFile, zlib.error)  # type: ignore[assignment]

log = logging.getLogger(__name__)

BOM = b"\xef\xbb\xbf"
BUFFER = 1 << 20  # 1 MiB reads make gzip 1.4 times faster than the default 8 kiB
GZIP_LEVEL = 6
UNFINISHED = "output"  # the name of an unfinished file in the folder of a job


def name_of(path: str | Path) -> str:
    """The name of a file for messages; `-` becomes <stdin>."""
    return "<stdin>" if str(path) == "-" else str(path)


def cannot_read(path: str | Path, error: Exception) -> DataError:
    """The error for a file that cannot be read."""
    return DataError(f"{name_of(path)}: cannot read: {getattr(error, 'strerror', None) or error}")


@contextmanager
def naming_unread(path: str | Path) -> Iterator[None]:
    """Turn an OSError, such as that of a failing disk, into a DataError that names the file. Errors of broken
    gzip files pass, for `open_bytes` to name them."""
    try:
        yield
    except UNPACK_ERRORS:
        raise
    except OSError as error:
        raise cannot_read(path, error) from error


@contextmanager
def naming_file(path: str | Path) -> Iterator[None]:
    """Put the name of a file before the message of a DataError that lacks it."""
    try:
        yield
    except DataError as error:
        name = name_of(path)
        raise DataError(str(error) if str(error).startswith(name) else f"{name}: {error}") from error


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file as a buffered byte stream, unpacked if it is gzip; `-` is stdin, which is not unpacked.

    DataError if it cannot be opened, or turns out to be a broken gzip file. OSError from the stream itself if
    the disk fails later.
    """
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        stream: BinaryIO = open(path, "rb", buffering=BUFFER)
    except (OSError, ValueError) as error:  # a name with NUL is a ValueError
        raise cannot_read(path, error) from error
    with stream:
        try:
            packed = cast(io.BufferedReader, stream).peek(2)[:2] == b"\x1f\x8b"
        except OSError as error:  # a directory, or a failing disk
            raise cannot_read(path, error) from error
        if not packed:
            yield stream
            return
        try:
            with GzipReader(fileobj=stream) as unpacked:  # type: ignore[no-untyped-call]
                yield cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, unpacked), BUFFER))
        except (EOFError, *UNPACK_ERRORS) as error:  # raised in the body of the `with` that reads
            raise DataError(f"{path}: broken gzip file ({error}); was it copied whole?") from error


def read_byte_lines(path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file as bytes, each without its `\\n` and otherwise unchanged.

    DataError for a file that cannot be read, or is a broken gzip file.
    """
    with open_bytes(path) as stream, naming_unread(path):
        for line in stream:
            yield line[:-1] if line.endswith(b"\n") else line


def read_blocks(path: str | Path) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines, about BUFFER bytes each, unchanged; the last block may lack its
    `\\n`. Errors as from `read_byte_lines`."""
    parts: list[bytes] = []  # of a line that goes on
    with open_bytes(path) as stream, naming_unread(path):
        while chunk := stream.read(BUFFER):
            end = chunk.rfind(b"\n") + 1
            if end:
                yield b"".join([*parts, chunk[:end]])
                parts.clear()
            parts.append(chunk[end:])
    if rest := b"".join(parts):
        yield rest


def read_lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of a text file, without their `\\n`. A byte order mark and a carriage return at the end
    of a line are removed with a warning.

    DataError for a file that cannot be read, and with the line number for bytes that are not UTF-8 and for a
    NUL character.
    """
    if str(path) == "-" or not os.path.isfile(path):  # a stream: a line is passed on as soon as it arrives
        yield from decode_lines(enumerate(read_byte_lines(path), 1), path)
        return
    blocks, number = read_blocks(path), 1
    for block in blocks:
        text = plain_text(block, first=number == 1)
        if text is None:
            rest = (line for block in itertools.chain([block], blocks) for line in block_lines(block))
            yield from decode_lines(enumerate(rest, number), path)
            return
        lines = block_lines(text)
        yield from lines
        number += len(lines)


def plain_text(block: bytes, first: bool) -> str | None:
    """Decode a block of lines; None if one of them has to be checked by itself, for a carriage return, a byte
    order mark or an error. `first`: the block begins the file."""
    if b"\0" in block or b"\r\n" in block or block.endswith(b"\r"):
        return None
    if first and (block.startswith(BOM) or b"\r" in block[: block.find(b"\n")]):
        return None
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError:
        return None


def block_lines(block: AnyStr) -> list[AnyStr]:
    """The lines of a block of whole lines, without their `\\n`."""
    newline = "\n" if isinstance(block, str) else b"\n"
    lines = block.split(newline)
    if not lines[-1]:
        lines.pop()
    return lines


def decode_lines(lines: Iterable[tuple[int, bytes]], path: str | Path) -> Iterator[str]:
    """Decode lines of a text file, given as (number, bytes). Warnings and errors as in `read_lines`."""
    warned, name = False, name_of(path)
    for number, raw in lines:
        if number == 1 and raw.startswith(BOM):
            log.warning("%s:1: a byte order mark was removed", name)
            raw = raw[3:]
        if number == 1 and raw.count(b"\r") > 1:
            log.warning("%s:1: carriage returns inside are data; if they end lines, run tr '\\r' '\\n'", name)
        if raw.endswith(b"\r"):
            raw = raw[:-1]
            if not warned:
                end = "a carriage return at the end of the line was removed, here and below"
                log.warning("%s:%d: %s", name, number, end)
                warned = True
        yield decode(raw, path, number)


def promised_size(header: str, name: str, path: str | Path) -> int:
    """Parse N from `header`, the first line of a file, which reads `NAME size=N`. `name`: NAME, such as
    `#version: 1 vocabulary`. DataError for any other line."""
    try:
        return numbers.count(header.removeprefix(f"{name} size="))
    except ValueError as error:
        raise DataError(
            f"{path}:1: expected '{name} size=N', found {numbers.shown(header)}; is this a "
            f"{name.rpartition(' ')[2]} of this version?"
        ) from error


def decode(raw: bytes, path: str | Path, number: int) -> str:
    """Decode a line. DataError, with `path` and line `number`, if it is not UTF-8 or contains NUL."""
    if b"\0" in raw:
        raise DataError(
            f"{name_of(path)}:{number}: NUL character, expected text; is this a binary or UTF-16 file?"
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name_of(path)}:{number}: byte 0x{raw[error.start]:02x} at column {error.start + 1} is not "
            "UTF-8; convert the file, e.g. iconv -f latin1 -t utf-8"
        ) from error


def preview(path: str | Path) -> Iterator[str]:
    """Yield the lines of a regular file, to check it before it is read by `read_lines`. Logs no warnings, and
    keeps byte order marks and carriage returns. Yields nothing for a stream, which can be read only once.
    DataError as from `read_lines`."""
    if str(path) == "-" or not Path(path).is_file():
        return iter(())
    return map(decode, read_byte_lines(path), itertools.repeat(path), itertools.count(1))


def status(path: str | Path) -> os.stat_result:
    """The size and times of a file. DataError if it cannot be read."""
    with naming_unread(path):
        return os.stat(path)


def count_lines(path: str | Path) -> int:
    """Number of lines of a regular file, 0 for a stream. DataError for a file that is missing or not text, so
    that a bad line is reported before hours of work."""
    existing([path])
    return sum(1 for _ in preview(path))


def number_of_lines(*paths: str | Path) -> int:
    """Total number of lines of regular files, without decoding them: about a second per gigabyte. 0 (unknown)
    if one is a stream or cannot be read."""
    total = 0
    for path in paths:
        if str(path) == "-" or not Path(path).is_file():
            return 0
        last = b"\n"
        try:
            with open_bytes(path) as stream:
                while block := stream.read(BUFFER):
                    total, last = total + block.count(b"\n"), block[-1:]
        except (DataError, OSError):
            return 0
        total += last != b"\n"
    return total


def parallel(*paths: str | Path) -> Iterator[tuple[str, ...]]:
    """Yield tuples of parallel lines, one line of each file.

    DataError as from `read_lines`, and at the end of the shortest file if their lengths differ.
    """
    streams = [read_lines(path) for path in paths]
    number = 0
    while True:
        rows = [next(stream, None) for stream in streams]
        if all(row is None for row in rows):
            return
        if any(row is None for row in rows):
            counts = [
                number + (0 if row is None else 1 + sum(1 for _ in stream))
                for row, stream in zip(rows, streams, strict=True)
            ]
            raise unequal(paths, counts)
        number += 1
        yield tuple(row for row in rows if row is not None)


def check_parallel(*paths: str | Path) -> int:
    """Read files once: DataError for a missing file, bad text or unequal numbers of lines. Returns the number
    of lines.

    If one of them is a pipe or stdin, reads nothing and returns 0.
    """
    existing(paths)
    if not all(Path(path).is_file() for path in paths):
        return 0
    counts = [count_lines(path) for path in paths]
    if len(set(counts)) > 1:
        raise unequal(paths, counts)
    return counts[0]


def unequal(paths: Sequence[str | Path], counts: Sequence[int]) -> DataError:
    """The error for parallel files of unequal length, which names the shortest and the longest."""
    short, long = counts.index(min(counts)), counts.index(max(counts))
    return DataError(
        f"{name_of(paths[short])}: {numbers.counted(counts[short], 'line')}, but {name_of(paths[long])} has "
        f"{counts[long]:,}; parallel files need one line for each line"
    )


def split_words(line: str) -> list[str]:
    """Split a tokenized line into words.

    Only space and tab separate words, as in Moses: NBSP or U+2028 stay inside a word.
    """
    return [word for word in line.replace("\t", " ").split(" ") if word]


class Output:
    """An open output for bytes or text, which is written as UTF-8. UserError if writing fails, for example on
    a full disk; BrokenPipeError if the reader of a pipe has gone."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        """`name`: of the output, for messages."""
        self.stream, self.name = stream, name

    def write(self, data: bytes | str) -> None:
        if isinstance(data, str):
            data = data.encode("utf-8", "backslashreplace")  # names of files may not be UTF-8
        try:
            self.stream.write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(self.name, error) from error

    def write_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line + "\n")

    def flush(self) -> None:
        try:
            self.stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(self.name, error) from error


def cannot_write(name: str | Path, error: OSError) -> UserError:
    """The error for an output that cannot be written."""
    return UserError(f"{name}: cannot write: {error.strerror or error}")


@contextmanager
def naming_unwritten(output: str | Path) -> Iterator[None]:
    """Turn an OSError, such as that of a full disk, into a UserError that names the output."""
    try:
        yield
    except OSError as error:
        raise cannot_write(output, error) from error


class Writing:
    """`with Writing(path) as out:` writes to a file beside `path` and renames it at the end. Missing folders
    above it are created. After an error nothing is left behind. `out` is an `Output`. UserError if the file
    cannot be created, written or renamed.

    `-` is stdout. A device or a pipe is written directly. A name that ends in .gz is compressed.
    """

    def __init__(self, path: str | Path, folder: str | Path | None = None) -> None:
        """`folder`: where the unfinished file is written, on the same disk; by default beside `path`. Its
        name in `folder` is always the same, so that killed jobs do not leave more and more files."""
        self.path = str(path)
        self.name = "<stdout>" if self.path == "-" else self.path
        self.target = os.path.realpath(self.path)  # through a symbolic link, which stays
        self.direct = self.path == "-" or (
            os.path.exists(self.path) and not stat.S_ISREG(os.stat(self.path).st_mode)
        )
        # Processes in two containers, or on two hosts, may have the same number.
        own = f"{self.target}.part{os.getpid()}-{int.from_bytes(os.urandom(4))}"
        self.unfinished = own if folder is None else f"{folder}/{UNFINISHED}"

    def __enter__(self) -> Output:
        self.new_folders: list[Path] = []
        try:
            if self.path.endswith("/"):  # which `target` lacks
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if self.path == "-":
                self.file: BinaryIO = sys.stdout.buffer
            else:
                self.new_folders = [] if self.direct else make_parents(self.target)
                self.file = open(self.path if self.direct else self.unfinished, "wb", buffering=BUFFER)
                if not self.direct and os.path.exists(self.target):  # perhaps private: it stays so
                    os.fchmod(self.file.fileno(), stat.S_IMODE(os.stat(self.target).st_mode))
        except OSError as error:
            remove_empty_folders(self.new_folders)
            raise cannot_write(self.name, error) from error
        self.top: BinaryIO = self.file
        if self.path.endswith(".gz"):
            # no date: same input, same bytes
            self.top = cast(BinaryIO, gzip.GzipFile("", "wb", GZIP_LEVEL, self.file, mtime=0))
        return Output(self.top, self.name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.top is not self.file:
                self.top.close()
            self.file.flush()
            if not self.direct:
                os.fsync(self.file.fileno())
                self.file.close()
                if kind is None:
                    os.replace(self.unfinished, self.target)
            elif self.path != "-":
                self.file.close()
        except BrokenPipeError:
            raise
        except OSError as failure:
            if kind is None:
                raise cannot_write(self.name, failure) from failure
        finally:
            if self.path != "-":
                with suppress(OSError):
                    self.file.close()  # on a full disk the first close fails, the second only frees it
            if not self.direct:
                Path(self.unfinished).unlink(missing_ok=True)
            remove_empty_folders(self.new_folders)


def write_text(path: str | Path, lines: Iterable[str]) -> None:
    r"""Write a text file, with `\n` after each line, completely or not at all. UserError if that fails."""
    with Writing(path) as out:
        out.write_lines(lines)


def write_parallel(paths: Sequence[str | Path], rows: Iterable[Sequence[str]]) -> None:
    """Write parallel text files, one for each column of `rows`, as `write_text` does."""
    with ExitStack() as stack:
        outs = [stack.enter_context(Writing(path)) for path in paths]
        for row in rows:
            for out, line in zip(outs, row, strict=True):
                out.write(line + "\n")


def require_files(paths: Iterable[str | Path], reason: str) -> None:
    """ConfigError for stdin and for a pipe, such as that of `<(command)`. `reason`: why they cannot be read,
    such as `the texts are read twice`."""
    for path in paths:
        if str(path) == "-" or (os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode)):
            raise ConfigError(f"{name_of(path)}: {reason}; give files, not - or a pipe")


def existing(paths: Sequence[str | Path]) -> None:
    """DataError for the first path that does not exist; `-` always does."""
    for path in paths:
        if str(path) != "-" and not Path(path).exists():
            raise DataError(f"{path}: cannot read: No such file or directory")


# ---- files of untrusted folders ----------------------------------------------------------------------------
# Files of folders that may come from an untrusted source: runs, hybrid systems, jobs.
#
# A pipe or a device would hang the command or fill the memory, and a link to a file elsewhere would show that
# file's lines in messages. So files are regular and not larger than their kind can be, and a link that leads
# out of the folder is followed only where nothing of its target can be shown: to weights, say, and to a file
# whose checksum the folder knows. A folder may be a link itself.

SMALL_FILE = 16 << 20  # bytes of a file that is read whole: JSON, a configuration
LARGEST_TEXT = 1 << 30  # bytes of a vocabulary, a subword model, a log
NOT_REGULAR = "not a regular file (a pipe or a device?)"


def open_regular(path: str | Path, most: int | None = None) -> BufferedReader:
    """Open a regular file for reading; never blocks on a pipe. OSError for other kinds of files, and for more
    than `most` bytes (None: any size)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        check_regular_status(os.fstat(descriptor), most)
        return open(descriptor, "rb")
    except OSError as error:
        os.close(descriptor)
        error.filename = str(path)
        raise


def check_regular_status(status: os.stat_result, most: int | None) -> None:
    """OSError for anything but a regular file, and for one of more than `most` bytes (None: any size)."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, NOT_REGULAR)
    if most is not None and status.st_size > most:
        raise OSError(errno.EFBIG, f"{status.st_size:,} bytes, expected {most:,} at most")


def read_small(path: str | Path) -> bytes:
    """Read a file of at most SMALL_FILE bytes. OSError as from `open_regular`."""
    with open_regular(path, SMALL_FILE) as stream:
        return stream.read(SMALL_FILE)


def check_regular(path: Path, most: int | None = None, inside: bool = True) -> None:
    """DataError for a file that is not regular or too large, or, with `inside`, a link that leads out of its
    folder. A missing file passes: the code that reads it reports it."""
    try:
        check_regular_status(path.stat(), most)
    except FileNotFoundError:
        return
    except OSError as error:
        raise cannot_read(path, error) from error
    if inside and leads_out(path):
        raise DataError(f"{path}: a link that leads out of its folder; copy the file itself there (cp -L)")


def leads_out(path: Path) -> bool:
    """Whether a file of a folder is a link to a file elsewhere."""
    folder = os.path.realpath(path.parent)
    return os.path.commonpath([folder, os.path.realpath(path)]) != folder
