"""Long commands on a cluster of two hosts, whose parts fail while they work: `make test-faults`.

FAULTS=n makes n faults in all (60), FAULTS_SEED draws other moments (1). The report is in build/faults.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from tests.faults import jobs
from tests.faults.faults import FAULTS, SHARES
from tests.faults.hosts import Cluster, cluster, missing, small_disk
from tests.faults.jobs import Trial, lines_of
from tests.faults.works import WORKS, ScoreTable

pytestmark = pytest.mark.faults
COUNT = int(os.environ.get("FAULTS", SHARES))
SEED = os.environ.get("FAULTS_SEED", "1")
DISK = "200M"  # for outputs


@dataclass
class Site:
    """What all trials share."""

    cluster: Cluster
    disk: Path
    works: dict[str, ScoreTable] = field(default_factory=dict)

    def work(self, name: str) -> ScoreTable:
        """Prepared once, with a job that nothing happens to."""
        if name not in self.works:
            work, log = WORKS[name](self.cluster.folder / name), self.cluster.folder / f"{name}.log"
            output = self.disk / "undisturbed"
            client = self.cluster.client(work.command(self.cluster.address, output), log)
            self.cluster.wait(600, client)
            assert client.poll() == 0, log.read_text()
            assert output.read_bytes() == work.expected.read_bytes()
            output.unlink()
            assert not lines_of(log)  # so that all lines that users see are about faults
            self.works[name] = work
        return self.works[name]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if why := missing() or ("" if shutil.which("openssl") else "certificates are made by openssl"):
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("faults")
    jobs.begin_report()
    with small_disk(folder / "disk", DISK) as disk, cluster(folder) as running:
        yield Site(running, disk)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", WORKS)
def test_nothing_is_lost(site: Site, name: str, fault: str) -> None:
    kind = FAULTS[fault]
    if why := kind.missing():
        pytest.skip(why)
    work = site.work(name)
    log = site.cluster.folder / f"{name} {fault}.log"
    rng = Random(f"{SEED} {name} {fault}")
    trial = Trial(site.cluster, work, kind, rng, site.disk, jobs.Row(name, fault), log)
    row = trial.run(max(1, round(COUNT * kind.share / SHARES / len(WORKS))))
    jobs.add_row(row)
    assert row.injected, "all jobs ended before a fault came"
    assert (row.finished, row.bytes_different, row.lines_lost) == (row.jobs, 0, 0), "\n".join(row.seen)
