"""The queue of an engine, in which clients take turns, and the threads that work on its lines."""

import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar, cast

from nmt.errors import UserError
from nmt.serve.engine import Engine, TranslatedLine, TranslateOptions

# ---- lines and their queue ---------------------------------------------------------------------------------

Answer = TypeVar("Answer")
Scores = list[list[tuple[str, float]]]  # of each pair, the units and the natural log p of each


class QueueFull(Exception):
    """Raised when the queue has no room for the lines of a request."""


class QueueClosed(Exception):
    """Raised when the engine takes no more lines, because it is stopping or being replaced."""


SHORT_LINE = 300  # characters
NARROW_SEARCH = 10  # hypotheses


class Sender(NamedTuple):
    """The client that waits for a line, and the request that contained it."""

    client: str = ""
    request: str = ""


class WaitingLine(Generic[Answer]):
    """A line for which a client waits: it waits in a queue, is active, and is answered or given up.

    The engine translates `line`, unless `compute` is given: then the answer is what `compute()` returns.
    """

    def __init__(
        self,
        sender: Sender,
        line: str = "",
        options: TranslateOptions | None = None,
        compute: Callable[[], Answer] | None = None,
    ) -> None:
        self.sender, self.line, self.options = sender, line, options or TranslateOptions()
        self.compute = compute
        self.answer: Future[Answer] = Future()
        self.stop = threading.Event()  # set when nobody waits any more
        self.leave: Callable[[], None] = lambda: None  # called once, when the line is no longer active

    @property
    def is_short(self) -> bool:
        """Whether each step of its search is quick enough not to delay the lines of others."""
        options = self.options
        few = max(options.n_best, options.beam_size) <= NARROW_SEARCH and not options.constrained
        return len(self.line) <= SHORT_LINE and few

    def start(self) -> bool:
        """Mark the line as active. Returns whether the client still waits; called once, by the queue."""
        return self.answer.set_running_or_notify_cancel() and not self.stop.is_set()

    def work(self, engine: Engine | None = None) -> None:
        """Compute the answer of this line alone, with the engine unless the line has `compute`. An exception
        is passed to the waiting client."""
        try:
            if self.compute:
                answer = self.compute()
            else:
                assert engine
                answer = cast(Answer, engine.translate(self.line, self.options, self.stop))
        except Exception as error:
            self.finish(error)
        else:
            self.finish(answer)

    def finish(self, answer: Answer | Exception) -> None:
        """Give the waiting client the answer or the error."""
        self.leave()
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)

    def give_up(self) -> None:
        """Cancel the answer, and signal `stop` to a thread that works on it."""
        self.stop.set()
        self.answer.cancel()


AnyLine = WaitingLine[Any]  # for the queue, to which the type of answers does not matter


class LineQueue:
    """A bounded queue between requests and the threads of an engine.

    The next line comes from the client with the fewest active lines, and from the request of that client with
    the fewest; on ties they take turns. So a request of many lines does not delay other clients.
    """

    def __init__(self, limit: int, spare: int = 0, short: bool = False) -> None:
        """Create an empty queue for up to `limit` waiting lines.

        `spare`: number of lines that may be active beyond those that the engine has room for, so that long
        lines of others do not delay a client without active lines. `short`: these must be short lines.
        """
        self.limit, self.spare, self.short = limit, spare, short
        self.waiting: dict[str, dict[Sender, deque[AnyLine]]] = {}  # by client and request, in turn
        self.size = 0  # waiting lines
        self.live = 0  # active lines
        self.extra = 0  # active lines that were taken although the engine had no room
        self.clients = Counter[str]()  # active lines by client
        self.requests = Counter[Sender]()  # active lines by client and request
        self.idle = 0  # threads with room that wait for a line
        self.changed = threading.Condition()
        self.closed = False

    def put(self, lines: Sequence[AnyLine]) -> None:
        """Add all lines of a request, which have the same sender, or none. QueueClosed after `close`.

        QueueFull if the client's lines, waiting and new, would outnumber the lines for which there is room
        now, so that one client cannot fill the queue.
        """
        with self.changed:
            if self.closed:
                raise QueueClosed
            if not lines:
                return
            sender = lines[0].sender
            requests = self.waiting.setdefault(sender.client, {})
            if sum(map(len, requests.values())) + len(lines) > self.limit - self.size:
                self.forget_sender(sender)
                raise QueueFull
            requests.setdefault(sender, deque()).extend(lines)
            self.size += len(lines)
            self.changed.notify_all()

    def take(self, seconds: float | None = None, room: bool = True, compute: bool = True) -> AnyLine | None:
        """Take the next line that is still wanted, waiting up to `seconds` for it (None: forever). It becomes
        active.

        Returns None if there is none after that time, or none now in a closed queue. `room`: whether the
        engine has room for any line; if not, only an urgent line is taken (see `is_urgent`). `compute`:
        whether lines with `compute` may be taken.
        """
        end = None if seconds is None else time.monotonic() + seconds
        with self.changed:
            self.idle += room
            try:
                while (line := self.next(room, compute)) is None:
                    left = None if end is None else end - time.monotonic()
                    if self.closed or (left is not None and left <= 0):
                        return None
                    self.changed.wait(left)
            finally:
                self.idle -= room
            self.changed.notify_all()  # a spare thread may have a line to take now
            return line

    # The callers of the methods from here to `track`, and of `forget_sender`, hold the lock `changed`.

    def next(self, room: bool, compute: bool) -> AnyLine | None:
        """Remove and return the next line that may be taken, and mark it as active; None if there is none.
        Cancelled lines are removed on the way. Arguments as in `take`."""
        while self.size:
            senders = [
                sender
                for requests in self.waiting.values()
                for sender, lines in requests.items()
                if (room or self.is_urgent(sender, lines[0])) and (compute or not lines[0].compute)
            ]
            if not senders:
                return None
            client = min(senders, key=lambda sender: self.clients[sender.client]).client
            candidates = [sender for sender in senders if sender.client == client]
            line = self.pop(min(candidates, key=lambda sender: self.requests[sender]))
            if line.start():
                self.track(line, 1, extra=not room)
                line.leave = partial(self.release, line, not room)
                return line
        return None

    def pop(self, sender: Sender) -> AnyLine:
        """Remove and return the next line of a sender; other requests and clients have the next turns."""
        requests = self.waiting.pop(sender.client)
        lines = requests.pop(sender)
        line = lines.popleft()
        self.size -= 1
        if lines:
            requests[sender] = lines
        if requests:
            self.waiting[sender.client] = requests
        return line

    def is_urgent(self, sender: Sender, line: AnyLine) -> bool:
        """Whether the line of a sender may be taken although the engine has no room: if no thread with room
        waits for a line, none of its request's lines is active, spare lines are left, and, for a queue with
        `short`, it is short. Half of the spare lines are reserved for clients without active lines."""
        if self.idle or self.requests[sender] or (self.short and not line.is_short):
            return False
        return self.extra < (self.spare // 2 if self.clients[sender.client] else self.spare)

    def track(self, line: AnyLine, more: int, extra: bool) -> None:
        """Update the counts of active lines for one that has been taken (`more` = 1) or is done (-1).
        `extra`: whether it was taken although the engine had no room."""
        self.live += more
        self.extra += more * extra
        self.clients[line.sender.client] += more
        self.requests[line.sender] += more
        if not self.requests[line.sender]:
            del self.requests[line.sender]
        if not self.clients[line.sender.client]:
            del self.clients[line.sender.client]

    def release(self, line: AnyLine, extra: bool) -> None:
        """Record that an active line is done. `extra`: see `track`."""
        with self.changed:
            self.track(line, -1, extra)
            self.changed.notify_all()

    def give_up(self, lines: Sequence[AnyLine]) -> None:
        """Cancel lines for which nobody waits any more, and remove them from the queue."""
        for line in lines:
            line.give_up()
        with self.changed:
            for sender in {line.sender for line in lines}:
                requests = self.waiting.get(sender.client, {})
                wanted = deque(line for line in requests.get(sender, ()) if not line.stop.is_set())
                self.size += len(wanted) - len(requests.get(sender, ()))
                requests[sender] = wanted
                self.forget_sender(sender)

    def forget_sender(self, sender: Sender) -> None:
        """Remove a sender from the queue if it has no lines left."""
        requests = self.waiting.get(sender.client, {})
        if not requests.get(sender):
            requests.pop(sender, None)
        if not requests:
            self.waiting.pop(sender.client, None)

    def close(self) -> None:
        """Accept no more lines; the waiting ones are still processed."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()


# ---- threads -----------------------------------------------------------------------------------------------


log = logging.getLogger(__name__)

FEW_LINES = 4  # maximum lines of a client in the search for short lines
HEAD_START = 0.3  # seconds of search time, see ContinuousWorker
MAX_READING = 0.02  # seconds of reading lines between two steps of a search
SPARE_LINES = 8  # taken by a full search, so that no client waits until the lines of others are done


class EngineWorkers:
    """An engine, the queue of its lines, and its threads."""

    def __init__(self, engine: Engine, limit: int, gather: float) -> None:
        """Start the threads of an engine, with a queue for up to `limit` waiting lines.

        `gather`: seconds that an idle engine waits for more lines to search together.
        """
        self.engine, self.gather = engine, gather
        # An engine with one worker need not be thread-safe.
        spare = SPARE_LINES if engine.continuous else engine.workers if engine.workers > 1 else 0
        self.queue = LineQueue(limit, spare, short=engine.continuous)
        self.threads = [
            threading.Thread(target=self.run, args=(room,), name=f"engine-{number}", daemon=True)
            for number, room in enumerate(self.rooms())
        ]
        for thread in self.threads:
            thread.start()

    def rooms(self) -> list[bool]:
        """A flag for each thread to start: whether it takes any line, or only urgent ones."""
        spare = 0 if self.engine.continuous else self.queue.spare
        return [True] * self.engine.workers + [False] * spare

    def run(self, room: bool) -> None:
        """Process lines until the queue is closed and has none to take. `room`: a flag of `rooms`."""
        if self.engine.continuous:
            ContinuousWorker(self.engine, self.queue, self.gather).run()
        else:
            while line := self.queue.take(room=room):
                line.work(self.engine)

    def join(self, seconds: float | None = None) -> None:
        """Wait up to `seconds` for the threads to end (None: forever)."""
        end = None if seconds is None else time.monotonic() + seconds
        for thread in self.threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))


class SearchLane:
    """Lines that are searched together, and the seconds spent on them."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.session = engine, engine.session()
        self.lines = set[WaitingLine[TranslatedLine]]()
        self.used = 0.0

    def count_lines(self, sender: Sender) -> int:
        """The number of lines in this search that belong to the client of `sender`."""
        return sum(line.sender.client == sender.client for line in self.lines)

    def add(self, line: WaitingLine[TranslatedLine]) -> None:
        """Add a line to the search; an error becomes its answer."""
        start = time.monotonic()
        try:
            self.session.add(line, line.line, line.options)
        except Exception as error:
            line.finish(error)
        else:
            self.lines.add(line)
        self.used += time.monotonic() - start

    def step(self) -> None:
        """Advance the search by a step, and answer the finished lines; an error is passed to all lines."""
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
        """Cancel the lines that nobody waits for."""
        for line in [line for line in self.lines if line.stop.is_set()]:
            self.session.cancel(line)
            self.lines.remove(line)
            line.finish(InterruptedError())

    def fail(self, error: Exception) -> None:
        """Pass the error of a search to all of its lines, and start a new search."""
        if not isinstance(error, UserError):
            log.error("the search failed, with %d lines in it: %s", len(self.lines), error)
        for line in self.lines:
            line.finish(error)
        self.lines.clear()
        self.session = self.engine.session()


class ContinuousWorker:
    """Translates many lines together in one thread; new lines join the search while it goes on.

    A few short lines of each client are searched separately, in a lane of their own, unless the client has
    lines in the other one. The thread's time, in seconds of wall clock, is shared on two levels:

    - Between lanes: `SearchLane.used` counts the seconds spent on a lane; the lane that has used less makes
      the next step, so both get half of the time. A lane that gets its first line while the other is busy
      starts with the count of the other, so that it does not catch up on time in which it had no lines. The
      short lane starts HEAD_START lower and may use these seconds first: a slow step of the other lane delays
      it only once.
    - Between searches and lines with `compute`: after such a line, the searches get as many seconds as it
      took (`owed`) before the next one is taken.
    """

    def __init__(self, engine: Engine, queue: LineQueue, gather: float) -> None:
        self.queue, self.gather = queue, gather
        self.short, self.rest = SearchLane(engine), SearchLane(engine)
        self.owed = 0.0  # seconds

    @property
    def lanes(self) -> list[SearchLane]:
        """The searches that have lines."""
        return [lane for lane in (self.short, self.rest) if lane.lines]

    def run(self) -> None:
        while self.fill():
            self.step()

    def step(self) -> None:
        """Advance the search on which less time has been spent, and drop cancelled lines."""
        lanes = self.lanes
        if len(lanes) == 1:  # time that a lane spends alone does not count
            self.short.used = self.rest.used = -math.inf
            lanes[0].used = 0.0
        if lanes:
            lane = min(lanes, key=lambda lane: lane.used)
            used = lane.used
            lane.step()
            self.owed -= lane.used - used
        for lane in lanes:
            lane.drop()

    def fill(self) -> bool:
        """Add waiting lines: any line while there is room, then only urgent ones, until none is left or
        MAX_READING seconds are over. If no line is being searched, first waits for one, and then up to
        `gather` seconds for more. Returns False if no line is being searched and the queue is closed
        and empty."""
        while not self.lanes:
            line = self.queue.take()
            if line is None:
                return False
            self.add(line)
            for line in self.take_lines(time.monotonic() + self.gather):
                self.add(line)
        end = time.monotonic() + MAX_READING
        for line in self.take_lines(0):
            self.add(line)
            if time.monotonic() > end:
                break
        return True

    def take_lines(self, end: float) -> Iterator[AnyLine]:
        """Yield lines from the queue: while there is room any line, waiting until `end`, a time of the
        monotonic clock; without room only the urgent lines that are there."""
        while True:
            # Adding a long line to a search takes time too, which is part of the time spent on that search.
            turn = not self.short.lines or self.rest.used <= self.short.used
            room, compute = turn and self.rest.session.has_room(), not self.lanes or self.owed <= 0
            line = self.queue.take(max(0.0, end - time.monotonic()) if room else 0, room, compute)
            if line is None:
                return
            yield line

    def add(self, line: AnyLine) -> None:
        """Answer a line with `compute` at once; add any other line to one of the two searches."""
        if line.compute:
            start = time.monotonic()
            line.work()
            self.owed = time.monotonic() - start
            return
        few = not self.rest.count_lines(line.sender) and self.short.count_lines(line.sender) < FEW_LINES
        lane = self.short if few and line.is_short and self.short.session.has_room() else self.rest
        if not lane.lines:
            head_start = HEAD_START if lane is self.short else 0.0
            others = [busy.used - head_start for busy in self.lanes]
            lane.used = max(lane.used, *others) if others else 0.0
        lane.add(line)
