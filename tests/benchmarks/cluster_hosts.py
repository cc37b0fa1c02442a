"""smt-score-table by processes and by a cluster, on one host and on two: pairs a second, CPU seconds of the
client, the scheduler and the workers, bytes over the network.

    python -m tests.benchmarks.cluster_hosts OUT.tsv [--table phrase-table.gz --model RUN]

Hosts are network namespaces (needs root); messages go by TLS. scale.py fits a cost model to the table.
"""

import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path

from nmt.io import files
from smt_bridge.tables import score
from smt_bridge.tables.score import CHUNK
from tests.conftest import BIN
from tests.faults.hosts import Cluster
from tests.faults.hosts import Program
from tests.faults.hosts import cluster
from tests.faults.faults import workers_of
from tests.faults.hosts import ip
from tests.faults.works import train
from tests.faults.works import write_table

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Measurement:
    """One job."""

    round: int
    by: str  # processes or cluster
    workers: int
    chunks: int
    pairs: int
    seconds: float  # of the whole command
    client: float  # CPU seconds; with processes, those of the workers are among them
    scheduler: float
    computing: float  # CPU seconds of all workers
    survey: float  # CPU seconds of the client's first reading of the table
    moved: int  # bytes over the cable


def cpu_of(process: int) -> float:
    """CPU seconds that a process has used."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


def workers(running: Cluster) -> list[int]:
    """The processes of all workers, once each is there."""
    while True:
        ready = [b"Registered to" in program.log.read_bytes() for program in running.workers]
        if all(ready):
            return [worker for program in running.workers for worker in workers_of(pid(program))]
        running.wait(0.5)


def pid(program: Program) -> int:
    assert program.process
    return program.process.pid


def moved(running: Cluster) -> int:
    (link,) = json.loads(ip("-n", running.hosts[1].name, "-s", "-j", "link", "show", "cable"))
    return int(link["stats64"]["rx"]["bytes"] + link["stats64"]["tx"]["bytes"])


def children() -> float:
    """CPU seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass
class Place:
    """Where jobs are computed."""

    by: str
    workers: int
    run: Callable[[list[str], Path], int]  # exit status of a command
    cpu: Callable[[], tuple[float, float, int]]  # scheduler, workers, bytes; so far


@contextmanager
def processes(folder: Path, count: int) -> Iterator[Place]:
    def run(words: list[str], log: Path) -> int:
        with log.open("ab") as stream:
            return subprocess.call([*words, "--workers", str(count)], stderr=stream)

    yield Place("processes", count, run, lambda: (0.0, 0.0, 0))


@contextmanager
def hosts(folder: Path, count: int) -> Iterator[Place]:
    """One worker is on the second host, so that all it gets goes over the cable."""
    folder.mkdir()
    with cluster(folder, (1,) if count == 1 else (0, 1)) as running:
        found = workers(running)

        def cpu() -> tuple[float, float, int]:
            return cpu_of(pid(running.scheduler)), sum(map(cpu_of, found)), moved(running)

        def run(words: list[str], log: Path) -> int:
            return running.client([*words, "--cluster", running.address], log).wait()

        yield Place("cluster", count, run, cpu)


def measure(place: Place, turn: int, table: Path, model: Path, folder: Path) -> Measurement:
    """One job in a place."""
    begun = time.process_time()
    survey = score.read_survey(str(table))
    surveyed = time.process_time() - begun
    output, log = folder / "out", folder / "log"
    words = [
        str(BIN / "smt-score-table"), str(table), "--feature", f"translation={model}", "--threads", "1",
        "--output", str(output), "--quiet",
    ]  # fmt: skip
    before, used, clock = place.cpu(), children(), time.monotonic()
    assert place.run(words, log) == 0, log.read_text()
    seconds, client, after = time.monotonic() - clock, children() - used, place.cpu()
    scheduler, computing, sent = (now - then for now, then in zip(after, before, strict=True))
    output.unlink()
    return Measurement(
        turn, place.by, place.workers, survey.chunks, survey.pairs, seconds, client, scheduler, computing,
        surveyed, int(sent),
    )  # fmt: skip


def report(found: list[Measurement]) -> None:
    """Ratios of medians, for the largest table."""
    most = max(one.chunks for one in found)

    def seconds(by: str, count: int) -> float:
        same = [one.seconds for one in found if (one.by, one.workers, one.chunks) == (by, count, most)]
        return statistics.median(same)

    print(f"2 workers on 2 hosts against 1: {seconds('cluster', 1) / seconds('cluster', 2):.2f}x")
    for count in (1, 2):
        overhead = seconds("cluster", count) / seconds("processes", count) - 1
        print(f"cluster of {count} against as many processes: {100 * overhead:+.1f}% wall")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("output", type=Path, metavar="OUT.tsv")
    parser.add_argument("--table", help="a sorted phrase table, instead of a generated one")
    parser.add_argument("--model", type=Path, help="a translator for it, instead of one of --units")
    parser.add_argument("--units", type=int, default=1000, help="of a model that has seen a few sentences")
    parser.add_argument("--chunks", type=int, nargs="+", default=[6, 36], help="of each measured table")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    found: list[Measurement] = []
    with tempfile.TemporaryDirectory() as name, args.output.open("w", newline="") as stream:
        folder = Path(name)
        model = args.model.absolute() if args.model else folder / "run"
        if not (args.table and args.model):
            train(folder, args.units)
        for count in args.chunks:
            if args.table:
                files.write_text(
                    folder / f"table{count}", islice(files.read_lines(args.table), count * CHUNK)
                )
            else:
                write_table(folder / f"table{count}", folder, count)
        out = csv.DictWriter(
            stream, [one.name for one in fields(Measurement)], delimiter="\t", lineterminator="\n"
        )
        out.writeheader()
        for turn in range(args.rounds):
            for kind in (processes, hosts):
                for count in (1, 2):
                    with kind(folder / f"{kind.__name__}{count}-{turn}", count) as place:
                        for size in args.chunks:
                            found.append(measure(place, turn, folder / f"table{size}", model, folder))
                            out.writerow(asdict(found[-1]))
                            stream.flush()
    report(found)


if __name__ == "__main__":
    main()
