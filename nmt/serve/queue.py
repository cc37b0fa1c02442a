"""Lines that clients wait for: the queue of an engine, in which clients take turns, and its threads."""

import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Generic, NamedTuple, TypeVar, cast

from nmt.errors import UserError
from nmt.serve.engine import Continuous, Engine, Options, Translated

# ---- lines and their queue ---------------------------------------------------------------------------------
# Lines that clients wait for, and the queue of an engine, in which clients take turns.


Answer = TypeVar("Answer")
Scores = list[list[float]]  # natural log p of each unit of each pair


class QueueFull(Exception):
    """More lines than may wait."""


class QueueClosed(Exception):
    """The engine takes no more lines."""


SHORT_LINE = 300  # characters
NARROW_SEARCH = 10  # hypotheses


class Sender(NamedTuple):
    """Who waits for a line: a client, and one of its requests."""

    client: str = ""
    request: str = ""


class WaitingLine(Generic[Answer]):
    """A line from the request that brought it to its answer: it waits in the queue of an engine, is in hand,
    and is answered or given up. The engine translates it, unless `compute` says what else is wanted."""

    def __init__(
        self,
        sender: Sender,
        line: str = "",
        options: Options | None = None,
        compute: Callable[[], Answer] | None = None,
    ) -> None:
        self.sender, self.line, self.options = sender, line, options or Options()
        self.compute = compute
        self.answer: Future[Answer] = Future()
        self.stop = threading.Event()  # nobody waits any more
        self.leave: Callable[[], None] = lambda: None  # told once, when a line that was in hand is done

    @property
    def is_short(self) -> bool:
        """Does each step of its search take a moment only, so that others may have it beside theirs?"""
        options = self.options
        few = max(options.n_best, options.beam_size) <= NARROW_SEARCH and not (options.terms or options.avoid)
        return len(self.line) <= SHORT_LINE and few

    def start(self) -> bool:
        """Whether it is still wanted. Called once, by the queue that hands it out."""
        return self.answer.set_running_or_notify_cancel() and not self.stop.is_set()

    def work(self, engine: Engine | None = None) -> None:
        """Compute the answer of this line alone. Without `compute` it needs the engine."""
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
        """Hand out the answer, or the reason why there is none."""
        self.leave()
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)

    def give_up(self) -> None:
        """Nobody waits any more; who has it in hand hears of it."""
        self.stop.set()
        self.answer.cancel()


Work = WaitingLine[Translated] | WaitingLine[Scores]


class LineQueue:
    """A bounded queue between requests and the threads of an engine.

    The next line is one of the client that has the fewest lines in hand, and of that client's requests, of
    the one that has the fewest; among equals they take turns. So a request of many lines holds up nobody
    else.
    """

    def __init__(self, limit: int, spare: int = 0, short: bool = False) -> None:
        """`limit`: lines that may wait. `spare`: lines that may be taken although the engine has no room, so
        that long lines of others hold up nobody who has nothing in hand. `short`: only short ones may."""
        self.limit, self.spare, self.short = limit, spare, short
        self.waiting: dict[
            str, dict[Sender, deque[Work]]
        ] = {}  # by client and request, whose turn it is first
        self.size = 0  # lines that wait
        self.live = 0  # lines in hand
        self.extra = 0  # lines in hand that were taken without room
        self.clients = Counter[str]()  # lines in hand
        self.requests = Counter[Sender]()  # lines in hand
        self.idle = 0  # threads that have room, and wait for a line
        self.changed = threading.Condition()
        self.closed = False

    def put(self, lines: Sequence[Work]) -> None:
        """All lines of a request, or none: QueueFull where they are too many for now, Closed after `close`.

        No client may fill more of the queue than is left to others."""
        with self.changed:
            if self.closed:
                raise QueueClosed
            if not lines:
                return
            sender = lines[0].sender
            requests = self.waiting.setdefault(sender.client, {})
            if sum(map(len, requests.values())) + len(lines) > self.limit - self.size:
                self.tidy(sender)
                raise QueueFull
            requests.setdefault(sender, deque()).extend(lines)
            self.size += len(lines)
            self.changed.notify_all()

    def take(self, seconds: float | None = None, room: bool = True, compute: bool = True) -> Work | None:
        """The next line that is still wanted; waits so long for it, None: for ever. None when time is up, or
        when all is taken after `close`. `room`: whether the engine has room for any line; else only a spare
        one is handed out. `compute`: whether it may be one that is not to be translated."""
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
            self.changed.notify_all()  # it may be a spare thread's turn now
            return line

    def next(self, room: bool, compute: bool) -> Work | None:
        """The work that `take` hands out next; None when nothing waits."""
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
            mine = [sender for sender in senders if sender.client == client]
            line = self.pop(min(mine, key=lambda sender: self.requests[sender]))
            if line.start():
                self.count(line, 1, extra=not room)
                line.leave = partial(self.left, line, not room)
                return line
        return None

    def pop(self, sender: Sender) -> Work:
        """The next line of a sender. Other requests of this client come before the rest of it, and other
        clients before those."""
        requests = self.waiting.pop(sender.client)
        lines = requests.pop(sender)
        line = lines.popleft()
        self.size -= 1
        if lines:
            requests[sender] = lines
        if requests:
            self.waiting[sender.client] = requests
        return line

    def is_urgent(self, sender: Sender, line: Work) -> bool:
        """May its line be taken without room? Half of the spare lines are for clients with nothing in
        hand."""
        if self.idle or self.requests[sender] or (self.short and not line.is_short):
            return False
        return self.extra < (self.spare // 2 if self.clients[sender.client] else self.spare)

    def count(self, line: Work, more: int, extra: bool) -> None:
        """Count a line that is taken, or done."""
        self.live += more
        self.extra += more * extra
        self.clients[line.sender.client] += more
        self.requests[line.sender] += more
        if not self.requests[line.sender]:
            del self.requests[line.sender]
        if not self.clients[line.sender.client]:
            del self.clients[line.sender.client]

    def left(self, line: Work, extra: bool) -> None:
        """A line in hand is done."""
        with self.changed:
            self.count(line, -1, extra)
            self.changed.notify_all()

    def give_up(self, lines: Sequence[Work]) -> None:
        """Nobody waits for these lines of a request any more: they leave the queue."""
        for line in lines:
            line.give_up()
        with self.changed:
            for sender in {line.sender for line in lines}:
                requests = self.waiting.get(sender.client, {})
                wanted = deque(line for line in requests.get(sender, ()) if not line.stop.is_set())
                self.size += len(wanted) - len(requests.get(sender, ()))
                requests[sender] = wanted
                self.tidy(sender)

    def tidy(self, sender: Sender) -> None:
        """Forget a sender without lines in the queue."""
        requests = self.waiting.get(sender.client, {})
        if not requests.get(sender):
            requests.pop(sender, None)
        if not requests:
            self.waiting.pop(sender.client, None)

    def close(self) -> None:
        """Take no more; what waits is still done."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()


# ---- threads -----------------------------------------------------------------------------------------------
# The threads of an engine: they take lines from its queue until that is closed and empty.


log = logging.getLogger(__name__)

FEW_LINES = 4  # lines of a client that are searched apart from long ones
MOST_CREDIT = 0.3  # seconds
MOST_READ = 0.02  # seconds that lines are read between two steps of a search
SPARE_LINES = (
    8  # lines that a search takes beyond its room, so that no client waits for the lines of others to end
)


class Workers:
    """An engine at work, and the queue of its lines."""

    def __init__(self, engine: Engine, limit: int, gather: float) -> None:
        """`limit`: lines that may wait; `gather`: seconds that an idle engine waits for more lines to search
        together."""
        self.engine, self.gather = engine, gather
        # An engine that is called by one thread may not bear two.
        spare = SPARE_LINES if isinstance(engine, Continuous) else engine.workers if engine.workers > 1 else 0
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
        few = not self.rest.has(line.sender) and self.short.has(line.sender) < FEW_LINES
        lane = self.short if few and line.is_short and self.short.session.wants() else self.rest
        if not lane.lines:
            credit = MOST_CREDIT if lane is self.short else 0.0
            others = [other.used - credit for other in self.lanes]
            lane.used = max(lane.used, *others) if others else 0.0
        lane.add(line)  # type: ignore[arg-type]
