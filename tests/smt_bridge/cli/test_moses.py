"""smt-moses: what is checked before one of Moses' programs starts."""

from pathlib import Path

import pytest

from smt_bridge.cli.moses import main
from tests.smt_bridge.cli.refusals import refusal
from tests.smt_bridge.moses.systems import INI, write_system


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system here, and an installation whose programs must not be started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOSES_HOME", str(tmp_path / "moses"))
    for name in ("bin/moses", "bin/processPhraseTableMin"):
        path = tmp_path / "moses" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
        path.chmod(0o755)
    (tmp_path / "text").write_text("a\n")
    return write_system(tmp_path)


DECODE = ["decode", "moses.ini", "-i", "text", "-o", "out"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*DECODE, "-i", "none"], "none"),
        ([*DECODE, "--threads", "0"], "argument --threads"),
        ([*DECODE, "--n-best", "0"], "argument --n-best"),
        ([*DECODE, "--moses", "elsewhere"], "does not exist; is"),
        (["compact", "none", "-o", "x"], "none"),
        (["tune", "moses.ini", "-i", "text", "-r", "none", "--working-dir", "w"], "none"),
        (["train"], "argument ACTION"),
    ],
)
def test_refused(words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refusal(main, capsys, *words)
    assert not (folder / "started").exists() and not (folder / "out").exists()


@pytest.mark.parametrize("count", [1, 2])
def test_the_first_problem_of_a_system(count: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And how many more there are; the tables are not read whole."""
    changed = INI.replace("LM0= 0.5\n", "").replace("path=lm", "path=gone" if count == 2 else "path=lm")
    (folder / "moses.ini").write_text(changed)
    (folder / "t").write_text((folder / "t").read_text() + "damaged\n")
    line = refusal(main, capsys, *DECODE)
    assert "LM0 has no line in [weight]" in line
    assert ("(1 more: smt-ini check)" in line) == (count == 2)
    assert not (folder / "started").exists()


def test_a_table_is_not_its_own_compact_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t").rename(folder / "t.minphr")
    assert "is read too" in refusal(main, capsys, "compact", "t.minphr", "-o", "t")
    assert not (folder / "started").exists()
