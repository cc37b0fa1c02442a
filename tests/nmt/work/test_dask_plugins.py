"""The plugins of a Dask cluster, on stand-ins for its scheduler and its workers."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
from distributed import Reschedule
from distributed.batched import BatchedSend

from nmt.errors import ConfigError, DataError
from nmt.work import dask_scheduler, dask_worker
from nmt.work.cluster import Host
from nmt.work.dask_scheduler import MESSAGES, JobWatch
from nmt.work.dask_worker import JobPlugin

# ---- test dask scheduler -----------------------------------------------------------------------------------
# Which chunk is blamed for a lost worker, and when it is given up; on a stand-in for Dask's scheduler, which
# blames all chunks that the worker had been sent.


@dataclass
class Task:
    key: str
    priority: tuple[int, ...]
    suspicious: int = 0
    state: str = "processing"


@dataclass
class Scheduler:
    """The parts of Dask's that the watch meets."""

    allowed_failures: int = 3
    tasks: dict[str, Task] = field(default_factory=dict)
    plugins: dict[str, JobWatch] = field(default_factory=dict)
    unregistered: list[str] = field(default_factory=list)
    event: int = 0
    stream_comms: dict[str, BatchedSend] = field(default_factory=dict)
    extensions: dict[str, object] = field(default_factory=dict)

    def move(self, task: Task, state: str) -> None:
        before, task.state = task.state, state
        for plugin in list(self.plugins.values()):
            plugin.transition(task.key, before, state, stimulus_id=f"event-{self.event}")

    def add(self, key: str) -> None:
        self.tasks[key] = Task(key, (0, len(self.tasks)), state="released")
        self.move(self.tasks[key], "processing")

    def lose_worker(self, *keys: str, expected: bool = False) -> None:
        """A worker with these chunks; as Scheduler.remove_worker."""
        self.event += 1
        moved = [self.tasks[key] for key in keys]
        for task in list(moved):
            if not expected:
                task.suspicious += 1
                if task.suspicious > self.allowed_failures:
                    moved.remove(task)
                    self.move(task, "erred")
        for task in moved:
            self.move(task, "released")
            self.move(task, "processing")
        for plugin in list(self.plugins.values()):
            plugin.remove_worker(self, "tcp://lost", stimulus_id=f"event-{self.event}")  # type: ignore[arg-type]

    async def unregister_worker_plugin(self, comm: None, name: str) -> None:
        self.unregistered.append(name)


def watched(allowed: int = 3) -> Scheduler:
    """Three chunks of our job, and a task of somebody else."""
    scheduler, watch = Scheduler(allowed), JobWatch("job", "client-1")
    asyncio.run(watch.start(scheduler))  # type: ignore[arg-type]
    scheduler.plugins["job"] = watch
    for key in ("job-0", "job-1", "job-2", "other-0"):
        scheduler.add(key)
    return scheduler


def states(scheduler: Scheduler) -> str:
    return " ".join(task.state for task in scheduler.tasks.values())


@pytest.mark.parametrize("allowed", [0, 3, 10])
def test_the_third_worker_is_the_last(allowed: int) -> None:
    scheduler = watched(allowed)
    for _ in range(2):
        scheduler.lose_worker("job-1", "job-2")
    assert states(scheduler) == "processing processing processing processing"
    scheduler.lose_worker("job-1", "job-2")
    assert states(scheduler) == "processing erred processing processing"


def test_chunks_that_waited_are_not_blamed() -> None:
    """job-2 waited three times, and may kill three of its own."""
    scheduler = watched()
    for _ in range(3):
        scheduler.lose_worker("job-1", "job-2")
    for _ in range(2):
        scheduler.lose_worker("job-2")
    assert states(scheduler) == "processing erred processing processing"
    scheduler.lose_worker("job-2", "job-0")  # what was sent first is computed first
    scheduler.lose_worker("job-2")
    assert states(scheduler) == "processing erred erred processing"


def test_a_worker_that_leaves_is_no_death() -> None:
    scheduler = watched()
    for _ in range(9):
        scheduler.lose_worker("job-0", expected=True)
    assert states(scheduler).startswith("processing")


def test_a_finished_chunk_starts_anew() -> None:
    """Its result was lost with a worker."""
    scheduler = watched()
    for _ in range(2):
        scheduler.lose_worker("job-0")
    scheduler.move(scheduler.tasks["job-0"], "memory")
    scheduler.move(scheduler.tasks["job-0"], "processing")
    for _ in range(2):
        scheduler.lose_worker("job-0")
    assert states(scheduler).startswith("processing")


def test_tasks_of_others_are_left_alone() -> None:
    scheduler = watched()
    for _ in range(3):
        scheduler.lose_worker("other-0")
    assert scheduler.tasks["other-0"].suspicious == 3 and states(scheduler).endswith("processing")


def test_workers_forget_the_job_with_its_client() -> None:
    scheduler = watched()
    watch = scheduler.plugins["job"]

    async def leave(client: str) -> None:
        watch.remove_client(scheduler, client)  # type: ignore[arg-type]
        await asyncio.sleep(0)

    asyncio.run(leave("client-2"))
    assert not scheduler.unregistered and scheduler.plugins
    asyncio.run(leave("client-1"))
    assert scheduler.unregistered == ["job"] and not scheduler.plugins


def test_streams_forget_what_they_have_sent() -> None:
    """Those of workers that are there, and of one that joins."""

    async def sent() -> list[int]:
        scheduler, watch = Scheduler(stream_comms={"tcp://one": BatchedSend(1)}), JobWatch("job", "client")
        await watch.start(scheduler)  # type: ignore[arg-type]
        scheduler.stream_comms["tcp://two"] = BatchedSend(1)
        watch.add_worker(scheduler, "tcp://two")  # type: ignore[arg-type]
        for stream in scheduler.stream_comms.values():
            stream.recent_message_log.extend(range(100))
        return [len(stream.recent_message_log) for stream in scheduler.stream_comms.values()]

    assert asyncio.run(sent()) == [MESSAGES, MESSAGES]


# ---- test dask task ----------------------------------------------------------------------------------------
# A task on its way through a cluster.


def test_a_chunk_is_computed_by_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins = {"job": SimpleNamespace(compute=lambda task: [*task, "done"])}
    monkeypatch.setattr("nmt.work.dask_scheduler.get_worker", lambda: SimpleNamespace(plugins=plugins))
    assert dask_scheduler.compute_task("job", dask_scheduler.pack_task(["a", 1])) == ["a", 1, "done"]


@pytest.mark.ci
def test_the_scheduler_is_spared_torch() -> None:
    code = "import sys, nmt.work.dask_scheduler, nmt.work.dask_scheduler; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- test dask worker --------------------------------------------------------------------------------------


NAMES: list[str] = []  # of the threads that computed


class Worker:
    """What a plugin meets of Dask's."""

    def __init__(self, address: str = "tcp://far:1") -> None:
        self.address = address
        self.loop, self.close_gracefully = self, "close"
        self.events: list[object] = []
        self.calls: list[tuple[str, str]] = []

    def log_event(self, topic: str, message: str) -> None:
        self.events.append((topic, message))

    def add_callback(self, function: str, reason: str) -> None:
        self.calls.append((function, reason))


def begin() -> Callable[[int], int]:
    def compute(task: int) -> int:
        if task == 7:
            raise DataError("seven")
        NAMES.append(threading.current_thread().name)
        return task * task

    return compute


def begin_nothing() -> Callable[[int], int]:
    raise ConfigError("runs/none: no model")


def plugin(
    worker: Worker, begin: Callable[[], Callable[[int], int]], expected: Host | None = None
) -> JobPlugin:
    made = JobPlugin("job", begin, expected or dask_worker.this_host(), False, {"tcp://far:1"})  # type: ignore[arg-type]
    asyncio.run(made.setup(worker))  # type: ignore[arg-type]
    return made


def test_chunks_are_computed_in_one_thread() -> None:
    worker = Worker()
    made = plugin(worker, begin)
    assert [made.compute(task) for task in range(5)] == [0, 1, 4, 9, 16]
    assert len(set(NAMES)) == 1 and threading.current_thread().name not in NAMES
    made.teardown(worker)  # type: ignore[arg-type]


def test_an_error_says_where() -> None:
    with pytest.raises(DataError, match="seven") as raised:
        plugin(Worker(), begin).compute(7)
    assert raised.value.__notes__ == ["on worker tcp://far:1"]


def test_the_job_is_refused_where_a_worker_cannot_begin() -> None:
    with pytest.raises(ConfigError, match=r"^worker tcp://far:1: runs/none: no model$"):
        plugin(Worker(), begin_nothing)
    with pytest.raises(ConfigError, match=r"^worker tcp://far:1: has version .*, not 0\.0; install"):
        plugin(Worker(), begin, Host("0.0", "none"))


def test_a_worker_that_joins_and_cannot_begin_is_closed() -> None:
    """What it was sent meanwhile goes to others."""
    worker = Worker("tcp://late:1")
    made = plugin(worker, begin_nothing)
    why = "worker tcp://late:1: runs/none: no model"
    assert worker.calls == [("close", why)] and worker.events == [("job", why)]
    with pytest.raises(Reschedule):
        made.compute(1)


def test_each_process_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for three GPUs, of which others have taken two; chosen in the thread that computes."""
    chosen: list[tuple[int, str]] = []
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    monkeypatch.setattr("nmt.work.dask_worker.claim_own_gpu", lambda count: (count - 1, None))
    monkeypatch.setattr(
        "torch.cuda.set_device", lambda number: chosen.append((number, threading.current_thread().name))
    )
    NAMES.clear()
    plugin(Worker(), begin).compute(2)
    assert chosen == [(2, NAMES[0])]


def test_what_numbers_depend_on() -> None:
    assert dask_worker.this_host() == dask_worker.this_host()
    assert str(os.getpid()) not in repr(dask_worker.this_host())


# ---- test gpus ---------------------------------------------------------------------------------------------
# GPUs among workers, without any.


def test_one_each_then_they_share(tmp_path: Path) -> None:
    claims = [dask_worker.claim_gpu(tmp_path / "gpus", ["0", "1"]) for _ in range(3)]
    assert [number for number, _ in claims[:2]] == [0, 1] and claims[2][0] in (0, 1) and claims[2][1] is None
    lock = claims[0][1]
    assert lock
    lock.release()  # as the end of its process does
    assert dask_worker.claim_gpu(tmp_path / "gpus", ["0", "1"])[0] == 0


@pytest.mark.parametrize("planted", ["link", "writable", "file"])
def test_a_planted_folder_is_not_used(planted: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The temporary folder is everybody's: whoever made this name there could hold the locks, or have them
    opened elsewhere. The process shares, and nothing is written."""
    folder, elsewhere = tmp_path / "gpus", tmp_path / "elsewhere"
    elsewhere.mkdir()
    if planted == "link":
        folder.symlink_to(elsewhere)
    elif planted == "file":
        folder.touch()
    else:
        folder.mkdir()
        folder.chmod(0o777)
    number, lock = dask_worker.claim_gpu(folder, ["0", "1"])
    assert number in (0, 1) and lock is None and "gpus: other users can write there" in caplog.text
    assert not any(elsewhere.iterdir()) and (folder.is_file() or not any(folder.iterdir()))


def test_a_lock_that_is_a_link_is_passed_over(tmp_path: Path) -> None:
    folder, precious = tmp_path / "gpus", tmp_path / "precious"
    folder.mkdir(mode=0o700)
    precious.write_text("text")
    (folder / "0.lock").symlink_to(precious)
    assert dask_worker.claim_gpu(folder, ["0", "1"])[0] == 1 and precious.read_text() == "text"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_hosts_that_hide_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Number 0 of one worker is number 1 of another: they are told apart by their names."""
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    found = []
    for visible in ("2,3", "1,2", "3"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        dask_worker.claim_own_gpu.cache_clear()
        number, lock = dask_worker.claim_own_gpu(len(visible.split(",")))
        found.append((number, lock and Path(lock.lock_file).name))
        names = lock  # held until the next one has chosen
        assert names or visible
    dask_worker.claim_own_gpu.cache_clear()
    assert [number for number, _ in found] == [0, 0, 0]
    assert [name for _, name in found] == ["2.lock", "1.lock", "3.lock"]
