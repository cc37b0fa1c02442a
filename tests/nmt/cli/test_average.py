"""Which checkpoints nmt-average takes."""

from pathlib import Path

import pytest

from nmt.cli.average import choose
from nmt.errors import CheckpointError


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
    with pytest.raises(CheckpointError, match="5 checkpoints asked for"):
        choose(run, None, 5)
