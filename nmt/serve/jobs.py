"""The lines that wait for an engine: a bounded queue between the requests and the engine's threads."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from nmt.serve.engine import Options, Translated

Answer = TypeVar("Answer")


class QueueFull(Exception):
    """More lines than may wait."""


class Closed(Exception):
    """The engine takes no more lines."""


class Awaited(Generic[Answer]):
    """Something that an engine is asked, and who waits for the answer."""

    def __init__(self) -> None:
        self.answer: Future[Answer] = Future()
        self.stop = threading.Event()  # nobody waits any more

    def drop(self) -> None:
        """Nobody waits any more."""
        self.stop.set()
        self.answer.cancel()

    def begin(self) -> bool:
        """Is it still wanted? Called once, by the thread that takes it."""
        return self.answer.set_running_or_notify_cancel() and not self.stop.is_set()


class Job(Awaited[Translated]):
    """A line to translate."""

    def __init__(self, line: str, options: Options) -> None:
        super().__init__()
        self.line, self.options = line, options


class Call(Awaited[list[list[float]]]):
    """Something else to compute with the engine: scores."""

    def __init__(self, compute: Callable[[], list[list[float]]]) -> None:
        super().__init__()
        self.compute = compute

    def run(self) -> None:
        """Compute, and answer."""
        try:
            self.answer.set_result(self.compute())
        except Exception as error:
            self.answer.set_exception(error)


Work = Job | Call


class Jobs:
    """First in, first out; several threads may take from it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.waiting: deque[Work] = deque()
        self.changed = threading.Condition()
        self.closed = False

    def __len__(self) -> int:
        return len(self.waiting)

    def put(self, jobs: Sequence[Work]) -> None:
        """All of these, or none: QueueFull where they are too many for now, Closed after `close`."""
        with self.changed:
            if self.closed:
                raise Closed
            if len(self.waiting) + len(jobs) > self.limit:
                raise QueueFull
            self.waiting.extend(jobs)
            self.changed.notify(len(jobs))

    def take(self, seconds: float | None = None) -> Work | None:
        """The next one that is still wanted; waits so long for it, None: for ever. None when time is up, or
        when all is done after `close`."""
        end = None if seconds is None else time.monotonic() + seconds
        with self.changed:
            while True:
                while self.waiting:
                    job = self.waiting.popleft()
                    if job.begin():
                        return job
                left = None if end is None else end - time.monotonic()
                if self.closed or (left is not None and left <= 0):
                    return None
                self.changed.wait(left)

    def close(self) -> None:
        """Take no more; what waits is still done."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
