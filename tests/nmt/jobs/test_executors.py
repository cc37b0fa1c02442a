"""Executors by name: the one that suits the workers, and those of plugins."""

from collections.abc import Callable

import pytest

from nmt.errors import ConfigError
from nmt.jobs import executors
from nmt.jobs.executors import EXECUTORS, Executor
from nmt.jobs.local import Local
from nmt.jobs.processes import Processes


def begin() -> Callable[[int], int]:
    return abs


def executor(name: str | None, workers: int) -> Executor[int, int]:
    return executors.make(name, abs, begin, workers)


def test_the_executor_that_suits_the_workers() -> None:
    assert isinstance(executor(None, 1), Local) and isinstance(executor("local", 3), Local)
    assert isinstance(executor(None, 2), Processes) and isinstance(executor("processes", 1), Processes)
    with pytest.raises(ConfigError, match="'dask' is unknown, expected one of local, processes"):
        executor("dask", 1)


def test_an_executor_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXECUTORS, "mine", Local)
    assert isinstance(executor("mine", 2), Local)
