"""smt-score-table on a Dask cluster: the bytes of one machine, whatever is killed; and what is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from smt_bridge.cli.score_table import main
from smt_bridge.features import feature_set
from smt_bridge.features.feature_set import FeatureSet
from tests.conftest import kill_once_written
from tests.nmt.work import clusters
from tests.smt_bridge.cli.scored_tables import ARPA, in_small_chunks, write_table

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with clusters.cluster(tmp_path_factory.mktemp("cluster"), workers=1) as place:
        yield place


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_table(tmp_path / "t", pairs=4000)
    (tmp_path / "lm.arpa").write_text(ARPA)
    return tmp_path


def arguments(folder: Path, output: str, *options: str) -> list[str]:
    return [str(folder / "t"), "-q", "-f", f"lm={folder / 'lm.arpa'}", "-o", str(folder / output), *options]


def test_killed_and_resumed(one: str, folder: Path) -> None:
    """kill -9 of the command, at work on the cluster; the same cluster continues."""
    on_cluster = arguments(folder, "o", "--cluster", one)
    kill_once_written(in_small_chunks(*on_cluster), folder / "o.job" / "scores")
    assert not (folder / "o").exists() and (folder / "o.job" / "scores").stat().st_size > 100
    assert in_small_chunks(*on_cluster, "--resume").wait() == 0
    assert main(arguments(folder, "whole")) == 0  # another size of chunks
    assert (folder / "o").read_bytes() == (folder / "whole").read_bytes()
    assert not (folder / "o.job").exists()


def refused(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> str:
    assert main(arguments(folder, "o", *options)) == 2
    assert not (folder / "o").exists() and not (folder / "o.job").exists()
    lines = capsys.readouterr().err.split("\n")
    assert len(lines) == 2, lines
    return lines[0]


def test_a_worker_without_the_path(
    one: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(feature_set, "absolute", lambda path: path and f"{path}.there")
    message = refused(capsys, folder, "--cluster", one)
    assert "worker tcp://127.0.0.1:" in message and f"{folder}/lm.arpa.there: " in message


def test_a_worker_with_another_model(
    one: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same path, other content."""
    monkeypatch.setattr(FeatureSet, "identities", lambda features: ["another"])
    message = refused(capsys, folder, "--cluster", one)
    assert "worker tcp://127.0.0.1:" in message
    assert message.endswith(f"{folder}/lm.arpa: is another model here than where the job was started")


def test_a_scheduler_that_cannot_be_reached(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, folder, "--cluster", "127.0.0.1:1")
    assert "--cluster 127.0.0.1:1: no scheduler answers within 10 s" in message
    assert "without TLS" in refused(capsys, folder, "--cluster", "10.0.0.1:8786")
