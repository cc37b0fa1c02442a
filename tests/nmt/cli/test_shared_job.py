"""Where the job of several workers lies."""

import argparse
from pathlib import Path

import pytest

from nmt.cli import shared_job
from nmt.errors import ConfigError
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.stages import Place


def place(*words: str, output: str = "table.gz") -> Place | None:
    parser = argparse.ArgumentParser()
    shared_job.add_shared_job(parser)
    args = parser.parse_args(words)
    args.output = output
    config = ExecutorConfig(workers=args.workers, executor=args.executor, cluster=args.cluster)
    return shared_job.place_of(args, "smt-extract", config)


def test_alone_there_is_no_folder() -> None:
    assert place() is None and place("--workers", "1", output="-") is None


def test_beside_the_output_or_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a whole path, since workers are elsewhere."""
    monkeypatch.chdir(tmp_path)
    for words in (["--workers", "2"], ["--cluster", "127.0.0.1:1"], ["--executor", "processes"]):
        found = place(*words)
        assert found == Place(tmp_path / "table.gz.job", "smt-extract")
    assert place("--work", "here", output="-") == Place(tmp_path / "here", "smt-extract")
    resumed = place("--resume")
    assert resumed and resumed.resume


def test_several_workers_need_a_folder() -> None:
    with pytest.raises(
        ConfigError, match="several workers share a folder: give --output FILE, or --work DIR"
    ):
        place("--workers", "2", output="-")
