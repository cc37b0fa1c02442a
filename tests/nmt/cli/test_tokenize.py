"""nmt-tokenize."""

from pathlib import Path

import pytest

from nmt.cli import tokenize


def filtered(folder: Path, text: str, *options: str) -> str:
    (folder / "in").write_text(text, encoding="utf-8")
    assert (
        tokenize.main(["-i", str(folder / "in"), "-o", str(folder / "out"), "-q", "-l", "en", *options]) == 0
    )
    return (folder / "out").read_text(encoding="utf-8")


def test_escapes_are_written_on_request_and_undone_on_the_way_back(tmp_path: Path) -> None:
    text = "It's [here].\n\n"
    assert filtered(tmp_path, text) == "It 's [ here ] .\n\n"
    escaped = filtered(tmp_path, text, "--escape")
    assert escaped == "It &apos;s &#91; here &#93; .\n\n"
    assert filtered(tmp_path, escaped, "--escape", "--detokenize") == text
    assert filtered(tmp_path, text, "--lower").startswith("it ")


def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path) -> None:
    text = "".join(f"It's number {number}, isn't it?\n" * (number % 3 > 0) or "\n" for number in range(1500))
    for way in ((), ("--detokenize", "--escape")):
        assert filtered(tmp_path, text, *way) == filtered(tmp_path, text, *way, "--workers", "2")
    with pytest.raises(SystemExit):
        filtered(tmp_path, text, "--workers", "0")


def test_a_language_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokenize.main(["-i", "nosuch", "-l", "english"]) == 2
    assert "--language: 'english' is unknown" in capsys.readouterr().err


def test_the_language_is_that_of_the_ending_or_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """German text was tokenized by English rules without a word."""
    for name in ("news.fr.gz", "news.fr", "news"):
        (tmp_path / name).write_text("Qu'il vienne.\n", encoding="utf-8")
    expected = {"news.fr.gz": "Qu' il vienne .\n", "news.fr": "Qu' il vienne .\n"}
    for name, words in expected.items():
        out = str(tmp_path / "out")
        assert tokenize.main(["-i", str(tmp_path / name), "-o", out]) == 0
        assert (tmp_path / "out").read_text(encoding="utf-8") == words
        assert capsys.readouterr().err == "nmt-tokenize: language: fr\n"
    assert tokenize.main(["-i", str(tmp_path / "news.fr"), "-o", str(tmp_path / "out"), "-l", "en"]) == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == "Qu 'il vienne .\n"
    for given in (str(tmp_path / "news"), "-"):
        assert tokenize.main(["-i", given]) == 2
        message = capsys.readouterr().err
        assert "--language: missing" in message and message.count("\n") == 1


def test_text_without_spaces_is_segmented_and_comes_back(tmp_path: Path) -> None:
    """`nmt-tokenize -l ja` left a line as one word."""
    line = "私はSonyのテレビ、3.5台を買った。\n\n"
    for name, kind, words in (
        ("out.ja", "auto", "私 は Sony の テ レ ビ 、 3.5 台 を 買 っ た 。"),
        ("out.ja", "word", "私 は Sony の テレビ 、 3.5 台 を 買っ た 。"),
    ):
        if kind == "word":
            pytest.importorskip("ipadic")
        (tmp_path / "in.ja").write_text(line, encoding="utf-8")
        given, out, back = (str(tmp_path / name) for name in ("in.ja", name, "back.ja"))
        assert tokenize.main(["-i", given, "-o", out, "--segment", kind, "-q"]) == 0
        assert (tmp_path / name).read_text(encoding="utf-8") == f"{words}\n\n"
        assert tokenize.main(["-i", out, "-o", back, "-d", "--segment", kind, "-q"]) == 0
        assert (tmp_path / "back.ja").read_text(encoding="utf-8") == line


def test_a_segmentation_that_cannot_be_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokenize.main(["-l", "en", "--segment", "word"]) == 2
    message = capsys.readouterr().err
    assert "there is for ja, th, zh, not for en" in message and message.count("\n") == 1
