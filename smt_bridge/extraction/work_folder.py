"""The folder `smt-extract.XXXXXXXX` beside an output, for the files between the steps of an extraction.

It is locked while it is in use, so that the next extraction in the same place can recognize and remove what a
killed one left behind.
"""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nmt import files, folders, locks
from nmt.errors import UserError

COMMAND = "smt-extract"
PREFIX = f"{COMMAND}."
CONTENT = re.compile(r"pairs|targets|back|part[0-9]+\.npz|" + re.escape(locks.FILE))


@contextmanager
def work_folder(output: str) -> Iterator[Path]:
    """A new folder, removed at the end; for an output to stdout it is in the system's temporary folder.

    UserError that names it when a file in it cannot be written, for example on a full disk.
    """
    parent = Path(tempfile.gettempdir()) if output == "-" else Path(output).parent
    sweep(parent)
    made: list[Path] = []
    try:
        made = folders.make_parents(parent / PREFIX)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
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
            folders.remove_empty(made)


def sweep(parent: Path) -> None:
    """Remove the folders of killed extractions: those with our name and content whose process is gone."""
    for folder in parent.glob(f"{PREFIX}????????"):
        with suppress(OSError, UserError):  # in use, or not ours
            if is_ours(folder):
                with locks.locked(folder, COMMAND):
                    locks.clear(folder)


def is_ours(folder: Path) -> bool:
    """Was it made by an extraction? One that was killed before it could lock its folder left it empty."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    if not locks.holder(folder):
        return locks.is_empty(folder)
    return locks.holder(folder).startswith(f"{COMMAND},") and all(
        CONTENT.fullmatch(inside.name) for inside in folder.iterdir()
    )
