"""What is said about two texts, line by line."""

import shutil
import subprocess
from pathlib import Path

import pytest

from nmt.text.inspection.checks import CHECKS
from nmt.text.inspection.findings import (
    Finding,
    count_mistakes,
    dev_findings,
    pair_findings,
    ratio_title,
    side_findings,
    side_title,
    survey_sections,
)
from nmt.text.inspection.texts import PairReport, inspect_pairs
from nmt.text.tokenize import ESCAPES, unescape

# ---- test findings -----------------------------------------------------------------------------------------


EN = "The man sleeps in the house.\nThe dog is in a car.\n"
FR = "L'homme dort dans la maison.\nLe chien est dans la voiture.\n"


def report_of(folder: Path, source: bytes, target: bytes) -> PairReport:
    (folder / "a.en").write_bytes(source)
    (folder / "b.fr").write_bytes(target)
    return inspect_pairs(str(folder / "a.en"), str(folder / "b.fr"))


def rows_of(found: object) -> list[str]:
    return [line for finding in found for line in finding.lines()]  # type: ignore[attr-defined]


def test_sound_texts(tmp_path: Path) -> None:
    report = report_of(tmp_path, EN.encode(), FR.encode())
    assert side_title(report.source) == (
        f"{tmp_path}/a.en: 2 lines; Latin script, probably en; 6.0 words a line (half up to 6, 95% up to 6, "
        "99% up to 6, all up to 6)"
    )
    assert ratio_title(report) == "2 pairs; 0.92 target words a source word"
    assert rows_of(side_findings(report.source, "en")) == rows_of(pair_findings(report)) == []


def test_a_name_decides_between_languages_that_are_alike(tmp_path: Path) -> None:
    text = "a je se v na že to s z do o by tak\n"  # Czech and Slovak both
    for ending, expected in (("cs", "probably cs;"), ("sk", "probably sk;"), ("de", "probably cs or sk;")):
        path = tmp_path / f"text.{ending}"
        path.write_text(text)
        assert expected in side_title(inspect_pairs(str(path), str(path)).source)


def test_words_without_blanks_are_explained(tmp_path: Path) -> None:
    for line, unit in (("犬が猫を見る。", "2 characters"), ("สุนัขเห็นแมว", "4 letters"), ("a b c", "")):
        (tmp_path / "text").write_text(line + "\n")
        words = side_title(inspect_pairs(str(tmp_path / "text"), str(tmp_path / "text")).source)
        assert (f" words a line, {unit} being a word (" in words) == bool(unit)


@pytest.mark.skipif(not shutil.which("sed"), reason="needs sed")
def test_the_command_that_undoes_escapes(tmp_path: Path) -> None:
    text = " ".join(escaped for escaped, _ in ESCAPES) + " &amp;lt; a & b"
    (tmp_path / "FILE").write_text(text + "\n")
    command = CHECKS["escaped"].advice.partition(": ")[2]
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == unescape(text) + "\n"


def test_what_stops_a_training(tmp_path: Path) -> None:
    report = report_of(tmp_path, b"caf\xe9\n\n", b"\n")
    found = [*side_findings(report.source, "en"), *pair_findings(report)]
    text = rows_of(finding for finding in found if finding.stops)
    assert text[0] == "  ERROR: lines that cannot be read: 1"
    assert text[1].startswith(f"      {tmp_path}/a.en:1: byte 0xe9 at column 4 is not UTF-8")
    assert text[2].startswith(f"  ERROR: {tmp_path}/a.en has 2 lines, {tmp_path}/b.fr 1: line n of one")
    assert text[3:] == ["  ERROR: no pair has words on both sides"]
    assert len(found) > 3, "what else was found is said, too"


def test_every_kind_is_counted_with_an_example(tmp_path: Path) -> None:
    source = "\ufeff" + EN + EN + "Это русская строка.\r\nsame\n"
    report = report_of(tmp_path, source.encode(), (FR + FR + "le chat &apos;s\nsame\n").encode())
    text = rows_of(side_findings(report.source, "fr"))
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
    escapes = rows_of(side_findings(report.target, "fr"))
    assert escapes[0].startswith("  lines with escapes (&apos; &quot; ...): 1; undo them, unless Moses'")
    assert escapes[1:2] == [
        f"      {tmp_path}/b.fr:5: le chat &apos;s",
    ]
    text = rows_of(pair_findings(report))
    assert text[:2] == ["  pairs whose sides are equal: 1; 17% of the pairs", "      line 6: same | same"]
    assert text[2:] == [
        "  pairs that repeat an earlier one: 2; nmt-clean drops them",
        f"      {tmp_path}/a.en:3 is line 1 again",
    ]


def test_form_of_the_text(tmp_path: Path) -> None:
    report = report_of(tmp_path, b"the man , in the house .\nit is the dog .\n", "Γάτα.\n猫。\n".encode())
    assert rows_of(side_findings(report.source, "")) == [
        "  tokenized already: full stops and commas are words of their own",
        "  lower-cased: hardly any line has a capital letter",
    ]


def test_development_pairs_in_the_training_text(tmp_path: Path) -> None:
    train = report_of(tmp_path, EN.encode(), FR.encode())
    dev = report_of(tmp_path, EN[:29].encode() + b"New one.\n", b"autre\nneuf\n")
    assert rows_of(dev_findings(dev, train)) == [
        "  source lines that are in the training text, too: 1; validations will score better than new text",
        f"      {tmp_path}/a.en:1 is {tmp_path}/a.en:1",
    ]
    assert rows_of(dev_findings(train, train))[0].startswith("  pairs that are in the training text, too: 2;")
    assert rows_of([Finding("x", ["y"], stops=True)]) == ["  ERROR: x", "      y"]


# ---- test survey -------------------------------------------------------------------------------------------
# The survey that nmt-init and smt-build print.


SURVEY_EN = "".join(
    f"The man sees the {word}.\n" for word in ("house", "dog", "car", "street", "child", "tree")
)
SURVEY_FR = "".join(
    f"L'homme voit {word}.\n" for word in ("la maison", "le chien", "la rue", "un enfant", "tout", "rien")
)


def texts(folder: Path, name: str, source: str, target: str) -> PairReport:
    for ending, text in (("en", source), ("fr", target)):
        (folder / f"{name}.{ending}").write_text(text, encoding="utf-8")
    return inspect_pairs(str(folder / f"{name}.en"), str(folder / f"{name}.fr"))


def lines(train: PairReport, dev: PairReport | None, raw: bool = False) -> list[str]:
    return [line for section in survey_sections(train, dev, ("en", "fr"), raw) for line in section.lines()]


def test_sound_texts_have_a_title_each_and_no_findings(tmp_path: Path) -> None:
    train = texts(tmp_path, "train", SURVEY_EN, SURVEY_FR)
    dev = texts(tmp_path, "dev", "The man sleeps.\n", "L'homme dort.\n")
    assert [line.split(":")[0].split(";")[0] for line in lines(train, dev)] == [
        f"{tmp_path}/train.en", f"{tmp_path}/train.fr", "6 pairs",
        f"{tmp_path}/dev.en", f"{tmp_path}/dev.fr", "1 pairs",
    ]  # fmt: skip
    assert len(lines(train, None)) == 3 and not count_mistakes(survey_sections(train, dev))


def test_a_development_set_inside_the_training_text(tmp_path: Path) -> None:
    train = texts(tmp_path, "train", SURVEY_EN, SURVEY_FR)
    dev = texts(tmp_path, "dev", *("".join(text.splitlines(True)[:3]) for text in (SURVEY_EN, SURVEY_FR)))
    assert any("pairs that are in the training text, too: 3" in line for line in lines(train, dev))


def test_one_text_on_both_sides(tmp_path: Path) -> None:
    found = "\n".join(lines(texts(tmp_path, "train", SURVEY_EN, SURVEY_EN), None))
    assert "sides are equal: 6; 100% of" in found and "it should be fr" in found


def test_exchanged_sides_of_the_development_set(tmp_path: Path) -> None:
    """Where its words are told, even if the names of the files look right, and no language is recognized."""
    train = texts(tmp_path, "train", SURVEY_EN, SURVEY_FR)
    dev = texts(tmp_path, "dev", "L'homme voit le chien.\n", "The man sees the dog.\n")
    assert any("development set exchanged?" in line for line in lines(train, dev))
    assert not any(
        "exchanged?" in line for line in lines(train, texts(tmp_path, "good", SURVEY_EN, SURVEY_FR))
    )


def test_a_development_set_of_another_language(tmp_path: Path) -> None:
    other = "Der Hund schläft heute in einem großen Haus am Ende einer langen Straße.\n" * 2
    train = texts(tmp_path, "train", SURVEY_EN, SURVEY_FR)
    found = [
        line
        for line in lines(train, texts(tmp_path, "dev", other, SURVEY_FR))
        if "in the same language?" in line
    ]
    assert len(found) == 1 and f"words of {tmp_path}/dev.en are in {tmp_path}/train.en" in found[0]


def test_tokenized_text_matters_to_whoever_reads_raw_text(tmp_path: Path) -> None:
    train = texts(tmp_path, "train", SURVEY_EN.replace(".", " ."), SURVEY_FR)
    assert "nmt-tokenize --detokenize" in "".join(lines(train, None, raw=True))
    assert "tokenized already" in "".join(lines(train, None)) and "detokenize" not in "".join(
        lines(train, None)
    )


def test_what_stops_a_training_is_counted(tmp_path: Path) -> None:
    assert count_mistakes(survey_sections(texts(tmp_path, "train", "\n", "\n"), None)) == 1
