"""Chunks on a Dask cluster of this machine."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.jobs import cluster as connection
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.dask import Dask
from nmt.jobs.lost import Lost, all_of
from tests.nmt.jobs import clusters

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with clusters.cluster(tmp_path_factory.mktemp("cluster")) as place:
        yield place


def work(task: int) -> tuple[int, int]:
    """The square, and who computed it. 7 cannot be computed, 13 kills its worker."""
    if task == 7:
        raise DataError("line 7: seven")
    if task == 13:
        os._exit(1)
    return task * task, os.getpid()


def begin() -> Callable[[int], tuple[int, int]]:
    return work


def begin_once(folder: str) -> Callable[[int], tuple[int, int]]:
    Path(folder, str(os.getpid())).touch(exist_ok=False)
    return work


def begin_nothing() -> Callable[[int], tuple[int, int]]:
    raise ConfigError("runs/none: no model")


def executor(
    place: str, begin: Callable[[], Callable[[int], tuple[int, int]]] = begin
) -> Dask[int, tuple[int, int]]:
    return Dask(work, begin, ExecutorConfig(cluster=place))


def test_results_are_in_order_and_of_both_workers(two: str) -> None:
    drawn: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(20, 80):
            drawn.append(number)
            yield number

    with executor(two) as running:
        results = all_of(running.map(tasks()))
        first = next(results)
        assert len(drawn) < 12  # as many as keep two workers busy
        found = [first, *results]
    assert [square for square, _ in found] == [number * number for number in range(20, 80)]
    assert len({pid for _, pid in found} - {os.getpid()}) == 2


def test_each_worker_begins_once(two: str, tmp_path: Path) -> None:
    with executor(two, partial(begin_once, str(tmp_path))) as running:
        list(running.map(range(20, 40)))
    assert len(list(tmp_path.iterdir())) == 2


def test_an_error_is_that_of_the_task(two: str) -> None:
    found: list[tuple[int, int]] = []
    with pytest.raises(DataError) as raised, executor(two) as running:
        found.extend(all_of(running.map(range(6, 9))))
    assert str(raised.value) == "line 7: seven"
    assert [square for square, _ in found] == [36]
    assert any("on worker tcp://" in note for note in raised.value.__notes__)


def test_a_worker_that_cannot_begin(two: str) -> None:
    with pytest.raises(ConfigError, match="no model"), executor(two, begin_nothing) as running:
        list(running.map([1]))


def test_nothing_to_do(two: str) -> None:
    with executor(two) as running:
        assert list(running.map([])) == []


def test_a_chunk_that_kills_its_workers_is_named(tmp_path: Path) -> None:
    with (
        clusters.cluster(tmp_path, workers=5) as place,
        executor(place) as running,
    ):
        found = list(running.map([1, 13, 2]))
    assert found[1] == Lost("4 workers died while they computed them")


def test_a_lost_worker_costs_nothing(tmp_path: Path) -> None:
    """One of two is killed at work; a third comes later."""
    with clusters.cluster(tmp_path, workers=1) as place:
        second = clusters.worker(tmp_path)
        with executor(place) as running:
            results = all_of(running.map(range(20, 400)))
            found = [next(results) for _ in range(30)]
            second.send_signal(signal.SIGKILL)
            second.wait()
            third = clusters.worker(tmp_path)
            for result in results:
                found.append(result)
                time.sleep(0.005)  # until it has come
        third.kill()
        third.wait()
    assert [square for square, _ in found] == [number * number for number in range(20, 400)]
    assert third.pid in {pid for _, pid in found}


def test_a_lost_scheduler(tmp_path: Path) -> None:
    running = [clusters.scheduler(tmp_path)]
    running.append(clusters.worker(tmp_path))
    try:
        with (
            pytest.raises(UserError, match="the scheduler is gone; where the command has --resume"),
            executor(str(tmp_path / "scheduler.json")) as work_there,
        ):
            for number, _ in enumerate(work_there.map(range(20, 2000))):
                if number == 5:
                    running[0].kill()
    finally:
        for process in running:
            process.kill()
            process.wait()


def test_a_cluster_without_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_WORKER", 1)
    with (
        clusters.cluster(tmp_path, workers=0) as place,
        pytest.raises(UserError, match="has no worker; start `dask worker` on each host"),
        executor(place),
    ):
        pass
