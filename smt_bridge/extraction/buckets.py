"""Sort rows outside memory, in a temporary folder beside the output.

Rows are distributed over files by the first columns of their keys, and each file is sorted in memory. The
files are in order: concatenated after sorting they are the sorted whole. A file that is too large for memory
is distributed again.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.errors import UserError
from nmt.io import files, locks

# ---- buckets -----------------------------------------------------------------------------------------------


Array = NDArray[np.uint64]


class Buckets:
    """Rows of `columns` 64-bit numbers in files of a folder, split at the values `splitters` of column
    `by`."""

    def __init__(self, folder: Path, columns: int, splitters: Array, by: int = 0) -> None:
        self.folder, self.columns, self.splitters, self.by = folder, columns, splitters, by
        folder.mkdir(parents=True, exist_ok=True)
        self.rows = np.zeros(len(splitters) + 1, np.int64)

    def add(self, rows: Array) -> None:
        """Append rows (N, columns) to their files."""
        bucket_of_row = np.searchsorted(self.splitters, rows[:, self.by], "right")
        for bucket in np.unique(bucket_of_row):
            part = rows[bucket_of_row == bucket]
            with open(self.path(int(bucket)), "ab") as out:
                out.write(part.tobytes())
            self.rows[bucket] += len(part)

    def path(self, bucket: int) -> Path:
        return self.folder / f"{bucket:05d}"

    def read(self, bucket: int) -> Array:
        """Rows of a bucket: (N, columns)"""
        if not self.rows[bucket]:
            return np.zeros((0, self.columns), np.uint64)
        return np.fromfile(self.path(bucket), np.uint64).reshape(-1, self.columns)

    def pieces(self, bucket: int, rows: int) -> Iterator[Array]:
        """Read a file in pieces of at most `rows` rows."""
        with open(self.path(bucket), "rb") as stream:
            while len(piece := np.fromfile(stream, np.uint64, rows * self.columns)):
                yield piece.reshape(-1, self.columns)

    def walk(self, most: int, keys: int) -> Iterator[Array]:
        """Yield all rows, file by file in order, and delete each file after reading.

        Yields at most `most` rows at a time, if their first `keys` columns differ enough.
        """
        for bucket in range(len(self.rows)):
            if self.rows[bucket] > most:
                yield from self.again(bucket, most, keys)
            elif self.rows[bucket]:
                yield self.read(bucket)
            self.path(bucket).unlink(missing_ok=True)

    def again(self, bucket: int, most: int, keys: int) -> Iterator[Array]:
        """Distribute a file that is too large, by the first column in which its rows differ."""
        for by in range(self.by, keys):
            sample = np.concatenate(
                [piece[:: max(1, len(piece) // 1000), by] for piece in self.pieces(bucket, most)]
            )
            inner = Buckets(
                self.folder / f"{bucket:05d}.by{by}",
                self.columns,
                quantiles(sample, int(self.rows[bucket] // most) + 2),
                by,
            )
            for piece in self.pieces(bucket, most):
                inner.add(piece)
            if inner.rows.max() < self.rows[bucket]:
                yield from inner.walk(most, keys)
                return
            shutil.rmtree(inner.folder)
        yield self.read(bucket)  # all rows have the same key


def quantiles(values: Array, parts: int) -> Array:
    """Values that cut a sample into about equal parts, and their successors.

    The successors give a frequent value a part of its own.
    """
    if not len(values):
        return np.zeros(0, np.uint64)
    ordered = np.sort(values)
    cuts = ordered[np.linspace(0, len(ordered), parts + 1)[1:-1].astype(np.int64)]
    return np.unique(np.concatenate([cuts, cuts + np.uint64(1)]))


# ---- work folder -------------------------------------------------------------------------------------------
# The folder `smt-extract.XXXXXXXX` beside an output is locked while it is in use, so that the next extraction
# can recognize and remove the folders of killed ones.


COMMAND = "smt-extract"
FOLDER_PREFIX = f"{COMMAND}."
FOLDER_CONTENT = re.compile(r"pairs|targets|back|part[0-9]+\.npz|" + re.escape(locks.FILE))


@contextmanager
def work_folder(output: str) -> Iterator[Path]:
    """Create a folder that is removed at the end; for an output to stdout in the system's temporary folder.

    UserError naming it if a file in it cannot be written, for example on a full disk.
    """
    parent = Path(tempfile.gettempdir()) if output == "-" else Path(output).parent
    sweep_work_folders(parent)
    created: list[Path] = []
    try:
        created = files.make_parents(parent / FOLDER_PREFIX)
        folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=parent))
    except OSError as error:
        raise files.cannot_write(parent, error) from error
    # Another extraction that starts now may take the empty folder for an abandoned one, and remove it.
    with locks.locked(folder, COMMAND, wait=True):
        try:
            yield folder
        except BrokenPipeError:
            raise
        except OSError as error:
            raise files.cannot_write(error.filename or folder, error) from error
        finally:
            locks.clear(folder)
            files.remove_empty_folders(created)


def sweep_work_folders(parent: Path) -> None:
    """Remove folders of killed extractions: those with our name and content whose process is gone."""
    for folder in parent.glob(f"{FOLDER_PREFIX}????????"):
        with suppress(OSError, UserError):  # in use, or not ours
            if is_work_folder(folder):
                with locks.locked(folder, COMMAND):
                    locks.clear(folder)


def is_work_folder(folder: Path) -> bool:
    """Whether an extraction created the folder, which is empty if it was killed before locking it."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    if not locks.holder(folder):
        return locks.is_empty(folder)
    return locks.holder(folder).startswith(f"{COMMAND},") and all(
        FOLDER_CONTENT.fullmatch(inside.name) for inside in folder.iterdir()
    )
