"""Worker plugin for a Dask cluster: loads the models of a job and computes its chunks."""

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

log = logging.getLogger(__name__)


# ---- GPUs of a host, one for each worker -------------------------------------------------------------------


def claim_gpu(folder: Path, names: Sequence[str]) -> tuple[int, FileLock | None]:
    """Claim the first GPU that no other process has claimed. Returns its index in `names`, the GPUs that this
    process may use, and the lock. Without a lock (None) the GPU is shared: if there are more processes than
    GPUs, or if other users could write to the folder of the locks."""
    if not is_private_folder(folder):
        log.warning("%s: other users can write there; GPUs are assigned without locks", folder)
        return os.getpid() % len(names), None
    for number, name in enumerate(names):
        lock = FileLock(folder / f"{name}.lock")
        try:
            lock.acquire(timeout=0)
        except (Timeout, OSError):  # OSError for a lock that is a symbolic link
            continue
        return number, lock
    return os.getpid() % len(names), None


def is_private_folder(folder: Path) -> bool:
    """Whether this is a real folder, not a link, that only this user can write to; created if missing."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


@cache
def claim_own_gpu(count: int) -> tuple[int, FileLock | None]:
    """Claim a GPU for the lifetime of this process; returns its index and the lock, as `claim_gpu` does.
    `count`: number of GPUs that torch sees."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    names = visible if len(visible) == count and all(visible) else [str(number) for number in range(count)]
    return claim_gpu(Path(tempfile.gettempdir()) / f"nmt-smt-gpus-{os.getuid()}", names)


# ---- plugin ------------------------------------------------------------------------------------------------


def this_host() -> Host:
    return Host(nmt.__version__, processor_name())


class JobPlugin(WorkerPlugin):
    """Loads the models of a job once and computes its chunks, both in one dedicated thread, since torch's
    number of threads is a property of the calling thread."""

    def __init__(
        self,
        name: str,
        make_compute: Callable[[], Callable[[object], object]],
        expected: Host,
        mixed: bool,
        members: Container[str] = (),
    ) -> None:
        """`name`: of the job; `make_compute`: loads the models and returns the function that computes a
        chunk; `expected`: the host of the command; `mixed`: whether other processors and other
        versions of torch are allowed. `members`: addresses of the workers that the job starts with. If one of
        them cannot take part, the job is refused; a worker that joins later and cannot take part is
        closed."""
        self.name, self.make_compute, self.expected, self.mixed = name, make_compute, expected, mixed
        self.members = members

    async def setup(self, worker: Worker) -> None:
        """Called by Dask as the job or the worker starts. For a member that cannot take part, raises
        ConfigError, or what loading the models has raised if that is no UserError."""
        self.address = worker.address
        self.thread = ThreadPoolExecutor(1)
        self.run: Callable[[object], object] = reschedule
        try:
            self.run = await asyncio.wrap_future(self.thread.submit(self.load))
        except Exception as error:
            reason = f"worker {self.address}: {error}" if isinstance(error, UserError) else repr(error)
            if self.address in self.members:
                raise ConfigError(reason) if isinstance(error, UserError) else error from None
            worker.log_event(self.name, reason)
            worker.loop.add_callback(worker.close_gracefully, reason=reason)

    def load(self) -> Callable[[object], object]:
        """Return the function that computes a chunk. ConfigError for a worker that differs from the job's
        host, and whatever `make_compute` raises."""
        if what := cluster.difference(this_host(), self.expected, self.mixed):
            raise ConfigError(what)
        if (count := torch.cuda.device_count()) > 1:
            torch.cuda.set_device(claim_own_gpu(count)[0])  # holds for this thread
        keep_freed_memory()
        plugins.load()
        return self.make_compute()

    def teardown(self, worker: Worker) -> None:
        """Called by Dask when the job ends; the models are freed with this object."""
        self.thread.shutdown(wait=False, cancel_futures=True)

    def compute(self, task: object) -> object:
        """Compute the result of a chunk. Errors get a note with the address of this worker."""
        try:
            return self.thread.submit(self.run, task).result()
        except Exception as error:
            error.add_note(f"on worker {self.address}")
            raise plugins.explained(error) from error.__cause__


def reschedule(task: object) -> object:
    """Raise Reschedule, so that another worker computes the chunk: on a worker that cannot take part."""
    raise Reschedule
