"""Executors compute the chunks of a long job: in this process, in several, on a cluster, or by a plugin.

An executor is made with two functions. `compute` turns a task into its result in this process.
`make_compute`, which must be picklable, is called once in each worker, loads the models and returns such a
function. The result of a job does not depend on the executor, unless its processors round differently.

On a cluster, a task that killed three workers does not end the job: its result is `Lost`. The other executors
lose no tasks: a worker process that dies on this machine ends the job.
"""

import importlib
import logging
import multiprocessing
import os
import pickle
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
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, Self, TypeVar

from nmt import plugins
from nmt.config import settings
from nmt.errors import ConfigError, UserError
from nmt.work import cluster

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as DaskFuture


# ---- settings ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExecutorConfig:
    """Where and by how many workers a job is computed. Its result does not depend on these settings, except
    that different processors may round differently."""

    executor: str = settings.setting(
        "",
        help="where to compute: local (this process), processes, or dask; default: processes for several "
        "workers, dask with --cluster",
    )
    workers: int = settings.number(1, least=1, help="number of processes; the result does not depend on it")
    cluster: str = settings.setting(
        "",
        help="compute on a Dask cluster: the address of its scheduler, or the scheduler.json that it wrote; "
        "slurm:FILE starts workers in Slurm jobs",
    )
    mixed_workers: bool = settings.setting(
        False,
        help="allow workers of a cluster with another processor or version of torch than this one: numbers "
        "may differ in their last digits from worker to worker",
    )

    def recorded(self) -> dict[str, bool]:
        """The settings that a job folder records, because they may affect numbers."""
        return {"mixed_workers": True} if self.mixed_workers else {}

    @property
    def name(self) -> str:
        """Name of the executor, chosen by the other settings unless `executor` is set."""
        if self.executor:
            return self.executor
        return "dask" if self.cluster else "processes" if self.workers > 1 else "local"


# ---- lost chunks -------------------------------------------------------------------------------------------
# The result of a chunk that no worker survived is `Lost`. The command collects the lines of such chunks in
# `LostLines` and computes the rest; then `LostLines.check` raises an error.


Result = TypeVar("Result")

SHOWN_RANGES = 10  # ranges of lines named in the error


@dataclass(frozen=True)
class Lost:
    """The result of a task that could not be computed. `reason`: a clause, as in KILLED."""

    reason: str


KILLED = Lost("three workers died while computing this")  # on a cluster


def require_results(results: Iterable[Result | Lost]) -> Iterator[Result]:
    """Yield the results of a job that needs all of them. UserError for the first task that was lost."""
    for number, result in enumerate(results, 1):
        if isinstance(result, Lost):
            raise UserError(f"chunk {number} of the job: {result.reason}; are the workers short of memory?")
        yield result


@dataclass
class LostLines:
    """Lines of the input whose chunks were lost."""

    ranges: list[tuple[int, int]] = field(default_factory=list)  # first and last line, from 1
    reason: str = ""

    def add(self, first: int, last: int, lost: Lost) -> None:
        """Add the lines of a lost chunk, `first` to `last`, inclusive, from 1; chunks come in order."""
        self.reason = self.reason or lost.reason
        if self.ranges and self.ranges[-1][1] == first - 1:
            first = self.ranges.pop()[0]
        self.ranges.append((first, last))

    def check(self, name: str, remedy: str, lines_before: int = 0) -> None:
        """UserError that names the lost lines of the file `name`, and a remedy; does nothing if none were
        lost. `lines_before`: number of lines of the file before line 1 of these ranges."""
        if not self.ranges:
            return
        shown = ", ".join(
            f"{lines_before + first:,}-{lines_before + last:,}"
            if last > first
            else f"{lines_before + first:,}"
            for first, last in self.ranges[:SHOWN_RANGES]
        )
        more = (
            f" and {len(self.ranges) - SHOWN_RANGES} more ranges" if len(self.ranges) > SHOWN_RANGES else ""
        )
        noun = "line" if len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1] else "lines"
        raise UserError(f"{name}: {noun} {shown}{more}: {self.reason}; {remedy}")


# ---- local -------------------------------------------------------------------------------------------------


Task = TypeVar("Task")


class Local(Generic[Task, Result]):
    """Computes chunks in this process, one after the other; a task is drawn when its result is needed."""

    def __init__(
        self,
        compute: Callable[[Task], Result],
        make_compute: Callable[[], Callable[[Task], Result]],
        config: ExecutorConfig,
    ) -> None:
        self.compute = compute

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        return map(self.compute, tasks)


# ---- processes ---------------------------------------------------------------------------------------------
# Each worker is served by a thread of this process, which sends it a task and waits for the result. The death
# of a worker closes its pipe; the workers end with this process.


TASKS_PER_PROCESS = 2  # tasks waiting for each worker: enough to keep it busy, few enough for memory


class Processes(Generic[Task, Result]):
    """Computes chunks in worker processes on this machine; each calls `make_compute` as it starts."""

    def __init__(
        self,
        compute: Callable[[Task], Result],
        make_compute: Callable[[], Callable[[Task], Result]],
        config: ExecutorConfig,
    ) -> None:
        self.make_compute, self.workers = make_compute, config.workers
        self.processes: list[tuple[SpawnProcess, Connection]] = []
        self.idle: SimpleQueue[Connection] = SimpleQueue()
        self.threads = ThreadPoolExecutor(config.workers)

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")  # a forked torch may hang
        for _ in range(self.workers):
            here, remote = context.Pipe()
            process = context.Process(target=serve_tasks, args=(remote, self.make_compute), daemon=True)
            process.start()
            remote.close()  # or the end of the worker would not close the pipe
            self.processes.append((process, here))
            self.idle.put(here)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:  # a chunk takes seconds: do not wait for it after an error or an interrupt
            for process, _ in self.processes:
                process.terminate()
        self.threads.shutdown(cancel_futures=True)
        for process, connection in self.processes:
            connection.close()
            process.join()

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield results in the order of the tasks; draws only as many tasks as keep the workers busy.
        UserError if a worker dies."""
        waiting: deque[Future[Result]] = deque()
        for task in tasks:
            waiting.append(self.threads.submit(self.compute, task))
            if len(waiting) > TASKS_PER_PROCESS * self.workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def compute(self, task: Task) -> Result:
        """Let an idle worker compute a task; there is always one, since there are as many threads as workers.
        UserError if it dies, and the error that the task raised in it."""
        connection = self.idle.get()
        try:
            connection.send(task)
            result, error = connection.recv()
        except (EOFError, OSError) as gone:
            raise UserError(
                "a worker process died, possibly for lack of memory; use fewer workers. Where the command "
                "has --resume, it continues after the finished chunks"
            ) from gone
        finally:
            self.idle.put(connection)
        if error is not None:
            raise error
        answer: Result = result
        return answer


def serve_tasks(connection: Connection, make_compute: Callable[[], Callable[[Task], Result]]) -> None:
    """Run a worker: read tasks and send (result, None) or (None, exception) until the pipe closes. Ignores
    interrupts, which the parent handles; the worker ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=follow_parent, daemon=True).start()
    compute = make_compute_or_fail(make_compute)
    with suppress(EOFError):
        while True:
            task: Task = connection.recv()
            try:
                answer: tuple[Result | None, Exception | None] = compute(task), None
            except Exception as error:
                error.add_note(f"in a worker process:\n{traceback.format_exc()}")
                answer = None, sendable(plugins.explained(error))
            connection.send(answer)


def sendable(error: Exception) -> Exception:
    """The error or, if pickle cannot make it again, a RuntimeError that describes it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        description = RuntimeError(f"{type(error).__name__}: {error}")
        description.__notes__ = getattr(error, "__notes__", [])
        return description
    return error


def make_compute_or_fail(make_compute: Callable[[], Callable[[Task], Result]]) -> Callable[[Task], Result]:
    """Load plugins and call `make_compute`; if that fails, return a function that raises its error."""
    try:
        plugins.load()
        return make_compute()
    except Exception as error:
        failure = plugins.explained(error)

    def fail(task: Task) -> NoReturn:
        raise failure

    return fail


def follow_parent() -> None:
    """Wait for the end of the parent, then exit at once, whatever this process is computing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        with suppress(Exception):
            parent.join()
        os._exit(1)


# ---- dask --------------------------------------------------------------------------------------------------
# Dask restarts a task whose worker was lost. Models are not sent: each worker loads them from their path,
# once for each job.


log = logging.getLogger(__name__)

TASKS_PER_DASK_WORKER = 3  # tasks waiting for each worker: enough to keep it busy, few enough for memory
WARN_EVERY = 60.0  # seconds between warnings that no worker is left
COUNT_EVERY = 2.0  # seconds between counts of the workers
JOB_STARTS = 5  # attempts to start a job while workers are lost


class Dask(Generic[Task, Result]):
    """Computes chunks on the workers of a Dask cluster. Entering the block raises UserError and ConfigError
    as `cluster.connect` and `cluster.check_workers` do."""

    def __init__(
        self,
        compute: Callable[[Task], Result],
        make_compute: Callable[[], Callable[[Task], Result]],
        config: ExecutorConfig,
    ) -> None:
        if not config.cluster:
            raise ConfigError("--executor dask needs a --cluster")
        self.make_compute, self.config = make_compute, config
        self.name = f"nmt-smt-{uuid.uuid4().hex}"
        self.submitted = 0  # tasks of all calls of `map`
        self.counted, self.count = 0.0, 1  # time of the last count of workers, and their number

    def __enter__(self) -> Self:
        self.client: Client = cluster.connect(self.config.cluster)
        # These import `distributed` and torch, for which --help and wrong options should not wait.
        self.worker_module = importlib.import_module("nmt.work.dask_worker")
        self.scheduler_module = importlib.import_module("nmt.work.dask_scheduler")
        try:
            self.start()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def start(self) -> None:
        """Wait for a worker and let all workers load the models; tries again if one is lost meanwhile.
        UserError and ConfigError as for the class."""
        if self.client.scheduler_comm is None:
            raise self.scheduler_lost()
        self.scheduler_module.shorten_log(self.client.scheduler_comm)
        watch = self.scheduler_module.JobWatch(self.name, self.client.id)
        failure: OSError | None = None
        for _ in range(JOB_STARTS):
            try:
                seconds = None if self.client.cluster else cluster.FIRST_WORKER  # jobs may wait for hours
                self.client.wait_for_workers(1, timeout=seconds)
            except TimeoutError as error:
                raise UserError(
                    f"--cluster {self.config.cluster}: has no worker; start `dask worker` on each host"
                ) from error
            except OSError as error:
                raise self.scheduler_lost() from error
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
            f"--cluster {self.config.cluster}: workers are lost while loading the models, possibly for lack "
            "of memory"
        ) from failure

    def load(self) -> None:
        """Let all workers load the models. ConfigError for a worker that cannot take part, OSError if one is
        lost meanwhile, and other errors of `make_compute`."""
        mixed, expected = self.config.mixed_workers, self.worker_module.this_host()
        hosts = self.client.run(self.worker_module.this_host, on_error="return")
        reached = {address: host for address, host in hosts.items() if not isinstance(host, OSError)}
        cluster.check_workers(reached, expected, mixed)
        plugin = self.worker_module.JobPlugin(
            self.name, self.make_compute, expected, mixed, frozenset(reached)
        )
        self.client.register_plugin(plugin, name=self.name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        started_cluster = self.client.cluster
        try:
            self.client.close()  # the scheduler tells the workers
        except RuntimeError:  # Dask cancels an attempt to connect twice, if the scheduler was just lost
            self.client.close()
        if started_cluster:
            started_cluster.close()

    def map(self, tasks: Iterable[Task]) -> Iterator[Result | Lost]:
        """Yield results in the order of the tasks, `Lost` for tasks that killed their workers; draws only as
        many tasks as keep the workers busy. UserError if the scheduler is lost."""
        waiting: deque[DaskFuture[object]] = deque()
        for task in tasks:
            key = f"{self.name}-{self.submitted}"
            chunk = self.scheduler_module.pack_task(task)
            first = -self.submitted  # each worker computes its tasks in order, as `JobWatch` assumes
            waiting.append(
                self.client.submit(
                    self.scheduler_module.compute_task, self.name, chunk, key=key, pure=False, priority=first
                )
            )
            self.submitted += 1
            while len(waiting) > TASKS_PER_DASK_WORKER * self.workers():
                yield self.result(waiting.popleft())
        while waiting:
            yield self.result(waiting.popleft())

    def workers(self) -> int:
        """Number of workers, queried anew every few seconds. UserError if the scheduler is lost."""
        if time.monotonic() > self.counted + COUNT_EVERY:
            self.count = max(1, self.count_workers())
            self.counted = time.monotonic()
        return self.count

    def count_workers(self) -> int:
        """Query the scheduler for the number of workers. UserError if it is lost."""
        try:
            return len(self.client.nthreads())
        except OSError as error:
            raise self.scheduler_lost() from error

    def result(self, future: "DaskFuture[object]") -> Result | Lost:
        """Wait for a task, return its result and release it on the cluster; `Lost` if it killed its workers.
        Warns periodically while no worker is left. UserError if the scheduler is lost."""
        from distributed import CancelledError, KilledWorker
        from distributed.comm.core import CommClosedError

        seconds = WARN_EVERY
        try:
            while True:
                if self.done(future):
                    # Its worker may be lost with the result, which Dask then waits for to be computed again.
                    try:
                        return future.result(timeout=seconds)  # type: ignore[return-value]
                    except TimeoutError:
                        if future.status == "error":  # the task's own error
                            raise
                        seconds *= 2  # a large result takes longer
                if not self.count_workers():
                    log.warning("--cluster %s: has no worker left; waiting for one", self.config.cluster)
        except KilledWorker:
            return KILLED
        except (CancelledError, CommClosedError) as error:
            raise self.scheduler_lost() from error
        finally:
            future.release()

    def done(self, future: "DaskFuture[object]") -> bool:
        """Wait for a task for at most WARN_EVERY; returns whether it is done."""
        from distributed import wait

        with self.client.as_current(), suppress(TimeoutError):
            wait(future, timeout=WARN_EVERY)
        return bool(future.done())

    def scheduler_lost(self) -> UserError:
        """The error for a lost scheduler."""
        return UserError(
            f"--cluster {self.config.cluster}: lost the scheduler; where the command has --resume, it "
            "continues after the finished chunks"
        )


def warn_of_refusal(event: tuple[float, str]) -> None:
    """Log a warning about a worker that came later and cannot take part. `event`: (time, reason)."""
    log.warning("%s; it does not take part", event[1])


# ---- executors ---------------------------------------------------------------------------------------------


Task_contra = TypeVar("Task_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)


class Executor(Protocol[Task_contra, Result_co]):
    """Context manager that computes tasks. All that it starts ends with the block, at once on errors."""

    def __init__(
        self,
        compute: Callable[[Task_contra], Result_co],
        make_compute: Callable[[], Callable[[Task_contra], Result_co]],
        config: ExecutorConfig,
    ) -> None:
        """The docstring of this module explains the two functions."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None: ...

    def map(self, tasks: Iterable[Task_contra]) -> Iterator[Result_co | Lost]:
        """Yield results in the order of the tasks, `Lost` for tasks that no worker survived. Tasks are drawn
        only as needed, since a job may have more of them than memory holds. An error of `compute` or
        `make_compute` is raised instead of the result."""
        ...


EXECUTORS: dict[str, type[Executor[Any, Any]]] = {"local": Local, "processes": Processes, "dask": Dask}


def make(
    compute: Callable[[Task], Result],
    make_compute: Callable[[], Callable[[Task], Result]],
    config: ExecutorConfig,
) -> Executor[Task, Result]:
    """Make the executor that the settings name, see the docstring of this module. ConfigError for an unknown
    name, and for a `cluster` setting that the executor does not use."""
    if config.name not in EXECUTORS:
        raise ConfigError(f"executor {config.name!r} is unknown, expected one of {', '.join(EXECUTORS)}")
    if config.cluster and config.name in ("local", "processes"):
        raise ConfigError(f"--executor {config.name} does not use the --cluster {config.cluster}")
    executor = EXECUTORS[config.name](compute, make_compute, config)
    if not plugins.is_own(type(executor).__module__):
        executor.map = partial(one_result_each, executor.map)  # type: ignore[method-assign]
    return executor


def one_result_each(method: Callable[[Iterable[Task]], object], tasks: Iterable[Task]) -> Iterator[object]:
    """Yield the results of a plugin's `map`; ConfigError unless there is one for each task."""
    missing = 0  # results, of the tasks drawn so far

    def draw() -> Iterator[Task]:
        nonlocal missing
        for task in tasks:
            missing += 1
            yield task

    waiting = draw()
    results = method(waiting)
    if not isinstance(results, Iterable):
        raise plugins.wrong_result(method, type(results).__name__, "an iterator of results")
    for result in results:
        missing -= 1
        if missing < 0:
            raise plugins.wrong_result(method, "more results than tasks", "one for each task")
        yield result
    if missing or any(True for _ in waiting):
        raise plugins.wrong_result(method, "fewer results than tasks", "one for each task")


# ---- lines in chunks ---------------------------------------------------------------------------------------


Line = TypeVar("Line")

LINES_PER_CHUNK = 500  # a tokenizer takes a tenth of a second for them


def convert_lines(
    make_compute: Callable[[], Callable[[Sequence[Line]], Sequence[Result]]],
    lines: Iterable[Line],
    workers: int,
) -> Iterator[Result]:
    """Convert lines, or tuples of parallel lines, in `workers` processes; yields the results in order.
    `make_compute`, which must be picklable, is called in this process and in each worker, and returns a
    function that converts a chunk; its errors are raised with the first result. UserError if a worker
    dies."""
    with make(make_compute(), make_compute, ExecutorConfig(workers=workers)) as executor:
        for results in require_results(executor.map(line_chunks(iter(lines)))):
            yield from results


def line_chunks(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """Group lines into chunks of LINES_PER_CHUNK; the last may be shorter."""
    while chunk := list(islice(lines, LINES_PER_CHUNK)):
        yield chunk
