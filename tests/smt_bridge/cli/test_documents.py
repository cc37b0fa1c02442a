"""smt-decode --document: a document in, a document out, by a hybrid system or its student."""

from pathlib import Path

import pytest

import nmt
import smt_bridge
from smt_bridge.cli import decode
from tests.conftest import ROOT, refusal
from tests.nmt.documents.test_damaged import BODY, docx
from tests.nmt.documents.test_samples import docx_texts, parts

MODEL = ROOT / "tests" / "models" / "phrase-based"
SENTENCES = ["The man sees the house.", "A boy runs."]


def run(folder: Path, system: Path, name: str, data: bytes, *more: object) -> bytes:
    (folder / name).write_bytes(data)
    words = [system, "--document", folder / name, "-o", folder / f"out-{name}", "-q", *more]
    assert decode.main([*map(str, words)]) == 0
    return (folder / f"out-{name}").read_bytes()


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.ci
def test_a_hybrid_system_translates_documents(workers: int, hybrid_system: Path, tmp_path: Path) -> None:
    first, second = smt_bridge.load(str(hybrid_system)).translate(SENTENCES)
    text = f"{' '.join(SENTENCES)}\n\n> {SENTENCES[1]}\n".encode()
    found = run(tmp_path, hybrid_system, "a.txt", text, "--workers", workers)
    assert found.decode() == f"{first} {second}\n\n> {second}\n"
    page = b"<p>The <b>man</b> sees <i>the house</i>.</p>"
    found = run(tmp_path, hybrid_system, "a.html", page, "--workers", workers)
    assert all(found.count(tag) == 1 for tag in (b"<b>", b"</b>", b"<i>", b"</i>")) and found != page


def test_the_student_translates_documents(system_with_student: Path, tmp_path: Path) -> None:
    student = nmt.Run.load(system_with_student / "fast")
    data = docx(BODY.replace("A man.", " ".join(SENTENCES)))
    found = run(tmp_path, system_with_student, "a.docx", data, "--quality", "fast")
    expected = student.translate([" ".join(SENTENCES)], split_sentences=True)
    assert docx_texts(parts(found)["word/document.xml"]) == ["".join(expected[0].split())]


@pytest.mark.parametrize(
    "words, expected",
    [
        (["--alignments", "points"], "--alignments"),
        (["--split-sentences"], "--split-sentences"),
        (["--xml-input", "exclusive"], "--xml-input exclusive"),
        (["--input", "b.txt"], "--input"),
        (["--executor", "processes"], "--executor"),
    ],
)
def test_what_is_refused(
    words: list[str],
    expected: str,
    hybrid_system: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("A man.\n")
    given = ["--document", "a.txt", "-o", "out", "-q", *words]
    assert expected in refusal(decode.main, capsys, hybrid_system, *given)
    assert not (tmp_path / "out").exists()


def test_a_model_of_tokenized_text_translates_no_documents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("A man.\n")
    assert "hybrid system" in refusal(decode.main, capsys, MODEL, "--document", tmp_path / "a.txt")
