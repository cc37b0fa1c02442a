"""nmt-truecase."""

from pathlib import Path

import pytest

from nmt.cli import truecase


def test_there_and_back(tmp_path: Path) -> None:
    """Learned from two texts, applied, undone: line for line what it was."""
    lines = ["The man sees the dog .", "", "Anna sees the man . The man sleeps ."]
    for name in ("text", "more"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    text, model, cased, back = (str(tmp_path / name) for name in ("text", "model", "cased", "back"))
    assert truecase.main(["train", "-i", text, str(tmp_path / "more"), "-o", model, "-q"]) == 0
    assert "the (4/4)" in Path(model).read_text().split("\n")
    assert truecase.main(["apply", model, "-i", text, "-o", cased, "-q"]) == 0
    assert Path(cased).read_text() == "the man sees the dog .\n\nAnna sees the man . the man sleeps .\n"
    assert truecase.main(["undo", "-i", cased, "-o", back, "-q"]) == 0
    assert Path(back).read_text() == Path(text).read_text()


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("Word\n")
    text = str(tmp_path / "text")
    assert truecase.main(["train", "-i", text, "-o", str(tmp_path / "model")]) == 2
    assert "no word stands inside a sentence" in capsys.readouterr().err
    assert truecase.main(["apply", text, "-i", text]) == 2
    assert "text:1: expected forms of a word" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()
