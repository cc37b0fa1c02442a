"""The threads of an engine: they take lines from its queue until that is closed and empty."""

import logging
import threading
import time
from collections.abc import Iterator

from nmt.errors import UserError
from nmt.serve.engine import Continuous, Engine, Session, Translated
from nmt.serve.waiting import LineQueue, WaitingLine, Work

log = logging.getLogger(__name__)

SPARE = 8  # lines that a search takes beyond its room, so that no client waits for the lines of others to end


class Workers:
    """An engine at work, and the queue of its lines."""

    def __init__(self, engine: Engine, limit: int, gather: float) -> None:
        """`limit`: lines that may wait; `gather`: seconds that an idle engine waits for more lines to search
        together."""
        self.engine, self.gather = engine, gather
        # An engine that is called by one thread may not bear two.
        spare = SPARE if isinstance(engine, Continuous) else engine.workers if engine.workers > 1 else 0
        self.queue = LineQueue(limit, spare)
        self.threads = [
            threading.Thread(target=self.run, args=(room,), name=f"engine-{number}", daemon=True)
            for number, room in enumerate(self.rooms())
        ]
        for thread in self.threads:
            thread.start()

    def rooms(self) -> list[bool]:
        """For each thread: does it take any line, or only those that may not wait for the others?"""
        spare = 0 if isinstance(self.engine, Continuous) else self.queue.spare
        return [True] * self.engine.workers + [False] * spare

    def run(self, room: bool) -> None:
        """What a thread does."""
        if isinstance(self.engine, Continuous):
            Together(self.engine, self.queue, self.gather).run()
        else:
            while line := self.queue.take(room=room):
                line.work(self.engine)

    def join(self, seconds: float | None = None) -> None:
        """Wait until all is done, at most so many seconds; None: for ever."""
        end = None if seconds is None else time.monotonic() + seconds
        for thread in self.threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))


class Together:
    """One thread that translates many lines together: those that come while others are in search join
    them."""

    def __init__(self, engine: Continuous, queue: LineQueue, gather: float) -> None:
        self.engine, self.queue, self.gather = engine, queue, gather
        self.session: Session = engine.session()
        self.lines: set[WaitingLine[Translated]] = set()  # in search
        self.owed = 0.0  # seconds that the search has waited for something else to be computed

    def run(self) -> None:
        while self.fill():
            start = time.monotonic()
            try:
                for line, answer in self.session.step():
                    assert isinstance(line, WaitingLine)
                    self.lines.remove(line)
                    line.finish(answer)
            except Exception as error:
                self.fail(error)
            self.owed -= time.monotonic() - start
            for line in [line for line in self.lines if line.stop.is_set()]:
                self.session.cancel(line)
                self.lines.remove(line)
                line.finish(InterruptedError())

    def fill(self) -> bool:
        """Add the lines that there is room for. False when all is done."""
        while not self.lines:
            line = self.queue.take()
            if line is None:
                return False
            self.add(line)
            for other in self.coming(time.monotonic() + self.gather):
                self.add(other)
        for other in self.coming(0):
            self.add(other)
        return True

    def coming(self, end: float) -> Iterator[Work]:
        """Lines from the queue while there is room, until it is `end`."""
        while True:
            room, compute = self.session.wants(), not self.lines or self.owed <= 0
            line = self.queue.take(max(0.0, end - time.monotonic()) if room else 0, room, compute)
            if line is None:
                return
            yield line

    def add(self, line: Work) -> None:
        if line.compute:
            start = time.monotonic()
            line.work()
            self.owed = time.monotonic() - start
            return
        try:
            self.session.add(line, line.line, line.options)
        except Exception as error:
            line.finish(error)
        else:
            self.lines.add(line)  # type: ignore[arg-type]

    def fail(self, error: Exception) -> None:
        """The search has broken: all lines in it fail, and a new one begins."""
        if not isinstance(error, UserError):
            log.error("the search failed, with %d lines in it: %s", len(self.lines), error)
        for line in self.lines:
            line.finish(error)
        self.lines.clear()
        self.session = self.engine.session()
