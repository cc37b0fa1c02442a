"""smt-extract: what it writes is what the library makes; bad input is refused with its line."""

from pathlib import Path

import pytest

from smt_bridge.cli.extract import main
from smt_bridge.extraction import tables
from smt_bridge.extraction.config import ExtractConfig
from tests.conftest import refusal
from tests.smt_bridge.extraction.test_tables import Corpus, write


@pytest.mark.parametrize(
    ("name", "text", "more", "message"),
    [
        ("a", "0-0\n0-3\n", "", "a:2: point 0-3 is outside"),
        ("a", "0-0\n", "", "a: 1 line, but"),
        ("t", "x|y\ny\n", "", "nmt-tokenize --escape"),
        ("t", "[X]\ny\n", "", "non-terminal"),
        ("t", "\n\n", "-a empty", "t: no words"),
        ("t", "x\ny\n", "--memory 10M", "--memory: 0.01 GB is out of range, expected 0.35 or more"),
        ("t", "x\ny\n", "--max-length 9", "--max-length: 9 is out of range, expected 1 to 8"),
        ("t", "x\ny\n", "-s -", "the texts are read twice; give files, not -"),
        ("t", "x\ny\n", "-s none", "none"),
    ],
)
def test_bad_input(
    name: str, text: str, more: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    write([(["a", "b"], ["x"], [(0, 0)]), (["c"], ["y"], [(0, 0)])], tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("\n\n")
    (tmp_path / name).write_text(text)
    assert message in refusal(main, capsys, *f"-s s -t t -a a -o table {more}".split())
    assert not (tmp_path / "table").exists()


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
