"""nmt-vocab."""

from pathlib import Path

import pytest

from nmt.cli import vocab
from nmt.text.pipeline import SideConfig
from nmt.text.vocab import Vocab


def test_words_are_counted_and_escapes_undone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, out = tmp_path / "text", tmp_path / "vocab"
    text.write_text("&apos;s b b\nc &apos;s 's\n")
    assert vocab.main(["-i", str(text), "-o", str(out), "--size", "1", "--unescape"]) == 0
    found = Vocab.load(out)
    assert found.counts == {"'s": 3, "b": 2, "c": 1} and found.known == 1
    assert "1 of 3 words kept; they cover 50.00% of 6 running words" in capsys.readouterr().err


def test_the_default_size_is_that_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        vocab.main(["--help"])
    assert f"(default: {SideConfig().vocabulary})" in " ".join(capsys.readouterr().out.split())
