"""Jobs that meet faults: started, hurt at random moments, started again with --resume, and compared; and the
report of that."""

import csv
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from random import Random

import numpy as np

from tests.conftest import ROOT
from tests.faults.faults import Fault, Scene
from tests.faults.hosts import Cluster
from tests.faults.works import ScoreTable

# ---- report ------------------------------------------------------------------------------------------------
# What the faults did, as a table: faults.tsv, and faults.md with what users saw.


SEEN = "seen"  # separates lines in the last column


@dataclass
class Row:
    """The jobs of one work that met one fault."""

    work: str
    fault: str
    injected: int = 0  # faults
    jobs: int = 0
    starts: int = 0  # of the command, for all jobs
    finished: int = 0  # jobs
    bytes_different: int = 0  # from those of one machine, over all finished jobs
    lines_lost: int = 0
    seconds: int = 0
    seen: list[str] = field(default_factory=list)  # distinct lines on stderr


NAMES = [one.name for one in fields(Row)]


def report_folder() -> Path:
    return Path(os.environ.get("FAULTS_REPORT", ROOT / "build" / "faults"))


def begin_report() -> None:
    """A new report."""
    report_folder().mkdir(parents=True, exist_ok=True)
    with (report_folder() / "faults.tsv").open("w", encoding="utf-8", newline="") as stream:
        writer(stream).writeheader()
    write_page([])


def add_row(row: Row) -> None:
    """One more row, in both files."""
    with (report_folder() / "faults.tsv").open("a", encoding="utf-8", newline="") as stream:
        writer(stream).writerow({**asdict(row), SEEN: " | ".join(row.seen)})
    with (report_folder() / "faults.tsv").open(encoding="utf-8", newline="") as stream:
        write_page(list(csv.DictReader(stream, delimiter="\t")))


def writer(stream: "csv.SupportsWrite[str]") -> "csv.DictWriter[str]":  # type: ignore[name-defined]
    return csv.DictWriter(stream, NAMES, delimiter="\t", lineterminator="\n")


def write_page(rows: list[dict[str, str]]) -> None:
    names = [name for name in NAMES if name != SEEN]
    numbers = names[2:]
    total = ["all", "", *(str(sum(int(row[name]) for row in rows)) for name in numbers)]
    head = [name.replace("_", " ") for name in names]
    table = [head, ["---"] * len(names), *([row[name] for name in names] for row in rows), total]
    body = ["| " + " | ".join(cells) + " |" for cells in table]
    lines = ["# Faults", "", *body, "", "## What users saw", ""]
    for row in rows:
        seen = [f"      {line}" for line in row[SEEN].split(" | ") if line]
        lines += [f"- {row['work']}, {row['fault']}" + (":" if seen else ": nothing"), "", *seen, ""]
    (report_folder() / "faults.md").write_text("\n".join(lines), encoding="utf-8")


def distinct(lines: Iterable[str]) -> list[str]:
    """Each line once; numbers do not matter."""
    found: dict[str, str] = {}
    for line in lines:
        found.setdefault(without_numbers(line), line)
    return list(found.values())


def without_numbers(line: str) -> str:
    return " ".join("".join(" " if one in "0123456789.," else one for one in line).split())


# ---- jobs --------------------------------------------------------------------------------------------------


LIMIT = 600  # seconds of a start, after which it hangs
MOST_STARTS = 12  # of a job


@dataclass
class Trial:
    """Jobs of one work that meet one kind of fault."""

    cluster: Cluster
    work: ScoreTable
    fault: Fault
    rng: Random
    disk: Path  # for outputs
    row: Row
    log: Path  # what the commands print

    def run(self, faults: int) -> Row:
        """Jobs until so many faults have happened, or a job has not ended well."""
        begun = time.monotonic()
        most = 2 * faults  # jobs; now and then one ends before the fault comes
        while self.row.injected < faults and self.row.finished == self.row.jobs < most:
            self.row.jobs += 1
            self.job(min(self.fault.per_job, faults - self.row.injected))
        self.row.seconds = round(time.monotonic() - begun)
        self.row.seen = distinct(lines_of(self.log))
        return self.row

    def job(self, faults: int) -> None:
        output = self.disk / f"output-{self.row.jobs}"
        late = 0 if self.fault.early else self.work.chunks - 1
        moments = sorted(self.rng.randint(0, late) for _ in range(faults))
        for number in range(MOST_STARTS):
            self.row.starts += 1
            command = [
                *self.work.command(self.cluster.address, output),
                *(self.work.resume if number else []),
            ]
            scene = Scene(self.cluster, self.work, output, self.cluster.client(command, self.log), self.rng)
            status = self.follow(scene, moments)
            if status == 0:
                self.row.finished += 1
                self.compare(output)
            if status in (0, None):
                return

    def follow(self, scene: Scene, moments: list[int]) -> int | None:
        """One start of the command, and the faults that it meets; its exit status, None if it hangs."""
        end = time.monotonic() + LIMIT
        while scene.client.poll() is None:
            if moments and self.work.finished(scene.output) >= moments[0]:
                moments.pop(0)
                scene.wait(self.rng.uniform(0, 1))
                if scene.client.poll() is None:
                    self.row.injected += self.fault.inject(scene)
            scene.wait(0.2)
            if time.monotonic() > end and scene.client.poll() is None:
                scene.client.kill()
                scene.client.wait()
                with self.log.open("a") as stream:
                    stream.write(f"(killed after {LIMIT} s)\n")
                return None
        return scene.client.returncode

    def compare(self, output: Path) -> None:
        found, expected = (path.read_bytes() for path in (output, self.work.expected))
        self.row.lines_lost += max(0, expected.count(b"\n") - found.count(b"\n"))
        self.row.bytes_different += different(found, expected)
        output.unlink()


def different(found: bytes, expected: bytes) -> int:
    """Places where two texts differ; what one has more, too."""
    both = min(len(found), len(expected))
    a, b = (np.frombuffer(text[:both], np.uint8) for text in (found, expected))
    return int((a != b).sum()) + abs(len(found) - len(expected))


def lines_of(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []
