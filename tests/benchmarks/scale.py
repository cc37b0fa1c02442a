"""What a job costs on many workers: a model fitted to the table of cluster_hosts.py.

    python tests/benchmarks/scale.py OUT.tsv --pairs 1e8 --workers 1 10 100

CPU seconds of client, scheduler and workers are straight lines: so much for a job, and so much for a chunk.
docs/scale.md explains the model.
"""

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Line:
    """CPU seconds, or bytes."""

    job: float
    chunk: float

    def __call__(self, chunks: float) -> float:
        return self.job + chunks * self.chunk


@dataclass(frozen=True)
class Costs:
    """Of jobs on a cluster."""

    pairs: float  # of a chunk
    survey: Line  # CPU seconds of the client before the first chunk goes out
    client: Line  # all its CPU seconds, the survey's included
    scheduler: Line
    worker: Line  # the first number: for each worker, which loads the models
    moved: Line  # bytes between a worker and the scheduler


def fitted(rows: Rows, column: str) -> Line:
    """Least squares over all jobs."""
    slope, start = np.polyfit([float(row["chunks"]) for row in rows], [float(row[column]) for row in rows], 1)
    return Line(max(0.0, float(start)), float(slope))


def costs(rows: Rows) -> Costs:
    """ValueError where there are no jobs of one worker on a cluster, or all are of one size."""
    alone = [row for row in rows if row["by"] == "cluster" and row["workers"] == "1"]
    if len({row["chunks"] for row in alone}) < 2:
        raise ValueError("expected jobs of one worker on a cluster, with tables of at least two sizes")
    pairs = sum(float(row["pairs"]) for row in alone) / sum(float(row["chunks"]) for row in alone)
    return Costs(
        pairs,
        survey=fitted(alone, "survey"),
        client=fitted(alone, "client"),
        scheduler=fitted(alone, "scheduler"),
        worker=fitted(alone, "computing"),
        moved=fitted(alone, "moved"),
    )


@dataclass(frozen=True)
class Prediction:
    """Seconds."""

    total: float
    limit: str  # what takes the most of it


def predict(cost: Costs, pairs: float, workers: int, rate: float, bandwidth: float) -> Prediction:
    """A job of so many pairs. `rate`: pairs that a worker computes a second; `bandwidth`: bytes a second of
    the scheduler's network. The survey comes first; then client, scheduler, network and workers work at the
    same time, and the slowest of them decides."""
    chunks = pairs / cost.pairs
    parts = {
        "workers": cost.worker.job + pairs / (rate * workers),
        "client": cost.client.job + chunks * (cost.client.chunk - cost.survey.chunk),
        "scheduler": cost.scheduler(chunks),
        "network": 2 * cost.moved(chunks) / bandwidth,  # to the scheduler, and from it to the client
    }
    limit = max(parts, key=parts.__getitem__)
    return Prediction(cost.survey(chunks) + parts[limit], limit)


def most_workers(cost: Costs, rate: float) -> float:
    """Workers that keep the client, or the scheduler, busy all the time."""
    return (cost.pairs / rate) / max(cost.client.chunk - cost.survey.chunk, cost.scheduler.chunk)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table", type=Path, metavar="OUT.tsv")
    parser.add_argument("--pairs", type=float, default=1e8)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 10, 30, 100, 300, 1000])
    parser.add_argument(
        "--rate", type=float, help="pairs a second of a worker, unless it is the measured one"
    )
    parser.add_argument("--bandwidth", type=float, default=1.25e8, help="bytes a second of the network")
    args = parser.parse_args()
    with args.table.open(newline="") as stream:
        cost = costs(list(csv.DictReader(stream, delimiter="\t")))
    rate = args.rate or cost.pairs / cost.worker.chunk
    for name in ("survey", "client", "scheduler", "worker"):
        line: Line = getattr(cost, name)
        print(f"{name:<10} {line.job:8.3f} CPU s a job {1000 * line.chunk:10.3f} ms a chunk")
    print(
        f"{'network':<10} {cost.moved.job:8.0f} bytes a job {cost.moved.chunk / cost.pairs:8.1f} bytes a pair"
    )
    print(f"\n{rate:,.0f} pairs a second of a worker; {most_workers(cost, rate):,.0f} workers are the most")
    print(f"\n{args.pairs:,.0f} pairs\nworkers     hours   speedup  limit")
    one = predict(cost, args.pairs, 1, rate, args.bandwidth)
    for workers in args.workers:
        found = predict(cost, args.pairs, workers, rate, args.bandwidth)
        print(f"{workers:>7} {found.total / 3600:9.2f} {one.total / found.total:9.1f}  {found.limit}")


if __name__ == "__main__":
    main()
