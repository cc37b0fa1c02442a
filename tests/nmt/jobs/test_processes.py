"""Worker processes: order, errors, death, plugins."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.jobs import executors
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.executors import Executor
from nmt.jobs.lost import all_of
from nmt.jobs.processes import Processes
from smt_bridge.features.registry import FEATURES


def work(number: int) -> tuple[int, int]:
    """The square, and who computed it. 7 is refused, 8 is the end of the process."""
    if number == 7:
        raise DataError("seven")
    if number == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02 * (number % 2))  # uneven tasks overtake each other
    return number * number, os.getpid()


def begin() -> Callable[[int], tuple[int, int]]:
    return work


def begin_nothing() -> Callable[[int], tuple[int, int]]:
    raise ConfigError("no model")


def executor(name: str, workers: int) -> Executor[int, tuple[int, int]]:
    return executors.make(work, begin, ExecutorConfig(name, workers))


@pytest.mark.parametrize("name", ["local", "processes"])
def test_results_in_order_and_tasks_as_needed(name: str) -> None:
    drawn: list[int] = []

    def tasks() -> Iterator[int]:
        for number in [*range(7), *range(9, 40)]:
            drawn.append(number)
            yield number

    with executor(name, 2) as running:
        results = all_of(running.map(tasks()))
        first = next(results)
        assert len(drawn) <= 6  # a table may be longer than memory
        found = [first, *results]
    assert [value for value, _ in found] == [number * number for number in drawn]
    assert {process for _, process in found}.isdisjoint({os.getpid()}) == (name == "processes")


def test_an_error_ends_the_workers() -> None:
    with pytest.raises(DataError, match="seven") as raised, executor("processes", 2) as running:
        list(running.map(range(8)))
    assert "in a worker process" in raised.value.__notes__[0] and "def work" not in str(raised.value)
    assert isinstance(running, Processes)
    assert not any(process.is_alive() for process, _ in running.processes)


def test_a_worker_that_dies() -> None:
    with pytest.raises(UserError, match="a worker process died"), executor("processes", 2) as running:
        list(running.map([1, 8, *range(6)]))
    assert isinstance(running, Processes)
    assert not any(process.is_alive() for process, _ in running.processes)


def test_a_worker_that_cannot_begin() -> None:
    with (
        pytest.raises(ConfigError, match="no model"),
        Processes(work, begin_nothing, ExecutorConfig()) as running,
    ):
        list(running.map([1]))


def test_nothing_to_do() -> None:
    with executor("processes", 2) as running:
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
