"""The executor `processes`: worker processes on this machine take chunks in turn.

Each worker is served by a thread of this process, which sends it a task and waits for the result. A worker
that dies is noticed by its pipe, a parent that dies by its workers.
"""

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from types import TracebackType
from typing import Generic, NoReturn, Self, TypeVar

from nmt import plugins
from nmt.errors import UserError
from nmt.jobs.config import ExecutorConfig

AHEAD = 2  # tasks that wait for each worker: enough to keep it busy, few enough for memory
Task = TypeVar("Task")
Result = TypeVar("Result")


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
            process = context.Process(target=serve, args=(there, self.begin), daemon=True)
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
            if len(waiting) > AHEAD * self.workers:
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


def serve(connection: Connection, begin: Callable[[], Callable[[Task], Result]]) -> None:
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
