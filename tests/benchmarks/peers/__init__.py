"""Measure our commands beside those of other toolkits: each peer in an environment of its own, both in turn.

A script of this folder compares with one peer and prints a row for each job: CPU seconds and memory of
either, and the ratio. Run it by hand: `.venv/bin/python -m tests.benchmarks.peers.NAME`.
"""

import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENTS = ROOT / "build/peers"  # one virtual environment for each peer, ignored by git
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


@dataclass
class Cost:
    """What a command took, with the processes that it started and waited for."""

    cpu: float  # seconds, user and system
    wall: float  # seconds
    memory: float  # MiB, the largest process


def environment(name: str, *packages: str, options: Sequence[str] = ()) -> Path:
    """The interpreter of the peer's environment, which is made at the first call.

    packages: for pip, in the order of installation; options: of pip, such as --no-deps.
    """
    folder = ENVIRONMENTS / name
    python = folder / "bin/python"
    done = folder / "packages.txt"
    wanted = "\n".join([*options, *packages])
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *options, *packages], check=True)
        done.write_text(wanted, encoding="utf-8")
    return python


def ours(command: str) -> list[str]:
    """A command of this toolkit, from the environment that runs the script."""
    name, *arguments = shlex.split(command)
    return [str(Path(sys.executable).parent / name), *arguments]


def program(name: str, source: str) -> str | None:
    """A compiled peer on PATH; None, with a message that says where it comes from, if there is none."""
    path = shutil.which(name)
    if path is None:
        print(f"{name}: not on PATH, skipped (from {source})")
    return path


def cost(command: Sequence[str | Path], folder: Path, env: Mapping[str, str] = ONE_THREAD) -> Cost:
    """Run a command in a folder. SystemExit with its messages if it fails. Bytecode is written and read, as
    that of installed packages is."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with open(folder / "messages.txt", "w+", encoding="utf-8") as messages:
        start = time.perf_counter()
        process = subprocess.Popen(
            list(map(str, command)), cwd=folder, env={**inherited, **env}, stdout=messages, stderr=messages
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        if process.returncode:
            messages.seek(0)
            raise SystemExit(f"{shlex.join(map(str, command))}:\n{messages.read()[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def compare(
    job: str, variants: Mapping[str, Sequence[str | Path]], folder: Path, rounds: int = 5
) -> dict[str, Cost]:
    """Run the variants in turn and print the medians and the ratio of each to the first, the peer."""
    costs: dict[str, list[Cost]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, command in variants.items():
            costs[name].append(cost(command, folder))
    medians = {
        name: Cost(
            *(statistics.median(getattr(run, key) for run in runs) for key in ("cpu", "wall", "memory"))
        )
        for name, runs in costs.items()
    }
    first = next(iter(medians.values()))
    print(f"\n{job}   (medians of {rounds} in turn)")
    for name, median in medians.items():
        print(
            f"  {name:<44} {median.cpu:8.2f} CPU s {median.wall:8.2f} s wall {median.memory:7.0f} MiB"
            f"   {median.cpu / first.cpu:6.2f}x the CPU time of the first"
        )
    return medians
