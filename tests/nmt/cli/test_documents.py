"""nmt-translate --document: a document in, a document out."""

import argparse
from pathlib import Path

import pytest

from nmt import Run
from nmt.cli import documents, translate
from nmt.documents import plain
from nmt.errors import UserError
from nmt.text.sentences import whole_lines
from tests.conftest import ROOT, Command, refusal

RUN = ROOT / "tests" / "models" / "translator"
TEXT = "The man sees the dog.\n\n  - The nurses hear her. A boy runs.\n"


def run(folder: Path, name: str, data: bytes, *more: object) -> bytes:
    (folder / name).write_bytes(data)
    words = [RUN, "--document", folder / name, "-o", folder / f"out-{name}", "-q", *more]
    assert translate.main([*map(str, words)]) == 0
    return (folder / f"out-{name}").read_bytes()


@pytest.mark.ci
def test_plain_text_keeps_its_breaks(tmp_path: Path) -> None:
    first, *second = Run.load(RUN).translate(["The man sees the dog.", "The nurses hear her.", "A boy runs."])
    found = run(tmp_path, "a.txt", TEXT.encode()).decode()
    assert found == f"{first}\n\n  - {' '.join(second)}\n"
    assert found == run(tmp_path, "b.txt", TEXT.encode(), "--read-ahead", 1).decode()
    assert found == run(tmp_path, "c.data", TEXT.encode(), "--document-format", "text").decode()


def test_html_keeps_its_tags(tmp_path: Path) -> None:
    found = run(tmp_path, "a.html", b"<p>The <b>man</b> sees the dog.</p>").decode()
    assert found.count("<b>") == found.count("</b>") == 1 and found.startswith("<p>")
    assert found != "<p>The <b>man</b> sees the dog.</p>"


@pytest.mark.ci
def test_a_warning_counts_sentences_not_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"A man.\n\n\nA boy. The {'man and the ' * 40}dog sleeps.\n"
    run(tmp_path, "a.txt", text.encode(), "--max-line-words", 100)
    assert "a.txt: sentence 3: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, expected",
    [
        (["--document", "a.txt", "--input", "b"], "--input"),
        (["--document", "a.txt", "--n-best", 2], "--n-best"),
        (["--document", "a.txt", "--resume", "-o", "out"], "--resume"),
        (["--document", "a.txt", "--workers", 2], "--workers"),
        (["--document", "a.doc"], "name its format (--document-format)"),
        (["--document", "missing.txt"], "No such file"),
        (["--document", "bad.txt"], "bad.txt:1: byte 0xff"),
        (["--document-format", "html"], "--document"),
        (["--document", "a.txt", "-o", "a.txt"], "overwritten"),
    ],
)
def test_what_is_refused(
    words: list[object],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "a.doc", "b"):
        (tmp_path / name).write_text("A man.\n")
    (tmp_path / "bad.txt").write_bytes(b"\xff")
    assert expected in refusal(translate.main, capsys, RUN, "-o", "out", *words)
    assert not (tmp_path / "out").exists() and (tmp_path / "a.txt").read_text() == "A man.\n"


def test_an_output_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    args = argparse.Namespace(output=str(tmp_path / "a" / "out"), quiet=True)
    document = plain.parse(b"A man.", "a.txt")
    with pytest.raises(UserError, match="cannot write: Not a directory"):
        documents.translate_document(args, document, whole_lines, lambda *block: pytest.fail("work"), 1)


def test_as_a_command(tmp_path: Path, command: Command) -> None:
    (tmp_path / "a.html").write_text("<p>A man.</p>")
    done = command("nmt-translate", RUN, "--document", tmp_path / "a.html", "-q")
    assert done.returncode == 0 and done.stdout.startswith("<p>") and not done.stderr
    words = ("nmt-translate", RUN, "--document", "-", "--document-format", "html", "-q")
    assert command(*words, input="<p>A man.</p>").stdout == done.stdout
