"""Addresses of clusters, and whose workers may take part."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError, UserError
from nmt.work import cluster, slurm
from nmt.work.cluster import Host
from nmt.work.slurm import SlurmConfig

HERE = Host("1.0", "EPYC, torch 2")


@pytest.mark.parametrize(
    ("where", "address"),
    [
        ("127.0.0.1:8786", "tcp://127.0.0.1:8786"),
        ("localhost:1", "tcp://localhost:1"),
        ("tcp://[::1]:8786", "tcp://[::1]:8786"),
        ("tls://far.example:8786", "tls://far.example:8786"),
    ],
)
def test_addresses(where: str, address: str) -> None:
    assert cluster.parse_address(where) == address
    cluster.check_safe(address)


def test_scheduler_files(tmp_path: Path) -> None:
    place = tmp_path / "scheduler.json"
    place.write_text('{"address": "tcp://10.0.0.1:8786"}')
    assert cluster.parse_address(str(place)) == "tcp://10.0.0.1:8786"
    for text in ("{", "[]", "{}", '{"address": 1}', '{"address": "ftp://a:1"}'):
        place.write_text(text)
        with pytest.raises(ConfigError, match=r"^--cluster .*(scheduler\.json)"):
            cluster.parse_address(str(place))
    with pytest.raises(ConfigError, match="not a scheduler"):
        cluster.parse_address(str(tmp_path / "none.json"))


@pytest.mark.parametrize("where", ["far.example", "http://a:1", "a:b", "", "tls://:1", "tcp://[::1"])
def test_what_is_no_address(where: str) -> None:
    with pytest.raises(ConfigError, match="expected tls://HOST:PORT"):
        cluster.parse_address(where)


@pytest.mark.parametrize("host", ["10.0.0.1", "far.example", "0.0.0.0", "[::]", "127.0.0.1.far.example"])
def test_without_tls_only_the_loopback(host: str) -> None:
    with pytest.raises(ConfigError, match="without TLS, anybody who reaches"):
        cluster.check_safe(f"tcp://{host}:8786")


def test_another_version_is_refused_whatever_is_mixed() -> None:
    for mixed in (False, True):
        with pytest.raises(ConfigError, match=r"worker w: has version 0\.9 of nmt-smt, not 1\.0"):
            cluster.check_workers({"w": Host("0.9", HERE.processor)}, HERE, mixed)


def test_another_processor_is_refused_unless_workers_are_mixed(caplog: pytest.LogCaptureFixture) -> None:
    found = {"a": HERE, "b": Host("1.0", "Xeon, torch 2")}
    with pytest.raises(ConfigError, match="worker b: computes on Xeon, torch 2, not EPYC, torch 2"):
        cluster.check_workers(found, HERE, False)
    cluster.check_workers(found, HERE, True)
    assert [row.getMessage() for row in caplog.records] == [
        "worker b: computes on Xeon, torch 2, not EPYC, torch 2"
    ]


def test_workers_that_cannot_be_asked() -> None:
    with pytest.raises(ConfigError, match=r"worker w: nmt-smt 1\.0 is not installed there"):
        cluster.check_workers({"w": ModuleNotFoundError("No module named 'nmt'")}, HERE, False)
    with pytest.raises(ConfigError, match="worker w: gone"):
        cluster.check_workers({"w": OSError("gone")}, HERE, False)


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.work.cluster.SECONDS", 1)
    with pytest.raises(UserError, match=r"--cluster 127\.0\.0\.1:1: no scheduler answers within 1 s"):
        cluster.connect("127.0.0.1:1")
    with pytest.raises(UserError, match=r"--cluster tls://127\.0\.0\.1:1: no certificates: set distributed"):
        cluster.connect("tls://127.0.0.1:1")


# ---- Slurm jobs --------------------------------------------------------------------------------------------

TEXT = """\
jobs: 4
cores: 16
memory: 64GB
walltime: "12:00:00"
queue: long
account: mt
directives: ["--gres=gpu:1"]
prologue:
  - module load python/3.11
  - source ~/venv/bin/activate
"""


def written(folder: Path, text: str) -> str:
    (folder / "slurm.yaml").write_text(text)
    return str(folder / "slurm.yaml")


def test_the_job_script(tmp_path: Path) -> None:
    jobqueue = pytest.importorskip("dask_jobqueue.slurm")
    config = slurm.read_config(written(tmp_path, TEXT))
    job = jobqueue.SLURMJob("tls://head:8786", name="worker", **slurm.job_options(config))
    script = job.job_script().split("\n")
    for line in (
        "#SBATCH -p long", "#SBATCH -A mt", "#SBATCH --cpus-per-task=16", "#SBATCH --mem=60G",
        "#SBATCH -t 12:00:00", "#SBATCH --gres=gpu:1",
    ):  # fmt: skip
        assert line in script
    first, second, run = [line for line in script if line and not line.startswith("#")]
    assert (first, second) == ("module load python/3.11", "source ~/venv/bin/activate")
    assert "-m distributed.cli.dask_worker tls://head:8786" in run
    assert "--nthreads 1" in run and "--nworkers 16" in run


def test_defaults(tmp_path: Path) -> None:
    assert slurm.read_config(written(tmp_path, "")) == SlurmConfig()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jobs: [", r"slurm\.yaml:\d: "),
        ("- 1", "expected keys and values"),
        ("job: 3", "unknown setting 'job'; did you mean 'jobs'"),
        ("jobs: 0", "jobs: 0 is out of range, expected 1 or more"),
        ("memory: 4", "memory: 4, expected a text in quotes"),
        ("prologue: module load x", "prologue: 'module load x', expected a list of texts"),
        ("directives: [1]", "directives: .*, expected a list of texts"),
    ],
)
def test_bad_settings(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        cluster.connect(f"slurm:{written(tmp_path, text)}")


def test_no_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        UserError, match=r"slurm\.yaml: the program sbatch is missing; start the command on a Slurm"
    ):
        cluster.connect(f"slurm:{written(tmp_path, TEXT)}")
