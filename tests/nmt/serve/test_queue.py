"""The queue of an engine, and its threads."""

import itertools
import threading
import time
from collections.abc import Callable, Hashable

import pytest

from nmt.errors import DataError, UserError
from nmt.serve.engine import TranslatedLine, TranslateOptions, empty_translation
from nmt.serve.queue import (
    FEW_LINES,
    SPARE_LINES,
    ContinuousWorker,
    EngineWorkers,
    LineQueue,
    QueueClosed,
    QueueFull,
    Scores,
    Sender,
    WaitingLine,
)
from tests.nmt.serve.engines import Batch, BatchSession, Threads, Upper

# ---- test waiting ------------------------------------------------------------------------------------------
# The queue between requests and engines.


Line = WaitingLine[TranslatedLine]


def waiting_lines(count: int, client: str = "me", request: str = "1") -> list[Line]:
    return [Line(Sender(client, request), f"{client} {request} {number}") for number in range(count)]


def taken(queue: LineQueue, count: int, room: bool = True) -> list[str]:
    """The next lines, all of them in hand together."""
    return [line.line for _ in range(count) if (line := queue.take(0, room))]


def test_clients_take_turns_and_so_do_the_requests_of_a_client() -> None:
    queue = LineQueue(1000)
    queue.put(waiting_lines(100, "a"))
    queue.put(waiting_lines(2, "b", "1"))
    queue.put(waiting_lines(2, "b", "2"))
    order = [line.split()[:2] for line in taken(queue, 8)]
    assert [client for client, _ in order] == ["a", "b", "a", "b", "a", "b", "a", "b"]
    assert [request for client, request in order if client == "b"] == ["1", "2", "1", "2"]


def test_turns_go_on_when_each_line_is_done_before_the_next() -> None:
    queue, order = LineQueue(1000), list[str]()
    for client in ("a", "b", "c"):
        queue.put(waiting_lines(3, client))
    while line := queue.take(0):
        order.append(line.sender.client)
        line.finish(empty_translation())
    assert order == ["a", "b", "c"] * 3 and queue.live == 0 and not queue.waiting and not queue.clients


def test_who_has_the_fewest_lines_in_hand_is_next() -> None:
    queue = LineQueue(1000)
    queue.put(waiting_lines(10, "a"))
    taken(queue, 4)
    queue.put(waiting_lines(10, "b"))
    assert [line[0] for line in taken(queue, 6)] == ["b"] * 4 + ["a", "b"]


def test_without_room_only_those_who_have_nothing_in_hand_get_a_line() -> None:
    queue = LineQueue(1000, spare=4)
    queue.put(waiting_lines(10, "a", "1"))
    assert len(taken(queue, 3)) == 3 and not taken(queue, 1, room=False)
    queue.put(waiting_lines(10, "b", "1"))
    queue.put(waiting_lines(10, "a", "2"))
    assert taken(queue, 4, room=False) == ["b 1 0", "a 2 0"]
    for request in "34":
        queue.put(waiting_lines(1, "a", request))
    assert not taken(queue, 1, room=False)  # the rest of the spare lines is for other clients
    for client in "cdef":
        queue.put(waiting_lines(2, client))
    assert taken(queue, 4, room=False) == ["c 1 0", "d 1 0"]


@pytest.mark.parametrize(
    ("line", "options", "is_short"),
    [
        ("a" * 300, TranslateOptions(), True),
        ("a" * 301, TranslateOptions(), False),
        ("a", TranslateOptions(n_best=10, beam_size=10, attention=True), True),
        ("a", TranslateOptions(n_best=11), False),
        ("a", TranslateOptions(beam_size=11), False),
        ("a", TranslateOptions(terms=(("a", "b"),)), False),
        ("a", TranslateOptions(avoid=("a",)), False),
    ],
)
def test_only_short_lines_are_taken_without_room(
    line: str, options: TranslateOptions, is_short: bool
) -> None:
    """Where lines are searched together, and the steps of long ones would hold up the others."""
    for short, expected in ((True, is_short), (False, True)):
        queue = LineQueue(10, spare=5, short=short)
        queue.put([Line(Sender("me", "1"), line, options)])
        assert (queue.take(0, room=False) is not None) == expected
        queue.close()


def test_a_spare_line_is_given_back() -> None:
    queue = LineQueue(10, spare=1)
    for client in "ab":
        queue.put(waiting_lines(1, client))
    first = queue.take(0, room=False)
    assert first and queue.take(0, room=False) is None
    first.finish(DataFailed())
    assert taken(queue, 1, room=False) == ["b 1 0"]


class DataFailed(Exception):
    """What a line may end with."""


def test_a_spare_thread_leaves_the_line_to_one_that_is_idle() -> None:
    queue, order = LineQueue(10, spare=5), list[bool]()

    def work(room: bool) -> None:
        while line := queue.take(room=room):
            order.append(room)
            line.finish(empty_translation())

    threads = [threading.Thread(target=work, args=(room,)) for room in (False, True)]
    for thread in threads:
        thread.start()
    while not queue.idle:
        time.sleep(0.001)
    waiting = waiting_lines(1)
    queue.put(waiting)
    waiting[0].answer.result(30)
    queue.close()
    for thread in threads:
        thread.join(30)
    assert order == [True]


def test_all_or_none_fit() -> None:
    queue = LineQueue(5)
    queue.put(waiting_lines(2))
    with pytest.raises(QueueFull):
        queue.put(waiting_lines(4, "other"))
    assert queue.size == 2 and list(queue.waiting) == ["me"]
    queue.put(waiting_lines(3, "other"))


def test_no_client_fills_more_of_the_queue_than_it_leaves() -> None:
    queue = LineQueue(1000)
    queue.put(waiting_lines(500, request="1"))
    with pytest.raises(QueueFull):
        queue.put(waiting_lines(1, request="2"))
    queue.put(waiting_lines(250, "other"))
    queue.put([])
    assert queue.size == 750


def test_what_nobody_waits_for_is_skipped_and_leaves_the_queue() -> None:
    queue, mine = LineQueue(6), waiting_lines(3)
    queue.put(mine)
    mine[0].give_up()
    assert queue.take(0) is mine[1] and mine[0].answer.cancelled()
    queue.give_up(mine)
    assert queue.size == 0 and not queue.waiting and mine[2].answer.cancelled() and mine[1].stop.is_set()
    queue.give_up(mine)
    assert queue.size == 0


def test_what_is_in_hand_cannot_be_cancelled_but_hears_of_it() -> None:
    (line,) = waiting_lines(1)
    assert line.start()
    line.give_up()
    assert line.stop.is_set() and not line.answer.cancelled()


def test_close_ends_the_waiting_once_all_is_taken() -> None:
    queue, results = LineQueue(5), list[object]()
    threads = [threading.Thread(target=lambda: results.append(queue.take())) for _ in range(3)]
    for thread in threads:
        thread.start()
    queue.put(waiting_lines(1))
    queue.close()
    for thread in threads:
        thread.join(10)
    assert len(results) == 3 and results.count(None) == 2
    with pytest.raises(QueueClosed):
        queue.put(waiting_lines(1))


def test_time_is_up() -> None:
    start = time.monotonic()
    assert LineQueue(1).take(0.02) is None
    assert time.monotonic() - start >= 0.02


def test_a_line_is_translated_or_what_else_is_wanted_is_computed() -> None:
    (line,) = waiting_lines(1)
    scores = WaitingLine[Scores](Sender(), compute=lambda: [[("a", 1.0)]])
    failed = WaitingLine[Scores](Sender(), compute=lambda: [[("a", 1 / 0)]])
    for waiting in (line, scores, failed):
        waiting.work(Upper())
    assert line.answer.result().hypotheses[0].text == "ME 1 0" and scores.answer.result() == [[("a", 1.0)]]
    with pytest.raises(ZeroDivisionError):
        failed.answer.result()


# ---- test workers ------------------------------------------------------------------------------------------
# The threads of engines.


WAIT_SECONDS = 30
NUMBERS = itertools.count()


def submit(queue: LineQueue, *lines: str, client: str = "me") -> list[Line]:
    """The lines of a request."""
    sender = Sender(client, f"request {next(NUMBERS)}")
    waiting = [Line(sender, line) for line in lines]
    queue.put(waiting)
    return waiting


def at_work(engine: Upper, gather: float = 0.0) -> EngineWorkers:
    return EngineWorkers(engine, 100, gather)


@pytest.mark.parametrize("engine", [Upper, Batch])
def test_each_line_gets_its_own_answer(engine: type[Upper]) -> None:
    """Those in the queue too, when it is closed."""
    workers = at_work(engine())
    lines = ["a b", "", "c", "fail", "d e f", "g"] * 5
    jobs = submit(workers.queue, *lines)
    workers.queue.close()
    for line, job in zip(lines, jobs, strict=True):
        if line == "fail":
            with pytest.raises(DataError):
                job.answer.result(WAIT_SECONDS)
        else:
            assert job.answer.result(WAIT_SECONDS).hypotheses[0].text == line.upper()
    workers.join()
    assert workers.queue.live == 0


def test_lines_that_come_later_join_those_in_search() -> None:
    engine = Batch()
    workers = at_work(engine)
    (first,) = submit(workers.queue, "wait")
    others = submit(workers.queue, "a", "b")
    assert [job.answer.result(WAIT_SECONDS).words for job in others] == [["a"], ["b"]]
    assert not first.answer.done() and engine.most >= 2
    engine.go.set()
    assert first.answer.result(WAIT_SECONDS).words == ["wait"]
    workers.queue.close()


def test_a_line_that_the_search_cannot_translate_fails_alone() -> None:
    workers = at_work(Batch())
    late, other = submit(workers.queue, "late", "b c d")
    with pytest.raises(DataError, match="found late"):
        late.answer.result(WAIT_SECONDS)
    assert other.answer.result(WAIT_SECONDS).words == ["b", "c", "d"]
    workers.queue.close()
    workers.join()
    assert workers.queue.live == 0


def test_an_idle_engine_gathers_lines() -> None:
    engine = Batch()
    workers = at_work(engine, gather=0.5)
    jobs = submit(workers.queue, "a") + submit(workers.queue, "b") + submit(workers.queue, "c")
    for job in jobs:
        job.answer.result(WAIT_SECONDS)
    assert engine.most == 3
    workers.queue.close()


def test_a_line_that_nobody_waits_for_leaves_the_search() -> None:
    engine = Batch()
    workers = at_work(engine)
    wait, other = submit(workers.queue, "wait", "b c d")
    other.answer.result(WAIT_SECONDS)
    workers.queue.give_up([wait])
    with pytest.raises(InterruptedError):
        wait.answer.result(WAIT_SECONDS)
    assert engine.cancelled == ["wait"] and workers.queue.live == 0
    workers.queue.close()


@pytest.mark.parametrize("engine", [Upper, Batch])
def test_after_a_crash_the_engine_goes_on(engine: type[Upper]) -> None:
    workers = at_work(engine())
    (job,) = submit(workers.queue, "crash")
    with pytest.raises(RuntimeError):
        job.answer.result(WAIT_SECONDS)
    assert submit(workers.queue, "a")[0].answer.result(WAIT_SECONDS).words == ["a"]
    workers.queue.close()


@pytest.mark.parametrize("engine", [Upper, Batch])
def test_calls_take_their_turn(engine: type[Upper]) -> None:
    workers = at_work(engine())
    call = WaitingLine[Scores](Sender(), compute=lambda: [[("a", 1.0)]])
    workers.queue.put([call])
    assert call.answer.result(WAIT_SECONDS) == [[("a", 1.0)]]
    workers.queue.close()


@pytest.mark.parametrize("engine", [Batch(room=2), Threads()], ids=["together", "in threads"])
def test_no_client_waits_for_the_long_lines_of_another(engine: Upper) -> None:
    """Every place is taken by lines that take for ever, and more of them wait."""
    workers = at_work(engine)
    long = submit(workers.queue, *["wait"] * 20, client="other")
    while workers.queue.live < 2:
        pass
    short = [*submit(workers.queue, "a", "b", "c"), *submit(workers.queue, "d", client="other")]
    assert [line.answer.result(WAIT_SECONDS).words for line in short] == [["a"], ["b"], ["c"], ["d"]]
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
    blocked = WaitingLine[Scores](Sender("me"), compute=lambda: [[("a", float(go.wait(WAIT_SECONDS)))]])
    workers.queue.put([blocked])

    def compute() -> Scores:
        order.append("score")
        return []

    scores = [WaitingLine[Scores](Sender("other"), compute=compute) for _ in range(20)]
    (line,) = submit(workers.queue, "a b")
    line.answer.add_done_callback(lambda _: order.append("line"))
    workers.queue.put(scores)
    go.set()
    scores[-1].answer.result(WAIT_SECONDS)
    assert "line" in order[:5] and order.count("score") == 20
    workers.queue.close()


class Slow(Batch):
    """Each step of a search takes a second for each line of more than two words, and 10 ms otherwise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(room=20)
        self.clock = 0.0
        monkeypatch.setattr("nmt.serve.queue.time.monotonic", lambda: self.clock)
        monkeypatch.setattr("nmt.serve.queue.SHORT_LINE", 10)
        monkeypatch.setattr(self.go, "wait", lambda seconds: False)

    def session(self) -> "SlowSession":
        return SlowSession(self)


class SlowSession(BatchSession):
    def step(self) -> list[tuple[Hashable, TranslatedLine | UserError]]:
        assert isinstance(self.engine, Slow)
        self.engine.clock += sum(len(line.split()) > 2 for line, _, _ in self.lines.values()) or 0.01
        return super().step()


def together(engine: Slow) -> tuple[ContinuousWorker, Callable[..., list[Line]]]:
    """A search without a thread of its own, and a way to hand it the lines of a client."""
    queue = LineQueue(100, SPARE_LINES, short=True)
    return (
        ContinuousWorker(engine, queue, 0.0),
        lambda client, *lines: submit(queue, *lines, client=client),
    )


def finish(work: ContinuousWorker, *lines: Line) -> None:
    """Search until these lines are done."""
    for _ in range(10_000):
        if all(line.answer.done() for line in lines):
            return
        work.fill()
        work.step()
    raise AssertionError("they do not end")


def test_a_short_line_waits_for_one_step_of_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Slow(monkeypatch)
    work, put = together(engine)
    long = put("other", *["a b c d e f g h i j k l m"] * 4)
    work.fill()
    work.step()
    before = engine.clock
    (short,) = put("me", "a b")
    finish(work, short)
    assert engine.clock - before == pytest.approx(0.02) and not any(line.answer.done() for line in long)
    finish(work, *long)


def test_time_that_one_search_had_alone_is_not_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Slow(monkeypatch)
    work, put = together(engine)
    lines = list[Line]()
    for _ in range(500):  # the next begins before the last one ends
        lines += put("me", "a b")
        work.fill()
        work.step()
    finish(work, *lines)
    put("other", *["a b c d e f g h i j k l m"] * 4)
    work.fill()
    work.step()
    before = engine.clock
    (short,) = put("me", "a b")
    finish(work, short)
    assert engine.clock - before == pytest.approx(0.02)


def test_searches_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short lines that never end do not stop the long ones, and only a few of each client go beside them."""
    engine = Slow(monkeypatch)
    work, put = together(engine)
    (long,) = put("other", "a b c d e f g h i j k l m")
    work.fill()
    work.step()
    for client in "abc":
        put(client, *["wait"] * 9)
    finish(work, long)
    assert len(work.short.lines) == 3 * FEW_LINES and work.short.used == pytest.approx(
        work.rest.used, abs=3.0
    )


def test_a_search_that_breaks_leaves_the_other_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    work, put = together(Slow(monkeypatch))
    (long,) = put("other", "a b c d e f g h i j k l m")
    (crash,) = put("me", "crash")
    finish(work, long)
    assert isinstance(crash.answer.exception(), RuntimeError)
    assert long.answer.result().words == "a b c d e f g h i j k l m".split()
