"""Lines that clients wait for, and the queue of an engine, in which clients take turns."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Generic, NamedTuple, TypeVar, cast

from nmt.serve.engine import Engine, Options, Translated

Answer = TypeVar("Answer")
Scores = list[list[float]]  # natural log p of each unit of each pair


class QueueFull(Exception):
    """More lines than may wait."""


class Closed(Exception):
    """The engine takes no more lines."""


SHORT = 300  # characters
NARROW = 10  # hypotheses


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
        few = max(options.n_best, options.beam_size) <= NARROW and not (options.terms or options.avoid)
        return len(self.line) <= SHORT and few

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
                raise Closed
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
