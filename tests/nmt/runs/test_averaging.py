"""Which checkpoints are averaged."""

import logging
from pathlib import Path

import pytest

from nmt.errors import CheckpointError
from nmt.runs import weights
from nmt.runs.averaging import choose, save


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for step in (5, 10, 20, 100):
        (tmp_path / f"step-{step}.pt").touch()
    return tmp_path


def test_the_newest_by_number_oldest_first(run: Path) -> None:
    assert choose(run, None, 3) == [10, 20, 100]
    assert choose(run, None, 4) == [5, 10, 20, 100]


def test_those_that_are_named_each_once(run: Path) -> None:
    assert choose(run, [100, 5, 100], 99) == [5, 100]


def test_what_is_not_there_is_named_with_what_is(run: Path) -> None:
    with pytest.raises(CheckpointError, match="update 7 asked for, but it holds updates 5, 10, 20, 100"):
        choose(run, [5, 9, 7], 1)
    with pytest.raises(CheckpointError, match="checkpoints asked for, but it holds updates none"):
        choose(run / "empty", None, 5)


def test_fewer_than_asked_for_are_averaged_and_reported(
    run: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("nmt"), "propagate", True)
    assert choose(run, None, 5) == [5, 10, 20, 100]
    assert "holds 4 checkpoints, not 5" in caplog.text


def test_nothing_is_left_of_an_average_that_cannot_be_written(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(value: object, path: Path) -> None:
        raise CheckpointError("disk full")

    for name in ("version", "matmul.tsv"):
        (run / name).write_text("nmt-run 2\n")
    monkeypatch.setattr(weights, "save_tensors", full)
    output = tmp_path / "average"
    output.mkdir()
    with pytest.raises(CheckpointError, match="disk full"):
        save(run, output, 5, {})
    assert not any(output.iterdir())
