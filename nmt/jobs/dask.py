"""The executor `dask`: chunks are computed by the workers of a Dask cluster, on any number of hosts.

Dask starts a task anew where its worker was lost; results come back in order. Models are not sent: each
worker loads them from their path, once a job.
"""

import importlib
import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from nmt.errors import ConfigError, UserError
from nmt.jobs import cluster
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.lost import KILLED, Lost

if TYPE_CHECKING:
    from distributed import Client, Future

log = logging.getLogger(__name__)

AHEAD = 3  # tasks that wait for each worker: enough to keep it busy, few enough for memory
NEWS = 60.0  # seconds after which the user hears that no worker is left
COUNT_EVERY = 2.0  # seconds between counts of the workers
STARTS = 5  # times that a job starts, where each time a worker is lost meanwhile
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
        self.name = f"nmt-smt-{uuid.uuid4().hex}"
        self.submitted = 0  # tasks of all calls of `map`
        self.counted, self.count = 0.0, 1  # when workers were counted, and how many there were

    def __enter__(self) -> Self:
        self.client: Client = cluster.connect(self.config.cluster)
        # What workers do needs `distributed` and torch, which --help and bad options do not wait for.
        self.there = importlib.import_module("nmt.jobs.dask_worker")
        self.task = importlib.import_module("nmt.jobs.dask_task")
        try:
            self.start()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def start(self) -> None:
        """Wait for a worker, and let all load the models."""
        there = importlib.import_module("nmt.jobs.dask_scheduler")
        if self.client.scheduler_comm is None:
            raise self.gone()
        there.shorten_log(self.client.scheduler_comm)
        watch = there.JobWatch(self.name, self.client.id)
        failure: OSError | None = None
        for _ in range(STARTS):
            try:
                seconds = None if self.client.cluster else cluster.FIRST_WORKER  # jobs may wait for hours
                self.client.wait_for_workers(1, timeout=seconds)
            except TimeoutError as error:
                what = f"--cluster {self.config.cluster}: has no worker; start `dask worker` on each host"
                raise UserError(what) from error
            except OSError as error:
                raise self.gone() from error
            try:
                self.client.register_plugin(watch, name=self.name)
                self.client.subscribe_topic(self.name, refused)
                self.load()
                return
            except ImportError as error:
                raise ConfigError(
                    f"--cluster {self.config.cluster}: nmt-smt is not installed where the scheduler runs, or "
                    f"is another version ({error})"
                ) from error
            except OSError as error:  # a worker was lost meanwhile
                failure = error
        raise UserError(
            f"--cluster {self.config.cluster}: workers are lost while they load the models; are they short "
            "of memory?"
        ) from failure

    def load(self) -> None:
        """Let all workers load the models. ConfigError for one that cannot take part, OSError where one is
        lost meanwhile."""
        mixed, expected = self.config.mixed_workers, self.there.here()
        found = self.client.run(self.there.here, on_error="return")
        there = {address: host for address, host in found.items() if not isinstance(host, OSError)}
        cluster.check_workers(there, expected, mixed)
        plugin = self.there.JobPlugin(self.name, self.begin, expected, mixed, frozenset(there))
        self.client.register_plugin(plugin, name=self.name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        own = self.client.cluster
        self.client.close()  # the scheduler tells the workers
        if own:
            own.close()

    def map(self, tasks: Iterable[Task]) -> Iterator[Result | Lost]:
        """The results, in the order of the tasks, `Lost` for those that killed their workers; only as many
        tasks are drawn as keep the workers busy. UserError where the scheduler is lost."""
        waiting: deque[Future[object]] = deque()
        for task in tasks:
            key = f"{self.name}-{self.submitted}"
            chunk = self.task.packed(task)
            first = -self.submitted  # what is drawn first is computed first, on each worker: see `JobWatch`
            waiting.append(
                self.client.submit(self.task.compute, self.name, chunk, key=key, pure=False, priority=first)
            )
            self.submitted += 1
            while len(waiting) > AHEAD * self.workers():
                yield self.result(waiting.popleft())
        while waiting:
            yield self.result(waiting.popleft())

    def workers(self) -> int:
        """How many there are; counted now and then. UserError where the scheduler is lost."""
        if time.monotonic() > self.counted + COUNT_EVERY:
            self.count = max(1, self.there_now())
            self.counted = time.monotonic()
        return self.count

    def there_now(self) -> int:
        """How many workers there are, asked of the scheduler. UserError where it is lost."""
        try:
            return len(self.client.nthreads())
        except OSError as error:
            raise self.gone() from error

    def result(self, future: "Future[object]") -> Result | Lost:
        """Wait for a task, and let the cluster forget it. Where no worker is left, say so now and then."""
        from distributed import CancelledError, KilledWorker
        from distributed.comm.core import CommClosedError

        try:
            while not self.done(future):
                if not self.there_now():
                    log.warning("--cluster %s: has no worker left; waiting for one", self.config.cluster)
            found: Result = future.result()  # type: ignore[assignment]
        except KilledWorker:
            return KILLED
        except (CancelledError, CommClosedError) as error:
            raise self.gone() from error
        finally:
            future.release()
        return found

    def done(self, future: "Future[object]") -> bool:
        """Wait a while for a task: is it done?"""
        from distributed import wait

        with self.client.as_current(), suppress(TimeoutError):
            wait(future, timeout=NEWS)
        return bool(future.done())

    def gone(self) -> UserError:
        """The error of a lost scheduler."""
        return UserError(
            f"--cluster {self.config.cluster}: the scheduler is gone; where the command has --resume, it "
            "continues after the finished chunks"
        )


def refused(event: tuple[float, str]) -> None:
    """Tell the user of a worker that joined later and cannot take part; it has closed."""
    log.warning("%s; it does not take part", event[1])
