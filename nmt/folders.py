"""The folders above an output: made when it is written, and removed again when it is not."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def parents(path: str | Path) -> Iterator[None]:
    """Make the missing folders above a path, and at the end remove those that nothing came into. OSError as
    `make_parents`."""
    made = make_parents(path)
    try:
        yield
    finally:
        remove_empty(made)


def make_parents(path: str | Path) -> list[Path]:
    """Make the missing folders in which a file or folder is to lie; returns them, the innermost first.

    OSError where that cannot be done, and for an absolute path whose first folder does not exist: that is
    rather a mistyped name (`/hme/ann/out`) than a wish for a new one.
    """
    above = list(Path(os.path.abspath(path)).parents)
    missing = [folder for folder in above if not os.path.lexists(folder)]
    if missing and len(missing) == len(above) - 1:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(missing[-1]))
    made: list[Path] = []
    try:
        for folder in reversed(missing):
            with suppress(FileExistsError):  # another process was faster
                folder.mkdir()
                made.insert(0, folder)
    except OSError:
        remove_empty(made)
        raise
    return made


def remove_empty(made: Iterable[Path]) -> None:
    """Remove these folders, the innermost first, as far as nothing is in them."""
    with suppress(OSError):
        for folder in made:
            folder.rmdir()
