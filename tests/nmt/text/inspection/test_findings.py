"""What is said about two texts, line by line."""

import shutil
import subprocess
from pathlib import Path

import pytest

from nmt.text.escapes import ESCAPES, unescape
from nmt.text.inspection.checks import CHECKS
from nmt.text.inspection.findings import Finding, of_dev, of_pairs, of_side, ratio, title
from nmt.text.inspection.pairs import PairReport, inspect

EN = "The man sleeps in the house.\nThe dog is in a car.\n"
FR = "L'homme dort dans la maison.\nLe chien est dans la voiture.\n"


def of(folder: Path, source: bytes, target: bytes) -> PairReport:
    (folder / "a.en").write_bytes(source)
    (folder / "b.fr").write_bytes(target)
    return inspect(str(folder / "a.en"), str(folder / "b.fr"))


def said(found: object) -> list[str]:
    return [line for finding in found for line in finding.lines()]  # type: ignore[attr-defined]


def test_sound_texts(tmp_path: Path) -> None:
    report = of(tmp_path, EN.encode(), FR.encode())
    assert title(report.source) == (
        f"{tmp_path}/a.en: 2 lines; Latin script, probably en; 6.0 words a line (half up to 6, 95% up to 6, "
        "99% up to 6, all up to 6)"
    )
    assert ratio(report) == "2 pairs; 0.92 target words a source word"
    assert said(of_side(report.source, "en")) == said(of_pairs(report)) == []


def test_a_name_decides_between_languages_that_are_alike(tmp_path: Path) -> None:
    text = "a je se v na že to s z do o by tak\n"  # Czech and Slovak both
    for ending, expected in (("cs", "probably cs;"), ("sk", "probably sk;"), ("de", "probably cs or sk;")):
        path = tmp_path / f"text.{ending}"
        path.write_text(text)
        assert expected in title(inspect(str(path), str(path)).source)


def test_words_without_blanks_are_explained(tmp_path: Path) -> None:
    for line, unit in (("犬が猫を見る。", "2 characters"), ("สุนัขเห็นแมว", "4 letters"), ("a b c", "")):
        (tmp_path / "text").write_text(line + "\n")
        words = title(inspect(str(tmp_path / "text"), str(tmp_path / "text")).source)
        assert (f" words a line, {unit} being a word (" in words) == bool(unit)


@pytest.mark.skipif(not shutil.which("sed"), reason="needs sed")
def test_the_command_that_undoes_escapes(tmp_path: Path) -> None:
    text = " ".join(escaped for escaped, _ in ESCAPES) + " &amp;lt; a & b"
    (tmp_path / "FILE").write_text(text + "\n")
    command = CHECKS["escaped"].advice.partition(": ")[2]
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == unescape(text) + "\n"


def test_what_stops_a_training(tmp_path: Path) -> None:
    report = of(tmp_path, b"caf\xe9\n\n", b"\n")
    found = [*of_side(report.source, "en"), *of_pairs(report)]
    text = said(finding for finding in found if finding.stops)
    assert text[0] == "  ERROR: lines that cannot be read: 1"
    assert text[1].startswith(f"      {tmp_path}/a.en:1: byte 0xe9 at column 4 is not UTF-8")
    assert text[2].startswith(f"  ERROR: {tmp_path}/a.en has 2 lines, {tmp_path}/b.fr 1: line n of one")
    assert text[3:] == ["  ERROR: no pair has words on both sides"]
    assert len(found) > 3, "what else was found is said, too"


def test_every_kind_is_counted_with_an_example(tmp_path: Path) -> None:
    source = "\ufeff" + EN + EN + "Это русская строка.\r\nsame\n"
    report = of(tmp_path, source.encode(), (FR + FR + "le chat &apos;s\nsame\n").encode())
    text = said(of_side(report.source, "fr"))
    assert text[0] == "  a byte order mark at its start, which is ignored"
    assert text[1:3] == [
        "  lines that end with a carriage return: 1; it is ignored",
        f"      {tmp_path}/a.en:5: Это русская строка.",
    ]
    assert text[3].startswith("  it should be fr, its words look like en: are the two sides exchanged?")
    assert "  lines in Cyrillic script: 1; do they belong to this language?" in text
    assert text[-2:] == [
        "  lines that repeat an earlier one: 2",
        f"      {tmp_path}/a.en:3 is line 1 again",
    ]
    escapes = said(of_side(report.target, "fr"))
    assert escapes[0].startswith("  lines with escapes (&apos; &quot; ...): 1; undo them, unless Moses'")
    assert escapes[1:2] == [
        f"      {tmp_path}/b.fr:5: le chat &apos;s",
    ]
    text = said(of_pairs(report))
    assert text[:2] == ["  pairs whose sides are equal: 1; 17% of the pairs", "      line 6: same | same"]
    assert text[2:] == [
        "  pairs that repeat an earlier one: 2; nmt-clean drops them",
        f"      {tmp_path}/a.en:3 is line 1 again",
    ]


def test_form_of_the_text(tmp_path: Path) -> None:
    report = of(tmp_path, b"the man , in the house .\nit is the dog .\n", "Γάτα.\n猫。\n".encode())
    assert said(of_side(report.source, "")) == [
        "  tokenized already: full stops and commas are words of their own",
        "  lower-cased: hardly any line has a capital letter",
    ]


def test_development_pairs_in_the_training_text(tmp_path: Path) -> None:
    train = of(tmp_path, EN.encode(), FR.encode())
    dev = of(tmp_path, EN[:29].encode() + b"New one.\n", b"autre\nneuf\n")
    assert said(of_dev(dev, train)) == [
        "  source lines that are in the training text, too: 1; validations will score better than new text",
        f"      {tmp_path}/a.en:1 is {tmp_path}/a.en:1",
    ]
    assert said(of_dev(train, train))[0].startswith("  pairs that are in the training text, too: 2;")
    assert said([Finding("x", ["y"], stops=True)]) == ["  ERROR: x", "      y"]
