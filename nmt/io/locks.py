"""Locks of folders, so that only one command at a time works in a run, a job, a tuning, a model or a cache.

    with locked(folder, "nmt-train"):
        ...

The system releases the lock when its process ends, however that happens. The file `.lock` stays: it names
the last holder.
"""

import logging
import math
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from nmt.errors import UserError
from nmt.io import files

log = logging.getLogger(__name__)

FILE = ".lock"


@contextmanager
def locked(folder: str | Path, command: str, wait: bool = False, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock of a folder for a command, named in the messages of others. The folder is created if
    missing, and removed again if it stays empty. UserError that names the holder if the lock is already held,
    and if the folder cannot be written.

    `wait`: wait for the other process, for folders that are locked only briefly. `patience`: seconds to wait
    before the error, for a holder that may be about to end.
    """
    folder = Path(folder)
    path = folder / FILE
    is_new = not folder.exists()
    with files.naming_unwritten(folder):
        above = files.make_parents(folder)
    try:
        lock = acquire(folder, math.inf if wait else time.monotonic() + patience)
    except UserError:
        files.remove_empty_folders(above)
        raise
    try:
        with suppress(OSError):  # a full disk: the lock holds without its text
            began = time.strftime("%Y-%m-%d %H:%M:%S")
            path.write_text(
                f"{command}, process {os.getpid()} on {platform.node()}, since {began}", encoding="utf-8"
            )
        yield
    finally:
        if is_new and folder.exists() and is_empty(folder):
            clear(folder)
        with suppress(OSError):
            lock.release()
        files.remove_empty_folders(above)


def acquire(folder: Path, until: float) -> FileLock:
    """Acquire the lock of a folder, which is created if missing. `until`: when to stop waiting, on the clock
    time.monotonic. UserError if another process holds the lock then, or the folder cannot be written."""
    reported, gone = False, 0
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / FILE, timeout=0, thread_local=False)
            lock.acquire()
            return lock
        except FileNotFoundError as error:
            # another process has just removed the folder, or none can be created there, as in /proc
            gone += 1
            if gone > 20:
                raise files.cannot_write(folder, error) from error
        except Timeout as error:
            who = holder(folder) or "another process"
            if time.monotonic() >= until:
                raise UserError(f"{folder}: in use by {who}; wait for it to end, or stop it") from error
            if not reported:
                log.info("%s: in use by %s, waiting for it", folder, who)
            reported = True
            time.sleep(0.1)
        except OSError as error:
            raise files.cannot_write(folder, error) from error


def clear(folder: str | Path) -> None:
    """Remove a folder whose lock this process holds, and its content, the lock last: another process sees it
    either locked, or new and empty. Files that cannot be removed stay."""
    clear_content(folder)
    with suppress(OSError):
        (Path(folder) / FILE).unlink()
        os.rmdir(folder)


def clear_content(folder: str | Path) -> None:
    """Empty a folder whose lock this process holds, but for the lock. Files that cannot be removed stay."""
    for inside in Path(folder).iterdir():
        if inside.name != FILE:
            with suppress(OSError):
                shutil.rmtree(inside) if inside.is_dir() and not inside.is_symlink() else inside.unlink()


def holder(folder: str | Path) -> str:
    """The current or last holder of a folder's lock: command, process, machine, time. Empty without any."""
    try:
        return (Path(folder) / FILE).read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return ""


def is_empty(folder: str | Path) -> bool:
    """Whether the folder is missing, or empty except for a lock."""
    path = Path(folder)
    return not path.exists() or (path.is_dir() and all(inside.name == FILE for inside in path.iterdir()))


# ---- work folders ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WorkFolders:
    """Temporary folders COMMAND.XXXXXXXX of a command, each beside an output. A folder is locked while it is
    in use, so that the next start of the command can recognize and remove those of killed ones."""

    command: str
    names: str  # regular expression of the names of the files inside

    @contextmanager
    def make(self, output: str) -> Iterator[Path]:
        """Create a folder beside `output`, or in the system's temporary folder for stdout, and yield it. It
        is removed at the end. Folders that killed commands left there are removed first.

        UserError, with the file's name, for any OSError of the block, for example on a full disk; only a
        BrokenPipeError passes.
        """
        parent = Path(tempfile.gettempdir()) if output == "-" else Path(output).parent
        self.sweep(parent)
        with files.naming_unwritten(parent):
            created = files.make_parents(parent / self.command)
            folder = Path(tempfile.mkdtemp(prefix=f"{self.command}.", dir=parent))
        # Another command that starts now may take the empty folder for an abandoned one, and remove it.
        with locked(folder, self.command, wait=True):
            try:
                yield folder
            except BrokenPipeError:
                raise
            except OSError as error:
                raise files.cannot_write(error.filename or folder, error) from error
            finally:
                clear(folder)
                files.remove_empty_folders(created)

    def sweep(self, parent: Path) -> None:
        """Remove the folders of killed commands in `parent`, which nobody locks any more."""
        for folder in parent.glob(f"{self.command}.????????"):
            with suppress(OSError, UserError):  # in use, or not ours
                if self.owns(folder):
                    with locked(folder, self.command):
                        clear(folder)

    def owns(self, folder: Path) -> bool:
        """Whether the command created the folder, judged by its lock file and its content; it is empty if the
        command was killed before locking it."""
        if folder.is_symlink() or not folder.is_dir():
            return False
        if not holder(folder):
            return is_empty(folder)
        return holder(folder).startswith(f"{self.command},") and all(
            inside.name == FILE or re.fullmatch(self.names, inside.name) for inside in folder.iterdir()
        )
