"""Slurm's jobs: their settings, and the script that would be submitted. There is no Slurm here."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError, UserError
from nmt.work import cluster, slurm
from nmt.work.slurm import SlurmConfig

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
        UserError, match=r"slurm\.yaml: the program sbatch is missing; start the command on a host"
    ):
        cluster.connect(f"slurm:{written(tmp_path, TEXT)}")
