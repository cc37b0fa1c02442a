"""Jobs that meet faults: started, hurt at random moments, started again with --resume, and compared."""

import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from tests.faults.cluster import Cluster
from tests.faults.faults import Fault, Scene
from tests.faults.report import Row, distinct
from tests.faults.works import Work

LIMIT = 600  # seconds of a start, after which it hangs
MOST_STARTS = 12  # of a job


@dataclass
class Trial:
    """Jobs of one work that meet one kind of fault."""

    cluster: Cluster
    work: Work
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
