"""The folder `smt-extract.XXXXXXXX` beside an output, for the files between the steps of an extraction.

It is locked while it is in use, so that the next extraction beside it can tell what a killed one left, and
removes that.
"""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nmt import files, locks
from nmt.errors import UserError

COMMAND = "smt-extract"
PREFIX = f"{COMMAND}."
CONTENT = re.compile(r"pairs|targets|back|part[0-9]+\.npz|" + re.escape(locks.FILE))


@contextmanager
def work_folder(output: str) -> Iterator[Path]:
    """A new folder, removed at the end; for an output to stdout it is made where the system keeps temporary
    files.

    UserError that names it when a file in it cannot be written, as on a full disk.
    """
    parent = Path(tempfile.gettempdir()) if output == "-" else Path(output).parent
    sweep(parent)
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    except OSError as error:
        raise files.cannot_write(parent, error) from error
    with locks.locked(
        folder, COMMAND, wait=True
    ):  # another extraction that starts may take it for a left one, and removes it empty
        try:
            yield folder
        except BrokenPipeError:
            raise
        except OSError as error:
            raise files.cannot_write(error.filename or folder, error) from error
        finally:
            locks.clear(folder)


def sweep(parent: Path) -> None:
    """Remove the folders that killed extractions left: those of our name and content whose process is
    gone."""
    for folder in parent.glob(f"{PREFIX}????????"):
        with suppress(OSError, UserError):  # in use, or somebody else's
            if is_ours(folder):
                with locks.locked(folder, COMMAND):
                    locks.clear(folder)


def is_ours(folder: Path) -> bool:
    """Made by an extraction? One that was killed before it had written its name left an empty folder, and
    nobody misses that."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    if not locks.holder(folder):
        return locks.is_empty(folder)
    return locks.holder(folder).startswith(f"{COMMAND},") and all(
        CONTENT.fullmatch(inside.name) for inside in folder.iterdir()
    )
