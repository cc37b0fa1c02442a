"""Trainings under torchrun whose hosts and processes are killed. Hosts are agents of torchrun, each with its
processes; the scenarios of tests/faults use them too."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

# Short waits: a host is lost 3 s after its last sign of life, and latecomers are waited for that long.
NEW_STORES = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
WAITS = "last_call_timeout=3,keep_alive_interval=1,keep_alive_max_attempt=3"

# A plugin: kill -9 of the process of rank FALL_RANK before update FALL_AT + 1 of the first start, with
# FALL_HOST also of its agent, as when a host loses its power.
FALLING = """
import os, signal
from nmt.training import loop

plain = loop.update

def update(job, *given):
    if (
        os.environ.get("FALL_AT") == str(job.progress.step)
        and os.environ["FALL_RANK"] == os.environ["RANK"]
        and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    ):
        if os.environ.get("FALL_HOST"):
            os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(job, *given)

loop.update = update
"""


def falling(folder: Path, step: int, rank: int, host: bool = False) -> dict[str, str]:
    """The environment in which a process falls after an update, with `host` its whole host."""
    (folder / "falling.py").write_text(FALLING, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    given = {"PYTHONPATH": path, "NMT_PLUGINS": "falling", "FALL_AT": f"{step}", "FALL_RANK": f"{rank}"}
    return given | ({"FALL_HOST": "1"} if host else {})


def torchrun(*given: object) -> list[str]:
    """The command line of torchrun."""
    return [sys.executable, "-m", "torch.distributed.run", *map(str, given)]


@dataclass
class Host:
    """An agent of torchrun and the processes that it started."""

    agent: subprocess.Popen[str]
    log: Path  # its messages, and those of its processes

    def processes(self) -> list[int]:
        """Their process ids."""
        with suppress(OSError):
            children = Path(f"/proc/{self.agent.pid}/task/{self.agent.pid}/children").read_text()
            return [int(number) for number in children.split()]
        return []

    def kill(self) -> None:
        """kill -9 of the agent, then of all its processes: nobody starts them again."""
        processes = self.processes()
        self.agent.kill()
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def kill_process(self, number: int = 0) -> bool:
        """kill -9 of one of its processes, which the agent notices. False where there is none yet."""
        with suppress(IndexError, ProcessLookupError):
            os.kill(self.processes()[number], signal.SIGKILL)
            return True
        return False

    def wait(self, seconds: float) -> int:
        """The exit status of the agent."""
        return self.agent.wait(seconds)

    def messages(self) -> str:
        """What was written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")


@dataclass
class Hosts:
    """The hosts of a training that may have from 1 to `most` of them, over a rendezvous at `port` of
    `address`."""

    folder: Path  # for their messages
    port: int
    most: int = 2
    address: str = "127.0.0.1"
    hosts: list[Host] = field(default_factory=list)

    def start(
        self,
        *given: object,
        rendezvous: bool,
        address: str = "127.0.0.1",
        env: Mapping[str, str] | None = None,
        prefix: tuple[str, ...] = (),
        restarts: int = 3,
    ) -> Host:
        """A host that trains; `given`: the arguments of nmt-train. `rendezvous`: it is the one that all
        others talk to. `address`: its own; `prefix`: what starts its command elsewhere, as `ip netns exec`
        does."""
        line = torchrun(
            "--nnodes", f"1:{self.most}", "--nproc-per-node", 1, "--max-restarts", restarts,
            "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{self.address}:{self.port}", "--rdzv-id", "test",
            "--rdzv-conf", f"is_host={int(rendezvous)},{WAITS}", "--local-addr", address,
            "-m", "nmt.cli.train", *given,
        )  # fmt: skip
        log = self.folder / f"host-{len(self.hosts)}.log"
        with open(log, "w", encoding="utf-8") as stream:
            agent = subprocess.Popen(
                [*prefix, *line],
                stdout=stream,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, **NEW_STORES, **(env or {})},
                start_new_session=True,
            )
        self.hosts.append(Host(agent, log))
        return self.hosts[-1]

    def messages(self) -> str:
        """What all of them wrote so far."""
        return "".join(host.messages() for host in self.hosts)

    def updates(self) -> int:
        """Lines on updates in their messages."""
        return self.messages().count(", update ")

    def trains(self, before: int) -> bool:
        """Are there more of them than before?"""
        return self.updates() > before


@contextmanager
def hosts(folder: Path, port: int, most: int = 2, address: str = "127.0.0.1") -> Iterator[Hosts]:
    """Hosts that are all gone at the end."""
    found = Hosts(folder, port, most, address)
    try:
        yield found
    finally:
        for host in found.hosts:
            host.kill()
            host.agent.wait()


@dataclass
class Outcome:
    """What became of a training whose processes and hosts were killed."""

    status: int  # of the host of the rendezvous
    kills: list[str]  # what was killed, and after how many seconds
    messages: str  # of all hosts

    @property
    def starts(self) -> int:
        """How often it went on from a save."""
        return self.messages.count("resuming from update ")


def killed_at_random(
    training: Hosts, given: Sequence[object], seed: int, kills: int, limit: float = 1200.0, **places: object
) -> Outcome:
    """Train on two hosts; at random moments kill -9 a process of either, or the second host with all that
    runs on it, which another one replaces. The host of the rendezvous stays: its loss ends the training.

    `places`: more arguments of `Hosts.start` for the second host, as `prefix` and `address`. Fewer are killed
    where the training is over before, or logs no updates.
    """
    rng, began, done, seen = random.Random(seed), time.monotonic(), list[str](), 0
    first = training.start(*given, rendezvous=True, restarts=9 * kills)

    def replace() -> Host:
        return training.start(*given, rendezvous=False, restarts=9 * kills, **places)  # type: ignore[arg-type]

    second = replace()
    while len(done) < kills and until(partial(training.trains, seen), first, limit):
        time.sleep(rng.uniform(0, 3))
        seen = training.updates()
        what = rng.choice(["a process of the first host", "a process of the second host", "the second host"])
        if what == "the second host":
            second.kill()
            second.agent.wait()
        elif not (first if "first" in what else second).kill_process():
            continue
        done.append(f"{what} after {time.monotonic() - began:.1f} s")
        if what == "the second host" and until(partial(training.trains, seen), first, limit):
            second = replace()
    return Outcome(first.wait(limit), done, training.messages())


def until(true: Callable[[], bool], host: Host, limit: float) -> bool:
    """Wait for something; false where the host ends before, or after so many seconds."""
    end = time.monotonic() + limit
    while not true():
        if host.agent.poll() is not None or time.monotonic() > end:
            return False
        time.sleep(0.1)
    return host.agent.poll() is None
