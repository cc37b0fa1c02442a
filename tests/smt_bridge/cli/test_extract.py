"""smt-extract: what it writes is what the library makes; bad input is refused with its line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from smt_bridge.cli.extract import main
from smt_bridge.extraction import tables
from smt_bridge.extraction.config import ExtractConfig
from tests.conftest import Command
from tests.smt_bridge.cli.refusals import refusal
from tests.smt_bridge.extraction.test_tables import Corpus, write


@pytest.mark.ci
def test_command_on_bad_input(tmp_path: Path, command: Command, refused: Callable[..., str]) -> None:
    inputs = write([(["a", "b"], ["x"], [(0, 0)]), (["c"], ["y"], [(0, 0)])], tmp_path)
    given = ["-s", inputs.source, "-t", inputs.target, "-a", inputs.alignment, "-o", tmp_path / "table"]

    def line(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        message = refused(command("smt-extract", *given))
        assert not (tmp_path / "table").exists()
        return message

    assert "a:2: point 0-3 is outside" in line("a", "0-0\n0-3\n")
    assert "a: 1 lines, but" in line("a", "0-0\n")
    (tmp_path / "a").write_text("0-0\n0-0\n")
    assert "nmt-tokenize --escape" in line("t", "x|y\ny\n")
    assert "non-terminal" in line("t", "[X]\ny\n")
    (tmp_path / "a").write_text("\n\n")
    assert "t: no words" in line("t", "\n\n")
    (tmp_path / "a").write_text("0-0\n0-0\n")
    (tmp_path / "t").write_text("x\ny\n")
    assert "--memory: 0.01 GB is out of range, expected 0.35 or more" in refused(
        command("smt-extract", *given, "--memory", "10M")
    )
    assert "--max-length: 9 is out of range, expected 1 to 8" in refused(
        command("smt-extract", *given, "--max-length", 9)
    )
    done = command("smt-extract", *given)
    assert done.returncode == 0 and (tmp_path / "table").read_text().startswith("a b ||| x ||| ")


def test_it_writes_what_the_library_makes(tmp_path: Path) -> None:
    """With settings other than the defaults; all three tables."""
    corpus: Corpus = [
        (["a", "b", "c"], ["x", "y"], [(0, 0), (1, 1), (2, 1)]),
        (["c", "a"], ["y", "x"], [(0, 0), (1, 1)]),
    ]
    inputs = write(corpus, tmp_path)
    config = ExtractConfig(max_length=2, smoothing="good-turing")
    tables.build(
        inputs, tables.TableOutputs(*(f"{tmp_path}/made{part}" for part in ("", ".r", ".lex"))), config
    )
    given = ["-s", inputs.source, "-t", inputs.target, "-a", inputs.alignment, "-q"]
    given += ["--max-length", "2", "--smoothing", "good-turing", "-o", f"{tmp_path}/own"]
    assert main([*given, "--reordering", f"{tmp_path}/own.r", "--lexical", f"{tmp_path}/own.lex"]) == 0
    for part in ("", ".r", ".lex.e2f", ".lex.f2e"):
        assert (tmp_path / f"own{part}").read_bytes() == (tmp_path / f"made{part}").read_bytes() != b""


def test_texts_that_can_be_read_once_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = write([(["a"], ["x"], [(0, 0)])], tmp_path)
    given = ["-s", "-", "-t", inputs.target, "-a", inputs.alignment, "-o", tmp_path / "table"]
    assert "the texts are read twice; give files, not -" in refusal(main, capsys, *given)
    given = ["-s", tmp_path / "none", "-t", inputs.target, "-a", inputs.alignment, "-o", tmp_path / "table"]
    assert "none" in refusal(main, capsys, *given)
    assert not (tmp_path / "table").exists()
