"""Executors by name: the one that suits the workers, and those of plugins."""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.work import executors
from nmt.work.executors import (
    EXECUTORS,
    SHOWN_RANGES,
    Dask,
    Executor,
    ExecutorConfig,
    Local,
    Lost,
    LostLines,
    Processes,
    require_results,
)
from smt_bridge.features.registry import FEATURES


def begin() -> Callable[[int], int]:
    return abs


def executor(name: str, workers: int, cluster: str = "") -> Executor[int, int]:
    return executors.make(abs, begin, ExecutorConfig(name, workers, cluster))


def test_the_executor_that_suits_the_workers() -> None:
    assert isinstance(executor("", 1), Local) and isinstance(executor("local", 3), Local)
    assert isinstance(executor("", 2), Processes) and isinstance(executor("processes", 1), Processes)
    assert isinstance(executor("", 2, "127.0.0.1:8786"), Dask)
    with pytest.raises(ConfigError, match="'spark' is unknown, expected one of local, processes, dask"):
        executor("spark", 1)


@pytest.mark.parametrize("name", ["local", "processes"])
def test_a_cluster_is_not_forgotten(name: str) -> None:
    with pytest.raises(ConfigError, match=f"--executor {name} does not use the --cluster here:1"):
        executor(name, 1, "here:1")


def test_dask_needs_a_cluster() -> None:
    with pytest.raises(ConfigError, match="--executor dask needs a --cluster"):
        executor("dask", 1)


def test_an_executor_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXECUTORS, "mine", Local)
    assert isinstance(executor("mine", 2), Local)


# ---- test local --------------------------------------------------------------------------------------------
# The executor of this process: a task is drawn when its result is asked for.


def never() -> Callable[[int], int]:
    raise AssertionError("there is no other process to begin in")


def test_one_after_the_other() -> None:
    drawn: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(5):
            drawn.append(number)
            yield number

    with Local(lambda number: number * number, never, ExecutorConfig()) as running:
        results = running.map(tasks())
        for number in range(5):
            assert drawn == list(range(number))
            assert next(results) == number * number


def test_an_error_is_that_of_the_task() -> None:
    def compute(number: int) -> int:
        if number == 2:
            raise DataError("two")
        return number

    found: list[int] = []
    with pytest.raises(DataError, match=r"^two$"), Local(compute, never, ExecutorConfig()) as running:
        found.extend(running.map(range(5)))
    assert found == [0, 1]


# ---- test lost ---------------------------------------------------------------------------------------------
# The lines of lost chunks, in one line.


LOST = Lost("three workers died while computing this")


def test_neighboring_chunks_are_one_range() -> None:
    lines = LostLines()
    lines.check("text", "start again")  # nothing is lost
    for first, last in ((1, 10), (11, 20), (1001, 2000), (3000, 3000)):
        lines.add(first, last, LOST)
    with pytest.raises(UserError) as raised:
        lines.check("text", "start again")
    assert str(raised.value) == (
        "text: lines 1-20, 1,001-2,000, 3,000: three workers died while computing this; start again"
    )


def test_a_long_list_is_cut() -> None:
    lines = LostLines()
    for number in range(SHOWN_RANGES + 2):
        lines.add(10 * number + 1, 10 * number + 5, LOST)
    with pytest.raises(UserError, match=r"91-95 and 2 more ranges: three workers"):
        lines.check("text", "start again")


def test_who_needs_all_results_stops_at_the_first_lost_one() -> None:
    results = require_results([1, 2, LOST, 4])
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(UserError, match="chunk 3 of the job: three workers died while computing this"):
        next(results)


# ---- test processes ----------------------------------------------------------------------------------------
# Worker processes: order, errors, death, plugins.


def work(number: int) -> tuple[int, int]:
    """The square, and who computed it. 7 is refused, 8 is the end of the process."""
    if number == 7:
        raise DataError("seven")
    if number == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02 * (number % 2))  # uneven tasks overtake each other
    return number * number, os.getpid()


def begin_process() -> Callable[[int], tuple[int, int]]:
    return work


def fail_to_begin() -> Callable[[int], tuple[int, int]]:
    raise ConfigError("no model")


def process_executor(name: str, workers: int) -> Executor[int, tuple[int, int]]:
    return executors.make(work, begin_process, ExecutorConfig(name, workers))


@pytest.mark.parametrize("name", ["local", "processes"])
def test_results_in_order_and_tasks_as_needed(name: str) -> None:
    drawn: list[int] = []

    def tasks() -> Iterator[int]:
        for number in [*range(7), *range(9, 40)]:
            drawn.append(number)
            yield number

    with process_executor(name, 2) as running:
        results = require_results(running.map(tasks()))
        first = next(results)
        assert len(drawn) <= 6  # a table may be longer than memory
        found = [first, *results]
    assert [value for value, _ in found] == [number * number for number in drawn]
    assert {process for _, process in found}.isdisjoint({os.getpid()}) == (name == "processes")


def test_an_error_ends_the_workers() -> None:
    with pytest.raises(DataError, match="seven") as raised, process_executor("processes", 2) as running:
        list(running.map(range(8)))
    assert "in a worker process" in raised.value.__notes__[0] and "def work" not in str(raised.value)
    assert isinstance(running, Processes)
    assert not any(process.is_alive() for process, _ in running.processes)


def test_a_worker_that_dies() -> None:
    with pytest.raises(UserError, match="a worker process died"), process_executor("processes", 2) as running:
        list(running.map([1, 8, *range(6)]))
    assert isinstance(running, Processes)
    assert not any(process.is_alive() for process, _ in running.processes)


def test_a_worker_that_cannot_begin() -> None:
    with (
        pytest.raises(ConfigError, match="no model"),
        Processes(work, fail_to_begin, ExecutorConfig()) as running,
    ):
        list(running.map([1]))


class Picky(Exception):
    """An error that cannot be made again from its message, as pickle tries."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"{what} in line {line}")


def fail_pickily() -> Callable[[int], int]:
    raise Picky(7, "a comma")


def fail_with_code() -> Callable[[int], int]:
    raise ValueError("no", lambda: 7)


@pytest.mark.parametrize(
    ("begin", "message"), [(fail_pickily, "Picky: a comma in line 7"), (fail_with_code, "ValueError: .*no")]
)
def test_an_error_that_cannot_be_sent_is_described(
    begin: Callable[[], Callable[[int], int]], message: str
) -> None:
    with (
        pytest.raises(RuntimeError, match=message),
        executors.make(abs, begin, ExecutorConfig("processes", 1)) as running,
    ):
        list(running.map([1]))


def test_nothing_to_do() -> None:
    with process_executor("processes", 2) as running:
        assert list(running.map([])) == []


def ask(kind: str) -> Callable[[int], bool]:
    return lambda task: kind in FEATURES


def test_workers_know_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_kind.py").write_text(
        "from smt_bridge.features.registry import FEATURES\nFEATURES['own'] = FEATURES['lm']\n"
    )
    monkeypatch.setenv("NMT_PLUGINS", "own_kind")
    monkeypatch.syspath_prepend(tmp_path)
    with Processes(ask("own"), partial(ask, "own"), ExecutorConfig()) as running:
        assert list(running.map([0])) == [True]
    assert not ask("own")(0)  # not in this process


def no_map(tasks: Iterator[int]) -> object:
    """What `map` of a plugin gives that forgets `yield`."""


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (no_map, "NoneType, expected an iterator of results"),
        (lambda tasks: iter(list(tasks)[1:]), "fewer results than tasks, expected one for each task"),
        (lambda tasks: [next(tasks)], "fewer results than tasks, expected one for each task"),
        (lambda tasks: [*tasks, 3], "more results than tasks, expected one for each task"),
    ],
)
def test_an_executor_of_a_plugin_gives_a_result_for_each_task(
    give: Callable[[Iterator[int]], object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Own(Local[int, int]):
        def map(self, tasks: Iterable[int]) -> Iterator[int]:
            results: Iterator[int] = give(iter(tasks))  # type: ignore[assignment]
            return results

    monkeypatch.setitem(EXECUTORS, "own", Own)
    where = r"NMT_PLUGINS: \S+test_executors\.py:\d+: \S+Own\.map: returned "
    with (
        pytest.raises(ConfigError, match=where + message),
        executors.make(abs, begin, ExecutorConfig("own")) as running,
    ):
        list(running.map([1, 2]))


# ---- test lines --------------------------------------------------------------------------------------------
# Lines converted by one process or several.


def begin_lines() -> Callable[[Sequence[int]], list[int]]:
    return lambda chunk: [number * number for number in chunk]


def fail_to_begin_lines() -> Callable[[Sequence[int]], list[int]]:
    raise ConfigError("no such language")


@pytest.mark.parametrize("count", [0, 1, executors.LINES_PER_CHUNK, 5 * executors.LINES_PER_CHUNK + 3])
@pytest.mark.ci
def test_any_number_of_workers_gives_the_same_results_in_order(count: int) -> None:
    found = [list(executors.convert_lines(begin_lines, range(count), workers)) for workers in (1, 2)]
    assert found == [[number * number for number in range(count)]] * 2


def test_lines_are_read_as_they_are_needed() -> None:
    read = []

    def numbers() -> Iterator[int]:
        for number in range(100 * executors.LINES_PER_CHUNK):
            read.append(number)
            yield number

    next(executors.convert_lines(begin_lines, numbers(), 1))
    assert len(read) == executors.LINES_PER_CHUNK


def test_what_cannot_begin_says_so() -> None:
    with pytest.raises(ConfigError, match="no such language"):
        list(executors.convert_lines(fail_to_begin_lines, [1], 2))


def test_jobs_remember_what_may_change_numbers() -> None:
    """A job of one machine may go on with other workers, and one of alike workers on a cluster."""
    assert ExecutorConfig("processes", 4).recorded() == ExecutorConfig(cluster="a:1").recorded() == {}
    assert ExecutorConfig(cluster="a:1", mixed_workers=True).recorded() == {"mixed_workers": True}
