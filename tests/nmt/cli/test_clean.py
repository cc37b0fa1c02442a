"""nmt-clean."""

from pathlib import Path

import pytest

from nmt.cli import clean


def test_both_sides_stay_parallel_and_every_pair_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s").write_text("a b\n\nc\na b\n" + "d " * 90 + "\n")
    Path("t").write_text("x y\ny\nz\nx y\n" + "v " * 90 + "\n")
    files = ["-s", "s", "-t", "t", "--output-source", "s2", "--output-target", "t2", "--report", "report"]
    assert clean.main([*files, "-q"]) == 0
    assert Path("s2").read_text() == "a b\nc\n" and Path("t2").read_text() == "x y\nz\n"
    rows = dict(line.split("\t") for line in Path("report").read_text().splitlines()[1:])
    assert rows == {"kept": "2", "empty": "1", "short": "0", "long": "1", "ratio": "0", "duplicate": "1"}
    assert clean.main([*files, "-q", "--keep-duplicates", "--max-length", "100"]) == 0
    assert len(Path("s2").read_text().splitlines()) == 4


def test_limits_that_contradict_each_other_are_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = ["-s", "s", "-t", "t", "--output-source", "s2", "--output-target", "t2"]
    for name in ("s", "t"):
        Path(name).write_text("a\n")
    assert clean.main([*files, "--min-length", "9", "--max-length", "3"]) == 2
    assert "expected minimum <= maximum, found 9 and 3" in capsys.readouterr().err
    assert not Path("s2").exists()
