"""One command at a time in a folder: a run, a job, a tuning, a model, a cache.

    with locked(folder, "nmt-train"):
        ...

The system lets go of the lock when its process ends, however that happens. The file `.lock` stays: its
content is the last holder.
"""

import logging
import os
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from nmt import files
from nmt.errors import UserError

log = logging.getLogger(__name__)

FILE = ".lock"


@contextmanager
def locked(folder: str | Path, command: str, wait: bool = False) -> Iterator[None]:
    """Hold a folder, which is made if need be, for a command. UserError, with the holder's process, when
    another has it.

    `wait`: until the other has done, for a folder that is held for a short work only. A folder that was made
    here, and that
    nothing was put into, goes again.
    """
    folder = Path(folder)
    place = folder / FILE
    made = not folder.exists()
    lock = acquire(folder, wait)
    try:
        with suppress(OSError):  # a full disk: the lock holds without its text
            place.write_text(
                (
                    f"{command}, process {os.getpid()} on {platform.node()}, since "
                    f"{time.strftime('%Y-%m-%d %H:%M:%S')}"
                ),
                encoding="utf-8",
            )
        yield
    finally:
        if made and folder.exists() and is_empty(folder):
            clear(folder)
        with suppress(OSError):
            lock.release()


def acquire(folder: Path, wait: bool) -> FileLock:
    """The lock of a folder, held."""
    told, gone = False, 0
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / FILE, timeout=0)
            lock.acquire()
            return lock
        except FileNotFoundError as error:
            # whoever had made the folder has just removed it; or it is in a place where none can be made,
            # such as /proc
            gone += 1
            if gone > 20:
                raise files.cannot_write(folder, error) from error
        except Timeout as error:
            who = holder(folder) or "another process"
            if not wait:
                raise UserError(f"{folder}: in use by {who}; wait for it to end, or stop it") from error
            if not told:
                log.info("%s: in use by %s, waiting for it", folder, who)
            told = True
            time.sleep(0.1)
        except OSError as error:
            raise files.cannot_write(folder, error) from error


def clear(folder: str | Path) -> None:
    """Remove a folder that this process holds, its lock last: whoever comes meanwhile finds it locked, or new
    and empty."""
    for inside in Path(folder).iterdir():
        if inside.name != FILE:
            with suppress(OSError):
                shutil.rmtree(inside) if inside.is_dir() and not inside.is_symlink() else inside.unlink()
    with suppress(OSError):
        (Path(folder) / FILE).unlink()
        os.rmdir(folder)


def holder(folder: str | Path) -> str:
    """Who holds, or held last, a folder: command, process, machine, time. Empty when nobody has."""
    try:
        return (Path(folder) / FILE).read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return ""


def is_empty(folder: str | Path) -> bool:
    """Is nothing but a lock in a folder, or no folder there?"""
    path = Path(folder)
    return not path.exists() or (path.is_dir() and all(inside.name == FILE for inside in path.iterdir()))
