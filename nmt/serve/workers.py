"""The threads of an engine: they take lines from its queue until that is closed and empty."""

import logging
import math
import threading
import time
from collections.abc import Iterator

from nmt.errors import UserError
from nmt.serve.engine import Continuous, Engine, Translated
from nmt.serve.waiting import LineQueue, Sender, WaitingLine, Work

log = logging.getLogger(__name__)

FEW = 4  # lines of a client that are searched apart from long ones
CREDIT = 0.3  # seconds
MOST_READ = 0.02  # seconds that lines are read between two steps of a search
SPARE = 8  # lines that a search takes beyond its room, so that no client waits for the lines of others to end


class Workers:
    """An engine at work, and the queue of its lines."""

    def __init__(self, engine: Engine, limit: int, gather: float) -> None:
        """`limit`: lines that may wait; `gather`: seconds that an idle engine waits for more lines to search
        together."""
        self.engine, self.gather = engine, gather
        # An engine that is called by one thread may not bear two.
        spare = SPARE if isinstance(engine, Continuous) else engine.workers if engine.workers > 1 else 0
        self.queue = LineQueue(limit, spare, short=isinstance(engine, Continuous))
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


class Lane:
    """Lines that are searched together, and the seconds that this took."""

    def __init__(self, engine: Continuous) -> None:
        self.engine, self.session = engine, engine.session()
        self.lines = set[WaitingLine[Translated]]()
        self.used = 0.0

    def has(self, sender: Sender) -> int:
        """Lines of a client."""
        return sum(line.sender.client == sender.client for line in self.lines)

    def add(self, line: WaitingLine[Translated]) -> None:
        start = time.monotonic()
        try:
            self.session.add(line, line.line, line.options)
        except Exception as error:
            line.finish(error)
        else:
            self.lines.add(line)
        self.used += time.monotonic() - start

    def step(self) -> None:
        """Search for a moment."""
        start = time.monotonic()
        try:
            for line, answer in self.session.step():
                assert isinstance(line, WaitingLine)
                self.lines.remove(line)
                line.finish(answer)
        except Exception as error:
            self.fail(error)
        self.used += time.monotonic() - start

    def drop(self) -> None:
        """Leave the lines that nobody waits for."""
        for line in [line for line in self.lines if line.stop.is_set()]:
            self.session.cancel(line)
            self.lines.remove(line)
            line.finish(InterruptedError())

    def fail(self, error: Exception) -> None:
        """The search has broken: all lines in it fail, and a new one begins."""
        if not isinstance(error, UserError):
            log.error("the search failed, with %d lines in it: %s", len(self.lines), error)
        for line in self.lines:
            line.finish(error)
        self.lines.clear()
        self.session = self.engine.session()


class Together:
    """One thread that translates many lines together: those that come while others are in search join them.

    A few short lines of each client have a search of their own. It gets half of the time while there are
    others, and begins with a credit: so a step that reads or keeps much delays them only once.
    """

    def __init__(self, engine: Continuous, queue: LineQueue, gather: float) -> None:
        self.queue, self.gather = queue, gather
        self.short, self.rest = Lane(engine), Lane(engine)
        self.owed = 0.0  # seconds that the search has waited for something else to be computed

    @property
    def lanes(self) -> list[Lane]:
        """Those with lines in search."""
        return [lane for lane in (self.short, self.rest) if lane.lines]

    def run(self) -> None:
        while self.fill():
            self.step()

    def step(self) -> None:
        """Search for a moment: where less time was spent so far."""
        lanes = self.lanes
        if len(lanes) == 1:  # what it takes now is not at the cost of others
            self.short.used = self.rest.used = -math.inf
            lanes[0].used = 0.0
        if lanes:
            lane = min(lanes, key=lambda lane: lane.used)
            before = lane.used
            lane.step()
            self.owed -= lane.used - before
        for lane in lanes:
            lane.drop()

    def fill(self) -> bool:
        """Add the lines that there is room for. False when all is done."""
        while not self.lanes:
            line = self.queue.take()
            if line is None:
                return False
            self.add(line)
            for other in self.coming(time.monotonic() + self.gather):
                self.add(other)
        end = time.monotonic() + MOST_READ
        for other in self.coming(0):
            self.add(other)
            if time.monotonic() > end:
                break
        return True

    def coming(self, end: float) -> Iterator[Work]:
        """Lines from the queue while there is room, until it is `end`."""
        while True:
            # Reading a long line takes time, too: it is that of its search.
            turn = not self.short.lines or self.rest.used <= self.short.used
            room, compute = turn and self.rest.session.wants(), not self.lanes or self.owed <= 0
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
        few = not self.rest.has(line.sender) and self.short.has(line.sender) < FEW
        lane = self.short if few and line.is_short and self.short.session.wants() else self.rest
        if not lane.lines:
            credit = CREDIT if lane is self.short else 0.0
            lane.used = max([lane.used, *(other.used - credit for other in self.lanes)])
            lane.used = max(lane.used, 0.0) if not self.lanes else lane.used
        lane.add(line)  # type: ignore[arg-type]
