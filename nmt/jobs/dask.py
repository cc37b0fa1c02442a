"""The executor `dask`: chunks are computed by the workers of a Dask cluster, on any number of hosts.

Dask starts a task anew where its worker was lost; results come back in order. Models are not sent: each
worker loads them from their path, once a job.
"""

import hashlib
import importlib
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from nmt.errors import ConfigError, UserError
from nmt.jobs import cluster
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.lost import Lost

if TYPE_CHECKING:
    from distributed import Client, Future

AHEAD = 3  # tasks that wait for each worker: enough to keep it busy, few enough for memory
Task = TypeVar("Task")
Result = TypeVar("Result")


class Dask(Generic[Task, Result]):
    """A client of a cluster. UserError and ConfigError as `cluster.connect` and `check_workers` raise them,
    as the block begins."""

    def __init__(
        self,
        compute: Callable[[Task], Result],
        begin: Callable[[], Callable[[Task], Result]],
        config: ExecutorConfig,
    ) -> None:
        if not config.cluster:
            raise ConfigError("--executor dask needs a --cluster")
        self.begin, self.config = begin, config
        self.name = f"nmt-smt-{hashlib.sha256(pickle.dumps(begin)).hexdigest()[:16]}-{os.getpid()}"

    def __enter__(self) -> Self:
        self.client: Client = cluster.connect(self.config.cluster)
        # What workers do needs `distributed` and torch, which --help and bad options do not wait for.
        self.there = importlib.import_module("nmt.jobs.dask_worker")
        try:
            self.start()
        except BaseException:
            self.client.close()
            raise
        return self

    def start(self) -> None:
        """Wait for a worker, and let all load the models."""
        where, mixed, expected = self.config.cluster, self.config.mixed_workers, self.there.here()
        try:
            self.client.wait_for_workers(1, timeout=cluster.FIRST_WORKER)
        except TimeoutError as error:
            raise UserError(f"--cluster {where}: has no worker; start `dask worker` on each host") from error
        found = self.client.run(self.there.here, on_error="return")
        cluster.check_workers(found, expected, mixed)
        self.client.register_plugin(self.there.JobPlugin(self.name, self.begin, expected, mixed))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(Exception):  # where the scheduler is gone, there is nothing to take back
            self.client.unregister_worker_plugin(self.name)
        self.client.close()

    def map(self, tasks: Iterable[Task]) -> Iterator[Result | Lost]:
        """The results, in the order of the tasks, `Lost` for those that killed their workers; only as many
        tasks are drawn as keep the workers busy. UserError where the scheduler is lost."""
        waiting: deque[Future[object]] = deque()
        for number, task in enumerate(tasks):
            waiting.append(
                self.client.submit(
                    self.there.compute, self.name, task, key=f"{self.name}-{number}", pure=False
                )
            )
            while len(waiting) > AHEAD * max(1, len(self.client.scheduler_info()["workers"])):
                yield self.result(waiting.popleft())
        while waiting:
            yield self.result(waiting.popleft())

    def result(self, future: "Future[object]") -> Result | Lost:
        """Wait for a task, and let the cluster forget it."""
        from distributed import CancelledError, KilledWorker
        from distributed.comm.core import CommClosedError

        try:
            found: Result = future.result()  # type: ignore[assignment]
        except KilledWorker as error:
            return Lost(f"{error.allowed_failures + 1} workers died while they computed them")
        except (CancelledError, CommClosedError) as error:
            raise UserError(
                f"--cluster {self.config.cluster}: the scheduler is gone; where the command has --resume, it "
                "continues after the finished chunks"
            ) from error
        finally:
            future.release()
        return found
