"""What a worker of a Dask cluster does for a job."""

import asyncio
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import torch
from distributed import Reschedule, Worker, WorkerPlugin
from filelock import FileLock, Timeout

import nmt
from nmt import plugins
from nmt.compute.device import processor_name
from nmt.compute.resources import keep_freed_memory
from nmt.errors import ConfigError, UserError
from nmt.work import cluster
from nmt.work.cluster import Host

# ---- gpus --------------------------------------------------------------------------------------------------
# The GPUs of a host, shared out among the workers on it: one each, as far as they go.


log = logging.getLogger(__name__)


def claim_gpu(folder: Path, names: Sequence[str]) -> tuple[int, FileLock | None]:
    """The first GPU that no other process has claimed, and the lock that holds it. When there are more
    processes than GPUs, they share, and there is no lock; neither where others could plant files in the
    folder. `names`: of the GPUs that this process may use."""
    if not is_private_folder(folder):
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


def is_private_folder(folder: Path) -> bool:
    """Is this a folder, no link to one, that nobody but this user can change? It is made if need be."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


@cache
def claim_own_gpu(count: int) -> tuple[int, FileLock | None]:
    """The GPU of this process, for as long as it lives. `count`: how many torch finds."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    names = visible if len(visible) == count and all(visible) else [str(number) for number in range(count)]
    return claim_gpu(Path(tempfile.gettempdir()) / f"nmt-smt-gpus-{os.getuid()}", names)


# ---- dask worker -------------------------------------------------------------------------------------------


def this_host() -> Host:
    """This process."""
    return Host(nmt.__version__, processor_name())


class JobPlugin(WorkerPlugin):
    """Loads the models of a job once, and computes its chunks, in a thread of its own: the number of threads
    that torch computes with belongs to a thread."""

    def __init__(
        self,
        name: str,
        begin: Callable[[], Callable[[object], object]],
        expected: Host,
        mixed: bool,
        members: Container[str] = (),
    ) -> None:
        """`members`: addresses of the workers that the job starts with. The job is refused where one of them
        cannot take part; a worker that joins later and cannot is closed."""
        self.name, self.begin, self.expected, self.mixed = name, begin, expected, mixed
        self.members = members

    async def setup(self, worker: Worker) -> None:
        """As the job starts, or the worker does. ConfigError for a member that cannot take part."""
        self.address = worker.address
        self.thread = ThreadPoolExecutor(1)
        self.run: Callable[[object], object] = reschedule
        try:
            self.run = await asyncio.wrap_future(self.thread.submit(self.load))
        except Exception as error:
            what = f"worker {self.address}: {error}" if isinstance(error, UserError) else repr(error)
            if self.address in self.members:
                raise ConfigError(what) if isinstance(error, UserError) else error from None
            worker.log_event(self.name, what)
            worker.loop.add_callback(worker.close_gracefully, reason=what)

    def load(self) -> Callable[[object], object]:
        """What computes a chunk. ConfigError for a worker that differs, and whatever `begin` raises."""
        if what := cluster.difference(this_host(), self.expected, self.mixed):
            raise ConfigError(what)
        if (count := torch.cuda.device_count()) > 1:
            torch.cuda.set_device(claim_own_gpu(count)[0])  # of this thread, which loads and computes
        keep_freed_memory()
        plugins.load()
        return self.begin()

    def teardown(self, worker: Worker) -> None:
        """As the job ends; the models go with this object."""
        self.thread.shutdown(wait=False, cancel_futures=True)

    def compute(self, task: object) -> object:
        """The result of a chunk."""
        try:
            return self.thread.submit(self.run, task).result()
        except Exception as error:
            error.add_note(f"on worker {self.address}")
            raise


def reschedule(task: object) -> object:
    """A chunk that reached a worker which cannot compute: another one takes it."""
    raise Reschedule
