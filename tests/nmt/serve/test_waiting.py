"""The queue between requests and engines."""

import threading
import time

import pytest

from nmt.serve.engine import Options, Translated, nothing
from nmt.serve.waiting import Closed, LineQueue, QueueFull, Scores, Sender, WaitingLine
from tests.nmt.serve.engines import Upper

Line = WaitingLine[Translated]


def lines(count: int, client: str = "me", request: str = "1") -> list[Line]:
    return [Line(Sender(client, request), f"{client} {request} {number}") for number in range(count)]


def taken(queue: LineQueue, count: int, room: bool = True) -> list[str]:
    """The next lines, all of them in hand together."""
    return [line.line for _ in range(count) if (line := queue.take(0, room))]


def test_the_lines_of_a_request_stay_in_order() -> None:
    queue = LineQueue(5)
    queue.put(lines(3))
    assert queue.size == 3
    assert taken(queue, 4) == ["me 1 0", "me 1 1", "me 1 2"] and queue.size == 0


def test_clients_take_turns_and_so_do_the_requests_of_a_client() -> None:
    queue = LineQueue(1000)
    queue.put(lines(100, "a"))
    queue.put(lines(2, "b", "1"))
    queue.put(lines(2, "b", "2"))
    order = [line.split()[:2] for line in taken(queue, 8)]
    assert [client for client, _ in order] == ["a", "b", "a", "b", "a", "b", "a", "b"]
    assert [request for client, request in order if client == "b"] == ["1", "2", "1", "2"]


def test_turns_go_on_when_each_line_is_done_before_the_next() -> None:
    queue, order = LineQueue(1000), list[str]()
    for client in ("a", "b", "c"):
        queue.put(lines(3, client))
    while line := queue.take(0):
        order.append(line.sender.client)
        line.finish(nothing())  # type: ignore[arg-type]
    assert order == ["a", "b", "c"] * 3 and queue.live == 0 and not queue.waiting and not queue.clients


def test_who_has_the_fewest_lines_in_hand_is_next() -> None:
    queue = LineQueue(1000)
    queue.put(lines(10, "a"))
    taken(queue, 4)
    queue.put(lines(10, "b"))
    assert [line[0] for line in taken(queue, 6)] == ["b"] * 4 + ["a", "b"]


def test_without_room_only_those_who_have_nothing_in_hand_get_a_line() -> None:
    queue = LineQueue(1000, spare=4)
    queue.put(lines(10, "a", "1"))
    assert len(taken(queue, 3)) == 3 and not taken(queue, 1, room=False)
    queue.put(lines(10, "b", "1"))
    queue.put(lines(10, "a", "2"))
    assert taken(queue, 4, room=False) == ["b 1 0", "a 2 0"]
    for request in "34":
        queue.put(lines(1, "a", request))
    assert not taken(queue, 1, room=False)  # the rest of the spare lines is for other clients
    for client in "cdef":
        queue.put(lines(2, client))
    assert taken(queue, 4, room=False) == ["c 1 0", "d 1 0"]


@pytest.mark.parametrize(
    ("line", "options", "is_short"),
    [
        ("a" * 300, Options(), True),
        ("a" * 301, Options(), False),
        ("a", Options(n_best=10, beam_size=10, attention=True), True),
        ("a", Options(n_best=11), False),
        ("a", Options(beam_size=11), False),
        ("a", Options(terms=(("a", "b"),)), False),
        ("a", Options(avoid=("a",)), False),
    ],
)
def test_only_short_lines_are_taken_without_room(line: str, options: Options, is_short: bool) -> None:
    """Where lines are searched together, and the steps of long ones would hold up the others."""
    for short, expected in ((True, is_short), (False, True)):
        queue = LineQueue(10, spare=5, short=short)
        queue.put([Line(Sender("me", "1"), line, options)])
        assert (queue.take(0, room=False) is not None) == expected
        queue.close()


def test_a_spare_line_is_given_back() -> None:
    queue = LineQueue(10, spare=1)
    for client in "ab":
        queue.put(lines(1, client))
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
            line.finish(nothing())  # type: ignore[arg-type]

    threads = [threading.Thread(target=work, args=(room,)) for room in (False, True)]
    for thread in threads:
        thread.start()
    while not queue.idle:
        time.sleep(0.001)
    waiting = lines(1)
    queue.put(waiting)
    waiting[0].answer.result(30)
    queue.close()
    for thread in threads:
        thread.join(30)
    assert order == [True]


def test_all_or_none_fit() -> None:
    queue = LineQueue(5)
    queue.put(lines(2))
    with pytest.raises(QueueFull):
        queue.put(lines(4, "other"))
    assert queue.size == 2 and list(queue.waiting) == ["me"]
    queue.put(lines(3, "other"))


def test_no_client_fills_more_of_the_queue_than_it_leaves() -> None:
    queue = LineQueue(1000)
    queue.put(lines(500, request="1"))
    with pytest.raises(QueueFull):
        queue.put(lines(1, request="2"))
    queue.put(lines(250, "other"))
    queue.put([])
    assert queue.size == 750


def test_what_nobody_waits_for_is_skipped_and_leaves_the_queue() -> None:
    queue, mine = LineQueue(6), lines(3)
    queue.put(mine)
    mine[0].give_up()
    assert queue.take(0) is mine[1] and mine[0].answer.cancelled()
    queue.give_up(mine)
    assert queue.size == 0 and not queue.waiting and mine[2].answer.cancelled() and mine[1].stop.is_set()
    queue.give_up(mine)
    assert queue.size == 0


def test_what_is_in_hand_cannot_be_cancelled_but_hears_of_it() -> None:
    (line,) = lines(1)
    assert line.start()
    line.give_up()
    assert line.stop.is_set() and not line.answer.cancelled()


def test_close_ends_the_waiting_once_all_is_taken() -> None:
    queue, results = LineQueue(5), list[object]()
    threads = [threading.Thread(target=lambda: results.append(queue.take())) for _ in range(3)]
    for thread in threads:
        thread.start()
    queue.put(lines(1))
    queue.close()
    for thread in threads:
        thread.join(10)
    assert len(results) == 3 and results.count(None) == 2
    with pytest.raises(Closed):
        queue.put(lines(1))


def test_time_is_up() -> None:
    start = time.monotonic()
    assert LineQueue(1).take(0.02) is None
    assert time.monotonic() - start >= 0.02


def test_a_line_is_translated_or_what_else_is_wanted_is_computed() -> None:
    (line,) = lines(1)
    scores = WaitingLine[Scores](Sender(), compute=lambda: [[1.0]])
    failed = WaitingLine[Scores](Sender(), compute=lambda: [[1 / 0]])
    for waiting in (line, scores, failed):
        waiting.work(Upper())
    assert line.answer.result().hypotheses[0].text == "ME 1 0" and scores.answer.result() == [[1.0]]
    with pytest.raises(ZeroDivisionError):
        failed.answer.result()
