"""What a worker of a cluster does for a job, without a cluster."""

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from distributed import Reschedule

from nmt.errors import ConfigError, DataError
from nmt.work import dask_worker
from nmt.work.cluster import Host
from nmt.work.dask_worker import JobPlugin

# ---- test dask worker --------------------------------------------------------------------------------------


pytest.importorskip("distributed")


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
