"""Dask clusters on this machine, for tests: a scheduler and workers, each a process of its own."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nmt.work import cluster as connection
from nmt.work import dask_worker

QUIET = ["--no-dashboard"]
SECONDS = 300  # that a process may take to start on a busy machine


def start(program: str, *options: str, log: Path) -> "subprocess.Popen[bytes]":
    """`dask scheduler` or `dask worker`, without its shell."""
    with log.open("ab") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{program}", *QUIET, *options],
            stdout=stream,
            stderr=stream,
        )


def scheduler(folder: Path, *options: str) -> "subprocess.Popen[bytes]":
    """One that has written `folder`/scheduler.json."""
    place = folder / "scheduler.json"
    address = [] if options else ["--host", "127.0.0.1", "--port", "0"]
    process = start("scheduler", *address, *options, "--scheduler-file", str(place), log=folder / "log")
    end = time.monotonic() + SECONDS
    while not (place.exists() and place.read_bytes().rstrip().endswith(b"}")):  # whole
        assert process.poll() is None and time.monotonic() < end, (folder / "log").read_text()
        time.sleep(0.05)
    return process


def worker(folder: Path, *options: str) -> "subprocess.Popen[bytes]":
    """A worker with one thread, without a nanny that would start it anew."""
    return start(
        "worker", "--scheduler-file", str(folder / "scheduler.json"), "--nthreads", "1", "--no-nanny",
        "--local-directory", str(folder), *options, log=folder / "log",
    )  # fmt: skip


def wait_for(workers: int, place: str) -> None:
    """Until so many have joined. They import what jobs need, which takes long on a busy machine."""
    if workers:
        client = connection.connect(place)
        try:
            client.wait_for_workers(workers, timeout=SECONDS)
            client.run(dask_worker.this_host)
        finally:
            client.close()


@contextmanager
def cluster(folder: Path, workers: int = 2, options: Sequence[str] = ()) -> Iterator[str]:
    """Its scheduler.json."""
    folder.mkdir(exist_ok=True)
    running = [scheduler(folder, *options)]
    try:
        running += [worker(folder, *options[2:]) for _ in range(workers)]
        wait_for(workers, str(folder / "scheduler.json"))
        yield str(folder / "scheduler.json")
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()
