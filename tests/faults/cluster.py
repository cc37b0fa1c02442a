"""A Dask cluster on two hosts: the scheduler on the first, a worker on each, connected by TLS.

Its programs are supervised, as they would be by systemd with Restart=always: what has ended is started again.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.hosts import Host, small_disk, two_hosts
from tests.nmt.work import certificates

PORT = 8786
DISK = "20M"  # of each host, for workers


@dataclass
class Program:
    """A program that is started again where it has ended, unless it is not `wanted`."""

    host: Host
    command: Sequence[str]
    log: Path
    env: Mapping[str, str]
    wanted: bool = True
    starts: int = 0
    process: "subprocess.Popen[bytes] | None" = None

    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def supervise(self) -> None:
        if self.wanted and not self.runs():
            self.process = self.host.start(self.command, self.log, self.env)
            self.starts += 1

    def kill(self) -> None:
        """kill -9; not of the processes that it started."""
        if self.process:
            self.process.kill()
            self.process.wait()


@dataclass
class Cluster:
    """What faults and works ask for."""

    folder: Path
    hosts: tuple[Host, Host]
    env: dict[str, str]
    scheduler: Program = field(init=False)
    workers: list[Program] = field(init=False)

    def __post_init__(self) -> None:
        first = self.hosts[0]
        listen = ["--host", f"tls://{first.address}", "--port", str(PORT)]
        self.scheduler = self.program(first, "scheduler", *listen)
        self.workers = [self.worker(host) for host in self.hosts]

    @property
    def address(self) -> str:
        return f"tls://{self.hosts[0].address}:{PORT}"

    def program(self, host: Host, name: str, *options: str) -> Program:
        """`dask scheduler` or `dask worker`."""
        command = [sys.executable, "-m", f"distributed.cli.dask_{name}", "--no-dashboard", *options]
        return Program(host, command, self.folder / f"{name}-{host.address}.log", self.env)

    def worker(self, host: Host) -> Program:
        """One worker with one thread, and the nanny that starts it again."""
        scratch = str(self.scratch(host))
        return self.program(host, "worker", self.address, "--nthreads", "1", "--local-directory", scratch)

    def scratch(self, host: Host) -> Path:
        """The folder of a host's own disk."""
        return self.folder / f"disk-{host.address}"

    def supervise(self) -> None:
        for program in (self.scheduler, *self.workers):
            program.supervise()

    def wait(self, seconds: float, client: "subprocess.Popen[bytes] | None" = None) -> None:
        """Supervise for so long, at most until the client ends."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and (client is None or client.poll() is None):
            self.supervise()
            time.sleep(0.1)

    def client(self, command: Sequence[object], log: Path) -> "subprocess.Popen[bytes]":
        """A command on the first host, where the scheduler is."""
        return self.hosts[0].start(command, log, self.env)


def environment(folder: Path) -> dict[str, str]:
    """New certificates in a folder, and the variables by which Dask finds them."""
    folder.mkdir()
    certificates.authority(folder)
    certificates.host(folder)
    found = {"OMP_NUM_THREADS": "1"}
    for name, value in certificates.configuration(folder).items():
        found["DASK_" + name.upper().replace(".", "__").replace("-", "_")] = str(value)
    return found


@contextmanager
def cluster(folder: Path, workers: Sequence[int] = (0, 1)) -> Iterator[Cluster]:
    """Two hosts, each with a small disk, on which the programs are being started: a worker on those that
    `workers` names."""
    with ExitStack() as stack:
        hosts = stack.enter_context(two_hosts())
        running = Cluster(folder, hosts, environment(folder / "tls"))
        for host in hosts:
            stack.enter_context(small_disk(running.scratch(host), DISK))
        running.workers = [running.workers[number] for number in workers]
        running.supervise()
        yield running
