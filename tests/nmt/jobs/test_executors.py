"""Executors by name: the one that suits the workers, and those of plugins."""

from collections.abc import Callable

import pytest

from nmt.errors import ConfigError
from nmt.jobs import executors
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.dask import Dask
from nmt.jobs.executors import EXECUTORS, Executor
from nmt.jobs.local import Local
from nmt.jobs.processes import Processes


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
