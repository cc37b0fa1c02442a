"""The queue between requests and engines."""

import threading
import time

import pytest

from nmt.serve.engine import Options
from nmt.serve.jobs import Call, Closed, Job, Jobs, QueueFull


def jobs(count: int) -> list[Job]:
    return [Job(str(number), Options()) for number in range(count)]


def test_first_in_first_out() -> None:
    queue, given = Jobs(5), jobs(3)
    queue.put(given)
    assert len(queue) == 3
    assert [queue.take(0) for _ in range(4)] == [*given, None]


def test_all_or_none_fit() -> None:
    queue = Jobs(3)
    queue.put(jobs(2))
    with pytest.raises(QueueFull):
        queue.put(jobs(2))
    assert len(queue) == 2
    queue.put(jobs(1))


def test_what_nobody_waits_for_is_skipped() -> None:
    queue, given = Jobs(5), jobs(3)
    queue.put(given)
    given[0].drop()
    given[1].stop.set()
    assert queue.take(0) is given[2]
    assert given[0].answer.cancelled()


def test_what_is_in_hand_cannot_be_cancelled_but_hears_of_it() -> None:
    (job,) = jobs(1)
    assert job.begin()
    job.drop()
    assert job.stop.is_set() and not job.answer.cancelled()


def test_close_ends_the_waiting_once_all_is_taken() -> None:
    queue, taken = Jobs(5), list[object]()
    threads = [threading.Thread(target=lambda: taken.append(queue.take())) for _ in range(3)]
    for thread in threads:
        thread.start()
    queue.put(jobs(1))
    queue.close()
    for thread in threads:
        thread.join(10)
    assert len(taken) == 3 and taken.count(None) == 2
    with pytest.raises(Closed):
        queue.put(jobs(1))


def test_time_is_up() -> None:
    begin = time.monotonic()
    assert Jobs(1).take(0.02) is None
    assert time.monotonic() - begin >= 0.02


def test_calls_answer_with_what_they_compute_or_raise() -> None:
    good, bad = Call(lambda: [[1.0]]), Call(lambda: [[1 / 0]])
    good.run()
    bad.run()
    assert good.answer.result() == [[1.0]]
    with pytest.raises(ZeroDivisionError):
        bad.answer.result()
