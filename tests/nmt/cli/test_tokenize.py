"""nmt-tokenize."""

from pathlib import Path

import pytest

from nmt.cli import tokenize


def filtered(folder: Path, text: str, *options: str) -> str:
    (folder / "in").write_text(text, encoding="utf-8")
    assert tokenize.main(["-i", str(folder / "in"), "-o", str(folder / "out"), "-q", *options]) == 0
    return (folder / "out").read_text(encoding="utf-8")


def test_escapes_are_written_on_request_and_undone_on_the_way_back(tmp_path: Path) -> None:
    text = "It's [here].\n\n"
    assert filtered(tmp_path, text) == "It 's [ here ] .\n\n"
    escaped = filtered(tmp_path, text, "--escape")
    assert escaped == "It &apos;s &#91; here &#93; .\n\n"
    assert filtered(tmp_path, escaped, "--escape", "--detokenize") == text
    assert filtered(tmp_path, text, "--lower").startswith("it ")


def test_a_language_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokenize.main(["-i", "nosuch", "-l", "english"]) == 2
    assert "language 'english' is unknown" in capsys.readouterr().err
