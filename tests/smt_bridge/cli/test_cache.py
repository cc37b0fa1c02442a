"""smt-cache: what is kept is listed, and goes."""

from pathlib import Path

import pytest

from smt_bridge.cli import cache as command
from smt_bridge.decoder import system
from smt_bridge.decoder.cache import Cache
from tests.smt_bridge.decoder.models import write_model


def test_list_and_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, place = write_model(tmp_path / "model", 1), str(tmp_path / "cache")
    system.load(str(folder), Cache(place))
    assert command.main(["list", "--cache", place]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert (
        any(f"{folder}/table {folder}/reordering" in line for line in lines)
        and f"{place}: 2 files" in lines[2]
    )
    assert command.main(["clear", "--cache", place]) == 0
    assert "2 files" in capsys.readouterr().out and not Cache(place).entries()
    assert command.main(["list", "--cache", place]) == 0
    assert "0 files" in capsys.readouterr().out
