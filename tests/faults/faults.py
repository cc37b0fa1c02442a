"""What can go wrong on the hosts of a cluster. A new fault is a function and one line in FAULTS."""

import errno
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.faults.hosts import Cluster, Program, signal_to
from tests.faults.works import ScoreTable

CUT = 30  # seconds without network
STOPPED = (5, 25)  # seconds for which a worker stands still
HOURS = 40  # that clocks differ, at most: the certificates are valid for two days
AWAY = (0, 20)  # seconds until a host, or a scheduler, is there again
PATIENCE = 60  # seconds that a fault waits for what it needs: a worker to kill, say


@dataclass
class Scene:
    """A job at work."""

    cluster: Cluster
    work: ScoreTable
    output: Path
    client: "subprocess.Popen[bytes]"
    rng: Random

    def wait(self, seconds: float) -> None:
        """While programs are supervised; not longer than the client runs."""
        self.cluster.wait(seconds, self.client)

    def away(self, program: Program) -> None:
        """Nobody starts a program for a while."""
        program.wanted = False
        self.cluster.wait(self.rng.uniform(*AWAY))
        program.wanted = True

    def a_worker(self) -> int | None:
        """The process of a worker, which its nanny started; None where none has started in time."""
        for _ in range(PATIENCE):
            nannies = [program.process.pid for program in self.cluster.workers if program.process]
            if found := sorted(child for nanny in nannies for child in workers_of(nanny)):
                return self.rng.choice(found)
            self.wait(1)
        return None


def workers_of(nanny: int) -> list[int]:
    """The worker that a nanny started, in one of its threads: what else it started is no `spawn_main`."""
    try:
        threads = [text.read_text() for text in Path(f"/proc/{nanny}/task").glob("*/children")]
        children = " ".join(threads).split()
        return [int(one) for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]
    except OSError:
        return []  # it has just ended


def kill_worker(scene: Scene) -> bool:
    worker = scene.a_worker()
    if worker is not None:
        signal_to(worker, signal.SIGKILL)
    return worker is not None


def stop_worker(scene: Scene) -> bool:
    worker = scene.a_worker()
    if worker is not None:
        signal_to(worker, signal.SIGSTOP)
        scene.cluster.wait(scene.rng.uniform(*STOPPED))
        signal_to(worker, signal.SIGCONT)
    return worker is not None


def kill_second_host(scene: Scene) -> bool:
    scene.cluster.hosts[1].kill()
    scene.away(scene.cluster.workers[1])
    return True


def kill_first_host(scene: Scene) -> bool:
    """The one with scheduler and client."""
    scene.cluster.hosts[0].kill()
    scene.client.wait()
    scene.away(scene.cluster.scheduler)
    return True


def kill_scheduler(scene: Scene) -> bool:
    scene.cluster.scheduler.kill()
    scene.away(scene.cluster.scheduler)
    return True


def kill_client(scene: Scene) -> bool:
    scene.client.kill()
    scene.client.wait()
    return True


def cut_network(scene: Scene) -> bool:
    second = scene.cluster.hosts[1]
    second.cut()
    try:
        scene.cluster.wait(CUT)
    finally:
        second.mend()
    return True


def damage_chunk(scene: Scene) -> bool:
    """The client is killed, and a byte changes of what it has kept."""
    while not scene.work.finished(scene.output) and scene.client.poll() is None:
        scene.wait(0.1)
    kill_client(scene)
    return scene.work.damage(scene.output, scene.rng.random())


def fill(folder: Path) -> Path:
    """A file that leaves no room on a disk."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as stream:
        try:
            while stream.write(bytes(1 << 16)):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    return ballast


def fill_disk_of_client(scene: Scene) -> bool:
    """There is no room until the client has ended."""
    ballast = fill(scene.output.parent)
    try:
        scene.wait(PATIENCE)
    finally:
        ballast.unlink()
    return True


def fill_disk_of_worker(scene: Scene) -> bool:
    """The worker of the second host starts while there is no room, which comes back later."""
    worker = scene.cluster.workers[1]
    ballast = fill(scene.cluster.scratch(scene.cluster.hosts[1]))
    try:
        for process in workers_of(worker.process.pid) if worker.process else []:
            signal_to(process, signal.SIGKILL)
        scene.cluster.wait(scene.rng.uniform(*AWAY))
    finally:
        ballast.unlink()
    return True


def set_clock(scene: Scene) -> bool:
    """The second host starts again with a clock that is hours ahead."""
    worker = scene.cluster.workers[1]
    before = worker.env
    worker.env = {**before, "LD_PRELOAD": faketime(), "FAKETIME": f"+{scene.rng.randint(1, HOURS)}h"}
    scene.cluster.hosts[1].kill()
    scene.wait(10 * PATIENCE)  # until the job is done
    worker.env = before
    scene.cluster.hosts[1].kill()
    return True


def faketime() -> str:
    """The library that changes clocks; empty where there is none. FAKETIME_LIBRARY names another place."""
    places = [os.environ.get("FAKETIME_LIBRARY", "")]
    places += map(str, Path("/usr/lib").glob("**/faketime/libfaketime.so.1"))
    return next((place for place in places if place and Path(place).exists()), "")


@dataclass(frozen=True)
class Fault:
    """`inject` returns False where there was nothing to harm. `share`: how many of SHARES faults are of this
    kind; `per_job`: how many a job meets."""

    inject: Callable[[Scene], bool]
    share: int
    per_job: int
    early: bool = False  # the job meets it before its first chunk
    missing: Callable[[], str] = lambda: ""  # why it cannot be tried here


FAULTS = {
    "worker killed": Fault(kill_worker, 12, 3),
    "second host killed": Fault(kill_second_host, 6, 2),
    "first host killed": Fault(kill_first_host, 4, 2),
    "scheduler killed": Fault(kill_scheduler, 6, 2),
    "client killed": Fault(kill_client, 8, 4),
    "network cut": Fault(cut_network, 5, 2),
    "worker stopped": Fault(stop_worker, 6, 2),
    "disk of the client full": Fault(fill_disk_of_client, 5, 3),
    "disk of a worker full": Fault(fill_disk_of_worker, 3, 1),
    "finished chunk damaged": Fault(damage_chunk, 5, 3),
    "clocks differ": Fault(
        set_clock, 2, 1, early=True, missing=lambda: "" if faketime() else "libfaketime is not installed"
    ),
}
SHARES = 60
