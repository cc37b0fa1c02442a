"""What a worker of a Dask cluster does for a job."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from distributed import Worker, WorkerPlugin, get_worker

import nmt
from nmt.compute.processor import processor
from nmt.errors import ConfigError
from nmt.jobs import cluster
from nmt.jobs.cluster import Host
from nmt.jobs.processes import begin_or_fail

Task = TypeVar("Task")
Result = TypeVar("Result")


def here() -> Host:
    """This process."""
    return Host(nmt.__version__, processor())


class JobPlugin(WorkerPlugin):
    """Loads the models of a job once, and computes its chunks, in a thread of its own: the number of threads
    that torch computes with belongs to a thread."""

    def __init__(self, name: str, begin: Callable[[], object], expected: Host, mixed: bool) -> None:
        self.name, self.begin, self.expected, self.mixed = name, begin, expected, mixed

    def setup(self, worker: Worker) -> None:
        """As the job starts, or the worker does. ConfigError for a worker that cannot take part."""
        if what := cluster.difference(here(), self.expected, self.mixed):
            raise ConfigError(f"worker {worker.address} {what}")
        self.address = worker.address
        self.thread = ThreadPoolExecutor(1)
        self.ready: Future[Callable[[object], object]] = self.thread.submit(begin_or_fail, self.begin)  # type: ignore[arg-type]

    def teardown(self, worker: Worker) -> None:
        self.thread.shutdown(wait=False, cancel_futures=True)

    def compute(self, task: object) -> object:
        try:
            return self.thread.submit(self.ready.result(), task).result()
        except Exception as error:
            error.add_note(f"on worker {self.address}")
            raise


def compute(name: str, task: object) -> object:
    """One task of a job, on a worker."""
    plugin = get_worker().plugins[name]
    assert isinstance(plugin, JobPlugin)
    return plugin.compute(task)
