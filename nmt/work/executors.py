"""Executors compute the chunks of a long job: in this process, in several, on a cluster, or wherever a plugin
takes them.

An executor is made with two functions. `compute` turns a task into its result in this process. `begin`, which
can be pickled, is called once wherever else tasks are computed, and returns such a function there (it loads
the models). The result of a job never depends on the executor.

On a cluster, a task that killed three workers does not end the job: its result is `Lost`. The other executors
never lose one: a worker process that dies on this machine ends the job.
"""

import importlib
import logging
import multiprocessing
import os
import signal
import threading
import time
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NoReturn, Protocol, Self, TypeVar

from nmt import plugins
from nmt.errors import ConfigError, UserError
from nmt.work import cluster
from nmt.work.config import ExecutorConfig

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture


# ---- lost chunks -------------------------------------------------------------------------------------------
# Chunks that no worker survived: the rest of the job is computed, and its last line names theirs.
#
# A consumer of `Executor.map` gets `Lost` in the place of such a chunk. It notes the lines in `LostLines`,
# and when all is done `check` ends the command.


Result = TypeVar("Result")

SHOWN_RANGES = 10  # ranges that the error names


@dataclass(frozen=True)
class Lost:
    """Stands for the result of a task that could not be computed. `reason`: a clause about the workers, such
    as `three workers died while they computed them`."""

    reason: str


KILLED = Lost("three workers died while they computed them")  # on a cluster


def all_results(results: Iterable[Result | Lost]) -> Iterator[Result]:
    """For jobs that need every result: UserError for the first that was lost."""
    for number, result in enumerate(results, 1):
        if isinstance(result, Lost):
            raise UserError(f"chunk {number} of the job: {result.reason}; are they short of memory?")
        yield result


@dataclass
class LostLines:
    """The lines of a job's input whose chunks were lost."""

    ranges: list[tuple[int, int]] = field(default_factory=list)  # first and last line, from 1
    reason: str = ""

    def add(self, first: int, last: int, lost: Lost) -> None:
        """Note the lines of a chunk; chunks come in order."""
        self.reason = self.reason or lost.reason
        if self.ranges and self.ranges[-1][1] == first - 1:
            first = self.ranges.pop()[0]
        self.ranges.append((first, last))

    def check(self, name: str, remedy: str, before: int = 0) -> None:
        """UserError that names the lost lines of `name`, and says what to do; nothing where there are none.
        `before`: lines of it that come before those that were counted."""
        if not self.ranges:
            return
        shown = ", ".join(
            f"{before + first:,}-{before + last:,}" if last > first else f"{before + first:,}"
            for first, last in self.ranges[:SHOWN_RANGES]
        )
        more = (
            f" and {len(self.ranges) - SHOWN_RANGES} more ranges" if len(self.ranges) > SHOWN_RANGES else ""
        )
        noun = "line" if len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1] else "lines"
        raise UserError(f"{name}: {noun} {shown}{more}: {self.reason}; {remedy}")


# ---- local -------------------------------------------------------------------------------------------------
# The executor `local`: chunks are computed in this process, one after the other.


Task = TypeVar("Task")


class Local(Generic[Task, Result]):
    """No other process; a task is drawn when its result is asked for."""

    def __init__(
        self,
        compute: Callable[[Task], Result],
        begin: Callable[[], Callable[[Task], Result]],
        config: ExecutorConfig,
    ) -> None:
        self.compute = compute

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """The results, in the order of the tasks."""
        return map(self.compute, tasks)


# ---- processes ---------------------------------------------------------------------------------------------
# The executor `processes`: worker processes on this machine take chunks in turn.
#
# Each worker is served by a thread of this process, which sends it a task and waits for the result. A worker
# that dies is noticed by its pipe, a parent that dies by its workers.


TASKS_PER_PROCESS = 2  # tasks that wait for each worker: enough to keep it busy, few enough for memory


class Processes(Generic[Task, Result]):
    """Worker processes, each of which calls `begin` as it starts."""

    def __init__(
        self,
        compute: Callable[[Task], Result],
        begin: Callable[[], Callable[[Task], Result]],
        config: ExecutorConfig,
    ) -> None:
        self.begin, self.workers = begin, config.workers
        self.processes: list[tuple[SpawnProcess, Connection]] = []
        self.idle: SimpleQueue[Connection] = SimpleQueue()
        self.threads = ThreadPoolExecutor(config.workers)

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")  # a forked torch may hang
        for _ in range(self.workers):
            here, there = context.Pipe()
            process = context.Process(target=serve_tasks, args=(there, self.begin), daemon=True)
            process.start()
            there.close()  # or the end of the worker would not close the pipe
            self.processes.append((process, here))
            self.idle.put(here)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:  # a chunk takes seconds: nobody waits for it after an error or an interrupt
            for process, _ in self.processes:
                process.terminate()
        self.threads.shutdown(cancel_futures=True)
        for process, connection in self.processes:
            connection.close()
            process.join()

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """The results, in the order of the tasks; only as many tasks are drawn as keep the workers busy.
        UserError where a worker died."""
        waiting: deque[Future[Result]] = deque()
        for task in tasks:
            waiting.append(self.threads.submit(self.compute, task))
            if len(waiting) > TASKS_PER_PROCESS * self.workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def compute(self, task: Task) -> Result:
        """One task, by a worker that is idle: there are as many threads as workers."""
        connection = self.idle.get()
        try:
            connection.send(task)
            result, error = connection.recv()
        except (EOFError, OSError) as gone:
            raise UserError(
                "a worker process died; was it short of memory? Use fewer workers; where the command has "
                "--resume, it continues after the finished chunks"
            ) from gone
        finally:
            self.idle.put(connection)
        if error is not None:
            raise error
        answer: Result = result
        return answer


def serve_tasks(connection: Connection, begin: Callable[[], Callable[[Task], Result]]) -> None:
    """What a worker does: tasks in, (result, None) or (None, exception) out, until the pipe closes. It leaves
    interrupts to its parent, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=follow_parent, daemon=True).start()
    compute = begin_or_fail(begin)
    with suppress(EOFError):
        while True:
            task: Task = connection.recv()
            try:
                answer: tuple[Result | None, Exception | None] = compute(task), None
            except Exception as error:
                error.add_note(f"in a worker process:\n{traceback.format_exc()}")
                answer = None, error
            connection.send(answer)


def begin_or_fail(begin: Callable[[], Callable[[Task], Result]]) -> Callable[[Task], Result]:
    """What `begin` returns; where it fails, a function that reports it as the failure of every task."""
    try:
        plugins.load()
        return begin()
    except Exception as error:
        failure = error

    def fail(task: Task) -> NoReturn:
        raise failure

    return fail


def follow_parent() -> None:
    """Wait for the parent's end, and end with it, whatever this process computes."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        with suppress(Exception):
            parent.join()
        os._exit(1)


# ---- dask --------------------------------------------------------------------------------------------------
# The executor `dask`: chunks are computed by the workers of a Dask cluster, on any number of hosts.
#
# Dask starts a task anew where its worker was lost; results come back in order. Models are not sent: each
# worker loads them from their path, once a job.


log = logging.getLogger(__name__)

TASKS_PER_DASK_WORKER = 3  # tasks that wait for each worker: enough to keep it busy, few enough for memory
SECONDS_TO_NEWS = 60.0  # seconds after which the user hears that no worker is left
COUNT_EVERY = 2.0  # seconds between counts of the workers
JOB_STARTS = 5  # times that a job starts, where each time a worker is lost meanwhile


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
        self.there = importlib.import_module("nmt.work.dask_worker")
        self.scheduling = importlib.import_module("nmt.work.dask_scheduler")
        try:
            self.start()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def start(self) -> None:
        """Wait for a worker, and let all load the models."""
        if self.client.scheduler_comm is None:
            raise self.gone()
        self.scheduling.shorten_log(self.client.scheduler_comm)
        watch = self.scheduling.JobWatch(self.name, self.client.id)
        failure: OSError | None = None
        for _ in range(JOB_STARTS):
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
                self.client.subscribe_topic(self.name, warn_of_refusal)
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
        mixed, expected = self.config.mixed_workers, self.there.this_host()
        found = self.client.run(self.there.this_host, on_error="return")
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
        waiting: deque[DaskFuture[object]] = deque()
        for task in tasks:
            key = f"{self.name}-{self.submitted}"
            chunk = self.scheduling.pack_task(task)
            first = -self.submitted  # what is drawn first is computed first, on each worker: see `JobWatch`
            waiting.append(
                self.client.submit(
                    self.scheduling.compute_task, self.name, chunk, key=key, pure=False, priority=first
                )
            )
            self.submitted += 1
            while len(waiting) > TASKS_PER_DASK_WORKER * self.workers():
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

    def result(self, future: "DaskFuture[object]") -> Result | Lost:
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

    def done(self, future: "DaskFuture[object]") -> bool:
        """Wait a while for a task: is it done?"""
        from distributed import wait

        with self.client.as_current(), suppress(TimeoutError):
            wait(future, timeout=SECONDS_TO_NEWS)
        return bool(future.done())

    def gone(self) -> UserError:
        """The error of a lost scheduler."""
        return UserError(
            f"--cluster {self.config.cluster}: the scheduler is gone; where the command has --resume, it "
            "continues after the finished chunks"
        )


def warn_of_refusal(event: tuple[float, str]) -> None:
    """Tell the user of a worker that joined later and cannot take part; it has closed."""
    log.warning("%s; it does not take part", event[1])


# ---- executors ---------------------------------------------------------------------------------------------


Task_contra = TypeVar("Task_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)


class Executor(Protocol[Task_contra, Result_co]):
    """A context manager: whatever it starts ends with the block, at once where the block ends in an error."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None: ...

    def map(self, tasks: Iterable[Task_contra]) -> Iterator[Result_co | Lost]:
        """The results, in the order of the tasks, and `Lost` for those that no worker survived. Tasks are
        drawn only as they are needed, since a job may have more of them than memory holds."""
        ...


class ExecutorType(Protocol):
    """How an executor is made; see above."""

    def __call__(
        self,
        compute: Callable[[Task], Result],
        begin: Callable[[], Callable[[Task], Result]],
        config: ExecutorConfig,
    ) -> Executor[Task, Result]: ...


EXECUTORS: dict[str, ExecutorType] = {"local": Local, "processes": Processes, "dask": Dask}


def make(
    compute: Callable[[Task], Result],
    begin: Callable[[], Callable[[Task], Result]],
    config: ExecutorConfig,
) -> Executor[Task, Result]:
    """The executor that the configuration names; without a name the cluster where there is one, this process
    for one worker, several processes for more. ConfigError for a name that is not in EXECUTORS, and for a
    cluster that another executor does not use."""
    if config.name not in EXECUTORS:
        raise ConfigError(f"executor {config.name!r} is unknown, expected one of {', '.join(EXECUTORS)}")
    if config.cluster and config.name in ("local", "processes"):
        raise ConfigError(f"--executor {config.name} does not use the --cluster {config.cluster}")
    return EXECUTORS[config.name](compute, begin, config)


# ---- lines in chunks ---------------------------------------------------------------------------------------
# Lines of text, or tuples of lines, converted in chunks by one process or several.


Line = TypeVar("Line")

LINES_PER_CHUNK = 500  # lines: a tenth of a second for a tokenizer


def convert_lines(
    begin: Callable[[], Callable[[Sequence[Line]], Sequence[Result]]], lines: Iterable[Line], workers: int
) -> Iterator[Result]:
    """The result of each line, in order, whatever the number of workers. `begin`, which can be pickled, is
    called once in each process and returns what converts a chunk; its errors come at the first result."""
    with make(begin(), begin, ExecutorConfig(workers=workers)) as executor:
        for results in all_results(executor.map(line_chunks(iter(lines)))):
            yield from results


def line_chunks(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """The lines, many at a time."""
    while chunk := list(islice(lines, LINES_PER_CHUNK)):
        yield chunk
