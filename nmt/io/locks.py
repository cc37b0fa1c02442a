"""Locks of folders, so that only one command at a time works in a run, a job, a tuning, a model, a cache.

    with locked(folder, "nmt-train"):
        ...

The system releases the lock when its process ends, however that happens. The file `.lock` stays: it names
the last holder.
"""

import logging
import math
import os
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from nmt.errors import UserError
from nmt.io import files

log = logging.getLogger(__name__)

FILE = ".lock"


@contextmanager
def locked(folder: str | Path, command: str, wait: bool = False, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock of a folder for a command; the folder is made if need be, and removed again if nothing
    was put into it. UserError, which names the holder, when another process has it.

    `wait`: wait for the other process instead; for folders that are held for a moment only. `patience`:
    wait so many seconds before the error, for a holder that may be about to end.
    """
    folder = Path(folder)
    path = folder / FILE
    is_new = not folder.exists()
    try:
        above = files.make_parents(folder)
    except OSError as error:
        raise files.cannot_write(folder, error) from error
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
    """The lock of a folder, held. `until`: of the clock time.monotonic, when waiting ends."""
    reported, gone = False, 0
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / FILE, timeout=0)
            lock.acquire()
            return lock
        except FileNotFoundError as error:
            # whoever made the folder has just removed it; or none can be made there, as in /proc
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
    """Remove a folder whose lock this process holds, the lock last: another process finds it locked, or new
    and empty."""
    for inside in Path(folder).iterdir():
        if inside.name != FILE:
            with suppress(OSError):
                shutil.rmtree(inside) if inside.is_dir() and not inside.is_symlink() else inside.unlink()
    with suppress(OSError):
        (Path(folder) / FILE).unlink()
        os.rmdir(folder)


def holder(folder: str | Path) -> str:
    """Who holds a folder, or held it last: command, process, machine, time. Empty when nobody has."""
    try:
        return (Path(folder) / FILE).read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return ""


def is_empty(folder: str | Path) -> bool:
    """Is the folder missing, or is nothing but a lock in it?"""
    path = Path(folder)
    return not path.exists() or (path.is_dir() and all(inside.name == FILE for inside in path.iterdir()))
