"""Chunks on a Dask cluster of this machine."""

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest
from distributed import Client, Scheduler

from nmt.errors import ConfigError, DataError, UserError
from nmt.work import cluster
from nmt.work.dask_scheduler import MESSAGES
from nmt.work.executors import KILLED, Dask, ExecutorConfig, require_results
from tests.conftest import until
from tests.nmt.work import clusters

pytestmark = pytest.mark.ci
SAID = "has no worker left; waiting for one"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with clusters.cluster(tmp_path_factory.mktemp("cluster")) as place:
        yield place


def work(task: int) -> tuple[int, int]:
    """The square, and who computed it. 7 cannot be computed, 13 kills its worker."""
    if task == 7:
        raise DataError("line 7: seven")
    if task == 13:
        time.sleep(0.5)  # until the scheduler knows of the chunk before
        os._exit(1)
    return task * task, os.getpid()


def begin() -> Callable[[int], tuple[int, int]]:
    return work


def work_slowly(task: int) -> tuple[int, int]:
    time.sleep(0.5)
    return work(task)


def begin_slowly() -> Callable[[int], tuple[int, int]]:
    return work_slowly


def begin_once(folder: str) -> Callable[[int], tuple[int, int]]:
    Path(folder, str(os.getpid())).touch(exist_ok=False)
    return work


def begin_unless(place: str) -> Callable[[int], tuple[int, int]]:
    if Path(place).exists():
        raise ConfigError("runs/none: no model")
    return work


def executor(
    place: str, begin: Callable[[], Callable[[int], tuple[int, int]]] = begin
) -> Dask[int, tuple[int, int]]:
    return Dask(work, begin, ExecutorConfig(cluster=place))


def described(dask_scheduler: Scheduler) -> int:
    """Entries about chunks that Dask's scheduler keeps."""
    spans = dask_scheduler.extensions["spans"].spans.values()
    return sum(len(span.metadata["collections"]) for span in spans if span.metadata)


def test_results_are_in_order_and_of_both_workers(two: str) -> None:
    drawn: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(20, 80):
            drawn.append(number)
            yield number

    with executor(two) as running:
        results = require_results(running.map(tasks()))
        first = next(results)
        assert len(drawn) < 12  # as many as keep two workers busy
        found = [first, *results]
        stream = running.client.scheduler_comm
        assert stream and len(stream.recent_message_log) <= MESSAGES  # and not each chunk
        assert running.client.run_on_scheduler(described) <= 1
    assert [square for square, _ in found] == [number * number for number in range(20, 80)]
    assert len({pid for _, pid in found} - {os.getpid()}) == 2


def test_each_worker_begins_once(two: str, tmp_path: Path) -> None:
    with executor(two, partial(begin_once, str(tmp_path))) as running:
        list(running.map(range(20, 40)))
        (again,) = require_results(running.map([3]))
        assert again[0] == 9  # not the first result of the first call
    assert len(list(tmp_path.iterdir())) == 2
    client = cluster.connect(two)
    until(lambda: not any(client.run(plugins).values()))  # the models are gone
    assert not client.run_on_scheduler(plugins)
    client.close()


class HasPlugins(Protocol):
    plugins: dict[str, object]


def plugins(dask_worker: HasPlugins | None = None, dask_scheduler: HasPlugins | None = None) -> list[str]:
    """Of our jobs, on a worker or on the scheduler."""
    there = dask_worker or dask_scheduler
    assert there
    return [name for name in there.plugins if name.startswith("nmt-smt")]


def test_an_error_is_that_of_the_task(two: str) -> None:
    found: list[tuple[int, int]] = []
    with pytest.raises(DataError) as raised, executor(two) as running:
        found.extend(require_results(running.map(range(6, 9))))
    assert str(raised.value) == "line 7: seven"
    assert [square for square, _ in found] == [36]
    assert any("on worker tcp://" in note for note in raised.value.__notes__)


def test_a_worker_that_cannot_begin(two: str, tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"^worker tcp://127\.0\.0\.1:\d+: runs/none: no model$"),
        executor(two, partial(begin_unless, str(tmp_path))),
    ):
        pass


def test_a_worker_that_joins_and_cannot_begin(
    two: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is closed, and the job goes on."""
    caplog.set_level(logging.WARNING)
    with executor(two, partial(begin_unless, str(tmp_path / "late"))) as running:
        (tmp_path / "late").touch()
        third = clusters.worker(Path(two).parent)
        try:
            assert third.wait(clusters.SECONDS) == 0
        finally:
            third.kill()
        found = list(require_results(running.map(range(20, 60))))
    assert [square for square, _ in found] == [number * number for number in range(20, 60)]
    assert "runs/none: no model; it does not take part" in caplog.text


def test_nothing_to_do(two: str) -> None:
    with executor(two) as running:
        assert list(running.map([])) == []


def test_a_chunk_that_kills_three_workers_is_lost_alone(tmp_path: Path) -> None:
    """Others live; chunks that waited beside it are not lost."""
    tasks = [20, 13, *range(21, 40)]
    with clusters.cluster(tmp_path, workers=5) as place, executor(place) as running:
        found = list(running.map(tasks))
        until(lambda: len(running.client.nthreads()) == 2)
    assert [number for number, result in zip(tasks, found, strict=True) if result == KILLED] == [13]
    rest = [result for result in found if result != KILLED]
    assert [square for square, _ in require_results(rest)] == [number**2 for number in tasks if number != 13]


def test_a_lost_worker_costs_nothing(tmp_path: Path) -> None:
    """One of two is killed at work; a third comes later, whenever that is, and takes part."""
    with clusters.cluster(tmp_path, workers=1) as place:
        second = third = clusters.worker(tmp_path)
        clusters.wait_for(2, place)
        drawn: list[int] = []

        def tasks() -> Iterator[int]:
            """Until the third one has computed something, and some more."""
            end = time.monotonic() + clusters.SECONDS
            while time.monotonic() < end and (third is second or third.pid not in pids):
                drawn.append(20 + len(drawn))
                yield drawn[-1]

        pids: set[int] = set()
        squares: list[int] = []
        with executor(place) as running:
            for square, pid in require_results(running.map(tasks())):
                squares.append(square)
                pids.add(pid)
                time.sleep(0.005)
                if len(squares) == 30:
                    second.send_signal(signal.SIGKILL)
                    second.wait()
                    third = clusters.worker(tmp_path)
        third.kill()
        third.wait()
    assert squares == [number * number for number in drawn]
    assert third.pid in pids


@pytest.mark.parametrize("ended", [False, True], ids=["computing", "with results"])
def test_a_cluster_that_has_lost_its_workers(
    ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The user hears of it, also where results that nobody has fetched were lost; the job goes on with the
    next worker."""
    monkeypatch.setattr("nmt.work.executors.WARN_EVERY", 0.2)

    def another() -> "subprocess.Popen[bytes]":
        with suppress(AssertionError):  # the job has to end, also where nothing was said
            until(lambda: SAID in caplog.text)
        return clusters.worker(tmp_path)

    with clusters.cluster(tmp_path, workers=0) as place, ThreadPoolExecutor() as threads:
        first = clusters.worker(tmp_path)
        clusters.wait_for(1, place)
        with executor(place, begin if ended else begin_slowly) as running:
            squares = running.map(range(20, 30))
            found = [next(squares)]
            if ended:
                time.sleep(1)
            first.kill()
            first.wait()
            later = threads.submit(another)
            found.extend(squares)
        later.result().kill()
        later.result().wait()
    assert SAID in caplog.text
    assert [square for square, _ in require_results(found)] == [number**2 for number in range(20, 30)]


def test_a_lost_scheduler(tmp_path: Path) -> None:
    running = [clusters.scheduler(tmp_path)]
    running.append(clusters.worker(tmp_path))
    try:
        clusters.wait_for(1, str(tmp_path / "scheduler.json"))
        with (
            pytest.raises(UserError, match="lost the scheduler"),
            executor(str(tmp_path / "scheduler.json")) as work_there,
        ):
            for number, _ in enumerate(work_there.map(range(20, 2000))):
                if number == 5:
                    running[0].kill()
        assert not logging.getLogger("distributed.client").isEnabledFor(logging.ERROR)  # Dask says nothing
    finally:
        for process in running:
            process.kill()
            process.wait()


@pytest.mark.parametrize("noticed", [False, True])
def test_a_scheduler_that_is_lost_as_the_job_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noticed: bool
) -> None:
    """Whether the client has noticed by then or not."""
    process, connect = clusters.scheduler(tmp_path), cluster.connect

    def connect_and_lose(where: str) -> Client:
        client = connect(where)
        process.kill()
        process.wait()
        end = time.monotonic() + clusters.SECONDS
        while noticed and client.scheduler_comm is not None and time.monotonic() < end:
            time.sleep(0.05)
        return client

    monkeypatch.setattr("nmt.work.cluster.connect", connect_and_lose)
    with pytest.raises(UserError, match="lost the scheduler"), executor(str(tmp_path / "scheduler.json")):
        pass


def test_a_client_whose_first_close_fails(two: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask cancels an attempt to connect that has just run out of time, which is an error of asyncio."""
    with executor(two) as dask:
        close, failures = dask.client.rpc.close, [RuntimeError("Cannot change state of expiring Timeout")]

        async def fail_once() -> None:
            if failures:
                raise failures.pop()
            await close()

        monkeypatch.setattr(dask.client.rpc, "close", fail_once)
    assert dask.client.status == "closed" and not failures


def test_a_cluster_without_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.work.cluster.FIRST_WORKER", 1)
    with (
        clusters.cluster(tmp_path, workers=0) as place,
        pytest.raises(UserError, match="has no worker; start `dask worker` on each host"),
        executor(place),
    ):
        pass
