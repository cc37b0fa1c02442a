"""Two hosts on one machine, and a Dask cluster on them. The hosts are network namespaces with a cable (a veth
pair) between them.

Each host has its own loopback, addresses and ports; files are shared, as by a network file system. Needs root
and `ip`.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.nmt.work import certificates

# ---- hosts -------------------------------------------------------------------------------------------------


SECONDS = 60  # that processes may take to end


def missing() -> str:
    """Why there can be no hosts here; empty where there can."""
    if os.geteuid() != 0:
        return "hosts are network namespaces, which need root"
    if not shutil.which("ip"):
        return "hosts are network namespaces, which need `ip` (iproute2)"
    made = subprocess.run(["ip", "netns", "add", f"nmt-try-{os.getpid()}"], capture_output=True, check=False)
    if made.returncode:
        return f"no network namespaces here: {made.stderr.decode().strip()}"
    ip("netns", "del", f"nmt-try-{os.getpid()}")
    return ""


def ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


@dataclass
class Host:
    """A network namespace."""

    name: str
    address: str
    started: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def start(
        self, command: Sequence[object], log: Path, env: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        """A program on this host; what it prints is added to `log`. It is the process itself that is
        returned: `ip netns exec` becomes the program."""
        with log.open("ab") as stream:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.name, *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env={**os.environ, **(env or {})},
            )
        self.started = [*(one for one in self.started if one.poll() is None), process]
        return process

    def processes(self) -> list[int]:
        """The ids of all processes on it."""
        return [int(word) for word in ip("netns", "pids", self.name).split()]

    def kill(self) -> None:
        """kill -9 of all its processes, as if its power failed."""
        end = time.monotonic() + SECONDS
        while found := self.processes():
            for process in found:
                signal_to(process, signal.SIGKILL)
            assert time.monotonic() < end, f"processes {found} do not end"
            time.sleep(0.05)
        for program in self.started:
            program.wait()

    def cut(self) -> None:
        """Unplug its cable: what is sent is lost, and nobody is told."""
        ip("-n", self.name, "link", "set", "cable", "down")

    def mend(self) -> None:
        """Plug it in again."""
        ip("-n", self.name, "link", "set", "cable", "up")


def signal_to(process: int, number: signal.Signals) -> None:
    """Send a signal, unless the process has ended."""
    with suppress(ProcessLookupError):
        os.kill(process, number)


@contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """Two hosts with a cable; whatever runs on them ends with the block."""
    hosts = [Host(f"nmt-{os.getpid()}-{number}", f"10.77.0.{number}") for number in (1, 2)]
    made = []
    try:
        for host in hosts:
            ip("netns", "add", host.name)
            made.append(host)
            ip("-n", host.name, "link", "set", "lo", "up")
        first, second = hosts
        ip("-n", first.name, "link", "add", "cable", "type", "veth", "peer", "cable", "netns", second.name)
        for host in hosts:
            ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", "cable")
            host.mend()
        yield first, second
    finally:
        for host in made:
            host.kill()
            ip("netns", "del", host.name)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of its own (a tmpfs) of so many bytes, as `mount` writes them, at a folder."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


# ---- cluster -----------------------------------------------------------------------------------------------
# The scheduler on the first host, a worker on each, connected by TLS.
#
# Its programs are supervised, as by systemd with Restart=always: what has ended is started again.


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
