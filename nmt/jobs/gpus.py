"""The GPUs of a host, shared out among the workers on it: one each, as far as they go."""

import logging
import os
import stat
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout

log = logging.getLogger(__name__)


def claim(folder: Path, names: Sequence[str]) -> tuple[int, FileLock | None]:
    """The first GPU that no other process has claimed, and the lock that holds it. When there are more
    processes than GPUs, they share, and there is no lock; neither where others could plant files in the
    folder. `names`: of the GPUs that this process may use."""
    if not is_private(folder):
        log.warning("%s: is not this user's alone; GPUs are shared out without locks", folder)
        return os.getpid() % len(names), None
    for number, name in enumerate(names):
        lock = FileLock(folder / f"{name}.lock")
        try:
            lock.acquire(timeout=0)
        except (Timeout, OSError):  # a lock that is a link is not opened
            continue
        return number, lock
    return os.getpid() % len(names), None


def is_private(folder: Path) -> bool:
    """Is this a folder, no link to one, that nobody but this user can change? It is made if need be."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


@cache
def own(count: int) -> tuple[int, FileLock | None]:
    """The GPU of this process, for as long as it lives. `count`: how many torch finds."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    names = visible if len(visible) == count and all(visible) else [str(number) for number in range(count)]
    return claim(Path(tempfile.gettempdir()) / f"nmt-smt-gpus-{os.getuid()}", names)
