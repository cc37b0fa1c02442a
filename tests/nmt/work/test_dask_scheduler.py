"""Which chunk is blamed for a lost worker, and when it is given up; on a stand-in for Dask's scheduler, which
blames all chunks that the worker had been sent."""

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from distributed.batched import BatchedSend

from nmt.work import dask_scheduler
from nmt.work.dask_scheduler import MESSAGES, JobWatch

# ---- test dask scheduler -----------------------------------------------------------------------------------


pytest.importorskip("distributed")


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


pytest.importorskip("distributed")


def test_a_chunk_is_computed_by_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins = {"job": SimpleNamespace(compute=lambda task: [*task, "done"])}
    monkeypatch.setattr("nmt.work.dask_scheduler.get_worker", lambda: SimpleNamespace(plugins=plugins))
    assert dask_scheduler.compute_task("job", dask_scheduler.pack_task(["a", 1])) == ["a", 1, "done"]


@pytest.mark.ci
def test_the_scheduler_is_spared_torch() -> None:
    code = "import sys, nmt.work.dask_scheduler, nmt.work.dask_scheduler; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
