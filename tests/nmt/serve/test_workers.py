"""The threads of engines."""

import itertools
import threading
from collections.abc import Callable, Hashable

import pytest

from nmt.errors import DataError, UserError
from nmt.serve.engine import Translated
from nmt.serve.waiting import LineQueue, Scores, Sender, WaitingLine
from nmt.serve.workers import FEW, SPARE, Together, Workers
from tests.nmt.serve.engines import Batch, BatchSession, Threads, Upper

WAIT = 30
NUMBERS = itertools.count()


def submit(workers: Workers, *lines: str, client: str = "me") -> list[WaitingLine[Translated]]:
    """The lines of a request."""
    sender = Sender(client, f"request {next(NUMBERS)}")
    waiting = [WaitingLine[Translated](sender, line) for line in lines]
    workers.queue.put(waiting)
    return waiting


def at_work(engine: Upper, gather: float = 0.0) -> Workers:
    return Workers(engine, 100, gather)


@pytest.mark.parametrize("engine", [Upper, Batch])
def test_each_line_gets_its_own_answer(engine: type[Upper]) -> None:
    workers = at_work(engine())
    lines = ["a b", "", "c", "fail", "d e f", "g"] * 5
    jobs = submit(workers, *lines)
    for line, job in zip(lines, jobs, strict=True):
        if line == "fail":
            with pytest.raises(DataError):
                job.answer.result(WAIT)
        else:
            assert job.answer.result(WAIT).hypotheses[0].text == line.upper()
    workers.queue.close()
    workers.join()
    assert workers.queue.live == 0


def test_lines_that_come_later_join_those_in_search() -> None:
    engine = Batch()
    workers = at_work(engine)
    (first,) = submit(workers, "wait")
    others = submit(workers, "a", "b")
    assert [job.answer.result(WAIT).words for job in others] == [["a"], ["b"]]
    assert not first.answer.done() and engine.most >= 2
    engine.go.set()
    assert first.answer.result(WAIT).words == ["wait"]
    workers.queue.close()


def test_a_line_that_the_search_cannot_translate_fails_alone() -> None:
    workers = at_work(Batch())
    late, other = submit(workers, "late", "b c d")
    with pytest.raises(DataError, match="found late"):
        late.answer.result(WAIT)
    assert other.answer.result(WAIT).words == ["b", "c", "d"]
    workers.queue.close()
    workers.join()
    assert workers.queue.live == 0


def test_an_idle_engine_gathers_lines() -> None:
    engine = Batch()
    workers = at_work(engine, gather=0.5)
    jobs = submit(workers, "a") + submit(workers, "b") + submit(workers, "c")
    for job in jobs:
        job.answer.result(WAIT)
    assert engine.most == 3
    workers.queue.close()


def test_a_line_that_nobody_waits_for_leaves_the_search() -> None:
    engine = Batch()
    workers = at_work(engine)
    wait, other = submit(workers, "wait", "b c d")
    other.answer.result(WAIT)
    workers.queue.give_up([wait])
    with pytest.raises(InterruptedError):
        wait.answer.result(WAIT)
    assert engine.cancelled == ["wait"] and workers.queue.live == 0
    workers.queue.close()


@pytest.mark.parametrize("engine", [Upper, Batch])
def test_after_a_crash_the_engine_goes_on(engine: type[Upper]) -> None:
    workers = at_work(engine())
    (job,) = submit(workers, "crash")
    with pytest.raises(RuntimeError):
        job.answer.result(WAIT)
    assert submit(workers, "a")[0].answer.result(WAIT).words == ["a"]
    workers.queue.close()


@pytest.mark.parametrize("engine", [Upper, Batch])
def test_calls_take_their_turn(engine: type[Upper]) -> None:
    workers = at_work(engine())
    call = WaitingLine[Scores](Sender(), compute=lambda: [[1.0]])
    workers.queue.put([call])
    assert call.answer.result(WAIT) == [[1.0]]
    workers.queue.close()


@pytest.mark.parametrize("engine", [Upper, Batch])
def test_what_is_in_the_queue_is_done_after_close(engine: type[Upper]) -> None:
    workers = at_work(engine())
    jobs = submit(workers, *"a b c d e f g".split())
    workers.queue.close()
    workers.join()
    assert [job.answer.result(0).words for job in jobs] == [[line] for line in "abcdefg"]


@pytest.mark.parametrize("engine", [Batch(room=2), Threads()], ids=["together", "in threads"])
def test_no_client_waits_for_the_long_lines_of_another(engine: Upper) -> None:
    """Every place is taken by lines that take for ever, and more of them wait."""
    workers = at_work(engine)
    long = submit(workers, *["wait"] * 20, client="other")
    while workers.queue.live < 2:
        pass
    assert [line.answer.result(WAIT).words for line in submit(workers, "a", "b", "c")] == [
        ["a"],
        ["b"],
        ["c"],
    ]
    assert [line.answer.result(WAIT).words for line in submit(workers, "d", client="other")] == [["d"]]
    assert not any(line.answer.done() for line in long)
    workers.queue.give_up(long)
    workers.queue.close()
    workers.join()


def test_an_engine_of_one_thread_is_called_by_one_thread() -> None:
    assert len(at_work(Upper()).threads) == 1 and len(at_work(Threads()).threads) == 4


def test_scores_take_turns_with_the_steps_of_a_search() -> None:
    """A request of many scores does not stop the lines that are in search."""
    workers = at_work(Batch())
    go, order = threading.Event(), list[str]()
    blocked = WaitingLine[Scores](Sender("me"), compute=lambda: [[float(go.wait(WAIT))]])
    workers.queue.put([blocked])

    def compute() -> Scores:
        order.append("score")
        return []

    scores = [WaitingLine[Scores](Sender("other"), compute=compute) for _ in range(20)]
    (line,) = submit(workers, "a b")
    line.answer.add_done_callback(lambda _: order.append("line"))
    workers.queue.put(scores)
    go.set()
    scores[-1].answer.result(WAIT)
    assert "line" in order[:5] and order.count("score") == 20
    workers.queue.close()


class Slow(Batch):
    """Each step of a search takes a second for each line of more than two words, and 10 ms otherwise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(room=20)
        self.clock = 0.0
        monkeypatch.setattr("nmt.serve.workers.time.monotonic", lambda: self.clock)
        monkeypatch.setattr("nmt.serve.waiting.SHORT", 10)
        monkeypatch.setattr(self.go, "wait", lambda seconds: False)

    def session(self) -> "SlowSession":
        return SlowSession(self)


class SlowSession(BatchSession):
    def step(self) -> list[tuple[Hashable, Translated | UserError]]:
        assert isinstance(self.engine, Slow)
        self.engine.clock += sum(len(line.split()) > 2 for line, _, _ in self.lines.values()) or 0.01
        return super().step()


def together(engine: Slow) -> tuple[Together, Callable[..., list[WaitingLine[Translated]]]]:
    """A search without a thread of its own, and a way to hand it the lines of a client."""
    queue = LineQueue(100, SPARE, short=True)

    def put(client: str, *lines: str) -> list[WaitingLine[Translated]]:
        sender = Sender(client, f"request {next(NUMBERS)}")
        waiting = [WaitingLine[Translated](sender, line) for line in lines]
        queue.put(waiting)
        return waiting

    return Together(engine, queue, 0.0), put


def test_a_short_line_waits_for_one_step_of_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Slow(monkeypatch)
    work, put = together(engine)
    long = put("other", *["a b c d e f g h i j k l m"] * 4)
    work.fill()
    work.step()
    before = engine.clock
    (short,) = put("me", "a b")
    while not short.answer.done():
        work.fill()
        work.step()
    assert engine.clock - before == pytest.approx(0.02) and not any(line.answer.done() for line in long)
    while any(not line.answer.done() for line in long):
        work.fill()
        work.step()


def test_time_that_one_search_had_alone_is_not_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Slow(monkeypatch)
    work, put = together(engine)
    for _ in range(500):
        (short,) = put("me", "a b")
        while not short.answer.done():
            work.fill()
            work.step()
    put("other", *["a b c d e f g h i j k l m"] * 4)
    work.fill()
    work.step()
    before = engine.clock
    (short,) = put("me", "a b")
    while not short.answer.done():
        work.fill()
        work.step()
    assert engine.clock - before == pytest.approx(0.02)


def test_searches_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short lines that never end do not stop the long ones, and only a few of each client go beside them."""
    engine = Slow(monkeypatch)
    work, put = together(engine)
    (long,) = put("other", "a b c d e f g h i j k l m")
    for client in "abc":
        put(client, *["wait"] * 9)
    steps = 0
    while not long.answer.done():
        work.fill()
        work.step()
        steps += 1
    assert len(work.short.lines) == 3 * FEW and work.short.used == pytest.approx(work.rest.used, abs=3.0)


def test_a_search_that_breaks_leaves_the_other_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    work, put = together(Slow(monkeypatch))
    (long,) = put("other", "a b c d e f g h i j k l m")
    (crash,) = put("me", "crash")
    while not long.answer.done():
        work.fill()
        work.step()
    assert isinstance(crash.answer.exception(), RuntimeError)
    assert long.answer.result().words == "a b c d e f g h i j k l m".split()
