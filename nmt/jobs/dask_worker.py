"""What a worker of a Dask cluster does for a job."""

import asyncio
from collections.abc import Callable, Container
from concurrent.futures import ThreadPoolExecutor

import torch
from distributed import Reschedule, Worker, WorkerPlugin

import nmt
from nmt import plugins
from nmt.compute.allocator import keep_freed_memory
from nmt.compute.processor import processor
from nmt.errors import ConfigError, UserError
from nmt.jobs import cluster, gpus
from nmt.jobs.cluster import Host


def here() -> Host:
    """This process."""
    return Host(nmt.__version__, processor())


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
        self.run: Callable[[object], object] = moved
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
        if what := cluster.difference(here(), self.expected, self.mixed):
            raise ConfigError(what)
        if (count := torch.cuda.device_count()) > 1:
            torch.cuda.set_device(gpus.own(count)[0])  # of this thread, which loads and computes
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


def moved(task: object) -> object:
    """A chunk that reached a worker which cannot compute: another one takes it."""
    raise Reschedule
