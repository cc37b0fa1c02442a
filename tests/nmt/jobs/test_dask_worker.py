"""What a worker of a cluster does for a job, without a cluster."""

import os
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

pytest.importorskip("distributed")

from nmt.errors import ConfigError, DataError
from nmt.jobs import dask_worker
from nmt.jobs.cluster import Host
from nmt.jobs.dask_worker import JobPlugin

WORKER = SimpleNamespace(address="tcp://far:1")


NAMES: list[str] = []  # of the threads that computed


def begin() -> Callable[[int], int]:
    def compute(task: int) -> int:
        if task == 7:
            raise DataError("seven")
        NAMES.append(threading.current_thread().name)
        return task * task

    return compute


def begin_nothing() -> Callable[[int], int]:
    raise ConfigError("runs/none: no model")


def plugin(begin: Callable[[], Callable[[int], int]], expected: Host | None = None) -> JobPlugin:
    made = JobPlugin("job", begin, expected or dask_worker.here(), False)
    made.setup(WORKER)  # type: ignore[arg-type]
    return made


def test_chunks_are_computed_in_one_thread() -> None:
    made = plugin(begin)
    assert [made.compute(task) for task in range(5)] == [0, 1, 4, 9, 16]
    assert len(set(NAMES)) == 1 and threading.current_thread().name not in NAMES
    made.teardown(WORKER)  # type: ignore[arg-type]


def test_an_error_says_where() -> None:
    with pytest.raises(DataError, match="seven") as raised:
        plugin(begin).compute(7)
    assert raised.value.__notes__ == ["on worker tcp://far:1"]


def test_what_cannot_begin() -> None:
    with pytest.raises(ConfigError, match="no model"):
        plugin(begin_nothing).compute(1)


def test_another_version_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"worker tcp://far:1 has version .*, this is 0\.0"):
        plugin(begin, Host("0.0", "none"))


def test_what_numbers_depend_on() -> None:
    assert dask_worker.here() == dask_worker.here()
    assert str(os.getpid()) not in repr(dask_worker.here())
