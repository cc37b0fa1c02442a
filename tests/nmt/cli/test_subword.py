"""nmt-subword."""

from pathlib import Path

import pytest

from nmt.cli import subword
from tests.spaceless import japanese


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


@pytest.mark.parametrize("kind", ["unigram", "sentencepiece-bpe"])
def test_sentencepiece_reads_raw_text(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "".join(f"{source} {target}\n" for source, target in japanese(100)) + "\n"
    Path("text").write_text(text, encoding="utf-8")
    learn = ["learn", "--kind", kind, "-i", "text", "text", "-o", "model", "--pieces", "150", "-q"]
    assert subword.main(learn) == 0
    assert subword.main(["apply", "model", "-i", "text", "-o", "units", "-q"]) == 0
    assert subword.main(["undo", "--kind", kind, "-i", "units", "-o", "words", "-q"]) == 0
    assert "▁" in Path("units").read_text(encoding="utf-8")
    assert Path("words").read_text(encoding="utf-8") == text


def test_a_model_of_too_few_pieces_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("abc def\n" * 9)
    learn = ["learn", "--kind", "unigram", "-i", str(tmp_path / "text"), "-o", str(tmp_path / "model"), "-q"]
    assert subword.main([*learn, "--pieces", "3"]) == 2
    assert "pieces: 3 is too small: the text has 7 frequent characters" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()
