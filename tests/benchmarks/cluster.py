"""What a Dask cluster costs: time against worker processes, memory of client and scheduler.

    PYTHONPATH=. python tests/benchmarks/cluster.py time --workers 2 --chunks 200 --seconds 0.2
    PYTHONPATH=. python tests/benchmarks/cluster.py memory --chunks 10000

`time`: the same chunks by `processes` and by `dask`, in turn; a chunk waits, so that the figure is the time
that workers had nothing to do, also on a busy machine. `memory`: resident memory after 500 chunks, at each
doubling, and at the end.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from nmt.work.executors import Dask, ExecutorConfig, make, require_results
from tests.nmt.work import clusters

Chunk = list[str]
FIRST = 500  # chunks, after which memory is measured


def answer(chunk: Chunk, seconds: float) -> list[float]:
    """A number for each phrase."""
    time.sleep(seconds)
    return [float(len(phrase)) for phrase in chunk]


def begin(seconds: float) -> Callable[[Chunk], list[float]]:
    return partial(answer, seconds=seconds)


def chunk_of(number: int, pairs: int) -> Chunk:
    return [f"phrase {number} {row} of some words" for row in range(pairs)]


def memory(dask_scheduler: object = None) -> float:
    """Resident memory of this process, or of the scheduler that it runs in, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure_time(args: argparse.Namespace, place: str) -> None:
    """Seconds of both executors, and what dask takes more."""
    chunks = [chunk_of(number, args.pairs) for number in range(args.chunks)]
    found: dict[str, list[float]] = {"processes": [], "dask": []}
    for _ in range(args.repeats):
        for name, seconds in found.items():
            config = ExecutorConfig(name, args.workers, place if name == "dask" else "")
            function = partial(begin, args.seconds)
            with make(function(), function, config) as running:
                list(require_results(running.map(chunks[: args.workers])))  # workers have started
                start = time.perf_counter()
                list(require_results(running.map(chunks)))
                seconds.append(time.perf_counter() - start)
    processes, dask = min(found["processes"]), min(found["dask"])
    ideal = args.chunks * args.seconds / args.workers
    print(
        f"{args.workers} workers, {args.chunks} chunks of {args.seconds} s, {args.pairs} pairs: {ideal:.2f} s"
    )
    print(f"processes {processes:.2f} s, dask {dask:.2f} s: {dask / processes - 1:+.1%}")


def measure_memory(args: argparse.Namespace, place: str) -> None:
    """MB of client and scheduler while a job of many chunks runs."""
    tasks = (chunk_of(number, args.pairs) for number in range(args.chunks))
    function = partial(begin, 0.0)
    shown = FIRST
    with Dask(function(), function, ExecutorConfig(cluster=place)) as running:
        start = time.perf_counter()
        for number, _ in enumerate(require_results(running.map(tasks)), 1):
            if number in (shown, args.chunks):
                scheduler = running.client.run_on_scheduler(memory)
                seconds = time.perf_counter() - start
                found = f"client {memory():.0f} MB, scheduler {scheduler:.0f} MB"
                print(f"{number:6} chunks: {found}, {seconds:.0f} s")
                shown *= 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("time", "memory"))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=500, help="of a chunk")
    parser.add_argument("--seconds", type=float, default=0.2, help="that a chunk takes")
    parser.add_argument("--repeats", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, clusters.cluster(Path(folder) / "c", args.workers) as place:
        measure_time(args, place) if args.what == "time" else measure_memory(args, place)


if __name__ == "__main__":
    main()
