"""Clusters with certificates, those of Slurm among them."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.work import cluster
from nmt.work.executors import Dask, ExecutorConfig
from tests.nmt.work import certificates, clusters

dask_config = pytest.importorskip("dask").config
pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(not shutil.which("openssl"), reason="makes certificates with openssl"),
]

# What stands in for Slurm: jobs run here, at once.
SBATCH = """#!/bin/sh
cp "$1" {folder}/job.sh  # the script is removed once it is submitted
sh {folder}/job.sh > {folder}/job.log 2>&1 &
echo $! >> {folder}/jobs
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
kill "$@"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two authorities, and a host of each."""
    place = tmp_path_factory.mktemp("tls")
    for ca, name in (("ca", "host"), ("other", "stranger")):
        certificates.authority(place, ca)
        certificates.host(place, name, ca)
    return place


@pytest.fixture(scope="module")
def scheduler(folder: Path) -> Iterator[str]:
    options = ["--protocol", "tls", "--host", "127.0.0.1", "--port", "0", *certificates.options(folder)]
    process = clusters.scheduler(folder, *options)
    yield str(folder / "scheduler.json")
    process.kill()
    process.wait()


def test_the_right_certificates(folder: Path, scheduler: str) -> None:
    with dask_config.set(certificates.configuration(folder)):
        client = cluster.connect(scheduler)
        assert str(client.scheduler_info()["address"]).startswith("tls://")
        client.close()


@pytest.mark.parametrize(
    ("name", "ca", "message"),
    [
        ("stranger", "other", r"TLS: .*; is the certificate signed by the authority of both sides\?"),
        ("host", "other", r"TLS: .*; is the certificate signed by the authority of both sides\?"),
        ("none", "ca", "a certificate named in Dask's configuration"),
    ],
)
def test_wrong_certificates(
    name: str, ca: str, message: str, folder: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.work.cluster.SECONDS", 5)
    with (
        dask_config.set(certificates.configuration(folder, name, ca)),
        pytest.raises(UserError, match=message) as raised,
    ):
        cluster.connect(scheduler)
    assert str(raised.value).startswith(f"--cluster {scheduler}: ") and "\n" not in str(raised.value)


def square(task: int) -> int:
    return task * task


def begin() -> Callable[[int], int]:
    return square


def test_jobs_of_slurm(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in takes the place of sbatch; all else is as on a cluster, with TLS."""
    pytest.importorskip("dask_jobqueue")
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (tmp_path / name).write_text(text.format(folder=tmp_path))
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "slurm.yaml").write_text(
        f"memory: 2GB\ninterface: lo\nlocal_directory: {tmp_path}\nprologue: ['echo $PPID']\n"
    )
    config = ExecutorConfig(cluster=f"slurm:{tmp_path / 'slurm.yaml'}")
    with dask_config.set(certificates.configuration(folder)), Dask(square, begin, config) as running:
        assert list(running.map(range(20))) == [number * number for number in range(20)]
        assert str(running.client.scheduler_info()["address"]).startswith("tls://")
    assert len((tmp_path / "jobs").read_text().split()) == 1
