"""The threads of engines."""

import pytest

from nmt.errors import DataError
from nmt.serve.engine import Options
from nmt.serve.jobs import Call, Job, Jobs
from nmt.serve.workers import Workers
from tests.nmt.serve.engines import Batch, Upper

WAIT = 30


def submit(workers: Workers, *lines: str) -> list[Job]:
    jobs = [Job(line, Options()) for line in lines]
    workers.jobs.put(jobs)
    return jobs


def at_work(engine: Upper, gather: float = 0.0) -> Workers:
    return Workers(engine, Jobs(100), gather)


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
    workers.jobs.close()
    workers.join()
    assert workers.live == 0


def test_lines_that_come_later_join_those_in_search() -> None:
    engine = Batch()
    workers = at_work(engine)
    (first,) = submit(workers, "wait")
    others = submit(workers, "a", "b")
    assert [job.answer.result(WAIT).words for job in others] == [["a"], ["b"]]
    assert not first.answer.done() and engine.most >= 2
    engine.go.set()
    assert first.answer.result(WAIT).words == ["wait"]
    workers.jobs.close()


def test_a_line_that_the_search_cannot_translate_fails_alone() -> None:
    workers = at_work(Batch())
    late, other = submit(workers, "late", "b c d")
    with pytest.raises(DataError, match="found late"):
        late.answer.result(WAIT)
    assert other.answer.result(WAIT).words == ["b", "c", "d"]
    workers.jobs.close()
    workers.join()
    assert workers.live == 0


def test_an_idle_engine_gathers_lines() -> None:
    engine = Batch()
    workers = at_work(engine, gather=0.5)
    jobs = submit(workers, "a") + submit(workers, "b") + submit(workers, "c")
    for job in jobs:
        job.answer.result(WAIT)
    assert engine.most == 3
    workers.jobs.close()


def test_a_line_that_nobody_waits_for_leaves_the_search() -> None:
    engine = Batch()
    workers = at_work(engine)
    wait, other = submit(workers, "wait", "b c d")
    other.answer.result(WAIT)
    wait.drop()
    with pytest.raises(InterruptedError):
        wait.answer.result(WAIT)
    assert engine.cancelled == ["wait"] and workers.live == 0
    workers.jobs.close()


@pytest.mark.parametrize("engine", [Upper, Batch])
def test_after_a_crash_the_engine_goes_on(engine: type[Upper]) -> None:
    workers = at_work(engine())
    (job,) = submit(workers, "crash")
    with pytest.raises(RuntimeError):
        job.answer.result(WAIT)
    assert submit(workers, "a")[0].answer.result(WAIT).words == ["a"]
    workers.jobs.close()


@pytest.mark.parametrize("engine", [Upper, Batch])
def test_calls_take_their_turn(engine: type[Upper]) -> None:
    workers = at_work(engine())
    call = Call(lambda: [[1.0]])
    workers.jobs.put([call])
    assert call.answer.result(WAIT) == [[1.0]]
    workers.jobs.close()


@pytest.mark.parametrize("engine", [Upper, Batch])
def test_what_is_in_the_queue_is_done_after_close(engine: type[Upper]) -> None:
    workers = at_work(engine())
    jobs = submit(workers, *"a b c d e f g".split())
    workers.jobs.close()
    workers.join()
    assert [job.answer.result(0).words for job in jobs] == [[line] for line in "abcdefg"]
