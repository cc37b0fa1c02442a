"""The GPUs of a host, shared out among the workers on it: one each, as far as they go."""

import os
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout


def claim(folder: Path, names: Sequence[str]) -> tuple[int, FileLock | None]:
    """The first GPU that no other process has claimed, and the lock that holds it. When there are more
    processes than GPUs, they share, and there is no lock. `names`: of the GPUs that this process may use."""
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        lock = FileLock(folder / f"{name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            continue
        return number, lock
    return os.getpid() % len(names), None


@cache
def own(count: int) -> tuple[int, FileLock | None]:
    """The GPU of this process, for as long as it lives. `count`: how many torch finds."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    names = visible if len(visible) == count and all(visible) else [str(number) for number in range(count)]
    return claim(Path(tempfile.gettempdir()) / f"nmt-smt-gpus-{os.getuid()}", names)
