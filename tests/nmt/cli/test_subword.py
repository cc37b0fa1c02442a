"""nmt-subword."""

from pathlib import Path

import pytest

from nmt.cli import subword


def test_what_is_learned_is_applied_and_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "low low lower\nnewest newest widest\n"
    Path("text").write_text(text)
    assert subword.main(["learn", "-i", "text", "text", "-o", "codes", "--merges", "3", "-q"]) == 0
    assert subword.main(["apply", "codes", "-i", "text", "-o", "units", "-q"]) == 0
    assert subword.main(["undo", "-i", "units", "-o", "words", "-q"]) == 0
    assert "@@" in Path("units").read_text() and Path("words").read_text() == text


def test_a_text_without_words_has_no_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("\n")
    assert subword.main(["learn", "-i", str(tmp_path / "text"), "-o", str(tmp_path / "codes")]) == 2
    assert "no words, expected tokenized text" in capsys.readouterr().err
    assert not (tmp_path / "codes").exists()
