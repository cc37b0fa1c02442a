"""Two hosts on one machine: network namespaces with a cable (a veth pair) between them.

Each host has its own loopback, addresses and ports; files are shared, as by a network file system. Needs root
and `ip`.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

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
