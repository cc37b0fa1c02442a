"""One side, both sides, and repeated lines of inspected texts."""

import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.text.checks import CHECKS
from nmt.text.clean import CleanConfig, CleanReport, clean
from nmt.text.inspection import (
    BAD,
    BOM,
    RETURNS,
    SAME,
    Finding,
    Lengths,
    LineDigests,
    PairReport,
    RepeatedLines,
    SideReport,
    choose_held_out,
    count_mistakes,
    dev_findings,
    excerpt,
    inspect_pairs,
    inspected_lines,
    pair_findings,
    ratio_title,
    side_findings,
    side_title,
    split_held_out,
    survey_sections,
)
from nmt.text.tokenize import ESCAPES, unescape

# ---- test side ---------------------------------------------------------------------------------------------
# One text: counts, lengths and examples of its lines, and of its bytes.


def report_of(*lines: str) -> SideReport:
    report = SideReport("text.en")
    for number, line in enumerate(lines, 1):
        report.lines = number
        report.add(number, line)
    return report


def test_lengths() -> None:
    lengths = Lengths()
    lengths.counts.update([1, 2, 2, 3, 92])
    assert lengths.mean() == 20 and Lengths().mean() == 0 == Lengths().quantile(0.5)
    assert [lengths.quantile(share) for share in (0.2, 0.5, 0.8, 0.81, 1.0)] == [1, 2, 3, 92, 92]


def test_counts_with_their_first_examples() -> None:
    report = report_of("A man sleeps .", "", "x\ty", "1\t2", "3\t4 " + "long " * 40)
    assert report.counts == {"empty": 1, "tab": 3, "without letters": 1}
    assert report.examples["tab"] == ["text.en:3: x\\ty", "text.en:4: 1\\t2"]
    assert report.examples["empty"] == ["text.en:2: "]
    assert report.lengths.counts.total() == 4 and report.lengths.quantile(1) == 42
    assert report.words["long"] == 40 and report.words["a"] == 1


def test_case_tokens_and_rare_words() -> None:
    raw = report_of("The man, here, sleeps.", "Lines end.", "A 3.5 b")
    assert raw.has_case() and not raw.punctuation.is_tokenized()
    tokens = report_of("the man , here , sleeps .", "lines end .", "what ? yes !")
    assert tokens.punctuation.is_tokenized() and not tokens.has_case()
    assert not report_of("Quoi ?", "Oui !").punctuation.is_tokenized(), (
        "a blank before ? and ! is good French"
    )
    assert report_of("a a b", "A c").hapax_share() == 2 / 5 and report_of("1").hapax_share() == 0


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "text.en"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\xe9 x\nzero\0\n\nthree\r")
    report = SideReport(str(path))
    assert list(inspected_lines(path, report)) == ["one", "two? x", "zero?", "", "three"]
    assert report.lines == 5 and report.counts == {BOM: 1, RETURNS: 2, BAD: 2}
    first, second = report.examples[BAD]
    assert first.startswith(f"{path}:2: byte 0xe9 at column 4 is not UTF-8; convert")
    assert second.startswith(f"{path}:3: NUL character")


def test_examples_are_short_and_can_be_printed() -> None:
    assert excerpt("a\x07b\u2028", 1) == "a\\x07b\\u2028"
    line = "x" * 100 + "HERE" + "y" * 100
    assert excerpt(line, 100) == f"...{'x' * 20}HERE{'y' * 36}..."
    assert excerpt(line, 3) == "x" * 60 + "..."


# ---- test pairs --------------------------------------------------------------------------------------------
# Both sides together: what nmt-clean would drop, copies, unequal lengths.


def write_pair(folder: Path, source: str, target: str) -> tuple[str, str]:
    (folder / "a.en").write_text(source)
    (folder / "b.fr").write_text(target)
    return str(folder / "a.en"), str(folder / "b.fr")


def test_what_is_counted(tmp_path: Path) -> None:
    source = "a b\n\nsame\na b\n" + "d " * 90 + "\nx\n"
    paths = write_pair(tmp_path, source, "x y\ny\nsame\nx y\nd e\n" + "y " * 10)
    passed: list[int] = []
    report = inspect_pairs(*paths, passed.append)
    assert sum(passed) == report.pairs == 6 and report.usable == 5
    assert report.reasons == {"empty": 1, SAME: 1, "long": 1, "ratio": 1}
    assert report.examples["empty"] == ["line 2:  | y"]
    assert list(report.sound) == [1, 0, 0, 1, 0, 0]
    assert report.digests.repeated().first == (4, 1)


def test_reasons_are_those_of_nmt_clean(tmp_path: Path) -> None:
    paths = write_pair(tmp_path, "a b\n\nc\n" + "d " * 90 + "\nx\n", "x y\ny\nz\nd e\n" + "y " * 10)
    rows = zip(*(Path(path).read_text().split("\n")[:5] for path in paths), strict=True)
    cleaned = CleanReport()
    list(clean(rows, CleanConfig(), cleaned))
    assert inspect_pairs(*paths).reasons == cleaned.dropped


def test_unequal_lengths(tmp_path: Path) -> None:
    report = inspect_pairs(*write_pair(tmp_path, "a\nb\nc\n", "x\n"))
    assert (report.source.lines, report.target.lines, report.pairs) == (3, 1, 1)
    assert len(report.sound) == len(report.digests) == 1


# ---- test repeats ------------------------------------------------------------------------------------------
# Repeated lines by their digests, as sets of the lines themselves say.


def digests_of(*lines: str) -> LineDigests:
    found = LineDigests()
    for line in lines:
        found.add(line)
    return found


def test_the_first_repeated_line() -> None:
    assert digests_of("a", "b", "c", "b", "a", "b").repeated() == RepeatedLines(3, (4, 2))
    assert digests_of("a", "b").repeated() == digests_of().repeated() == RepeatedLines(0, None)
    assert digests_of("a", "b", "c", "b").unique().tolist() == [True, False, True, False]


def test_lines_of_another_text() -> None:
    assert digests_of("x", "b", "a").shared_with(digests_of("a", "b", "b")) == RepeatedLines(2, (2, 2))
    assert (
        digests_of("x").shared_with(digests_of("a"))
        == digests_of().shared_with(digests_of("a"))
        == digests_of("x").shared_with(digests_of())
        == RepeatedLines(0, None)
    )


def test_as_sets_say() -> None:
    rng = random.Random(1)
    lines = [str(rng.randrange(40)) for _ in range(60)]
    others = [str(rng.randrange(80)) for _ in range(50)]
    assert digests_of(*lines).repeated().lines == len(lines) - len(set(lines))
    assert digests_of(*others).shared_with(digests_of(*lines)).lines == sum(line in lines for line in others)
    assert np.flatnonzero(digests_of(*lines).unique()).tolist() == [
        place for place, line in enumerate(lines) if lines.count(line) == 1
    ]


# ---- test findings -----------------------------------------------------------------------------------------
# What is said about two texts, line by line.

EN = "The man sleeps in the house.\nThe dog is in a car.\n"
FR = "L'homme dort dans la maison.\nLe chien est dans la voiture.\n"


def report_of_texts(folder: Path, source: bytes, target: bytes) -> PairReport:
    (folder / "a.en").write_bytes(source)
    (folder / "b.fr").write_bytes(target)
    return inspect_pairs(str(folder / "a.en"), str(folder / "b.fr"))


def rows_of(found: object) -> list[str]:
    return [line for finding in found for line in finding.lines()]  # type: ignore[attr-defined]


def test_sound_texts(tmp_path: Path) -> None:
    report = report_of_texts(tmp_path, EN.encode(), FR.encode())
    assert side_title(report.source) == (
        f"{tmp_path}/a.en: 2 lines; Latin script, probably en; 6.0 words a line (half up to 6, 95% up to 6, "
        "99% up to 6, all up to 6)"
    )
    assert ratio_title(report) == "2 pairs; 0.92 target words per source word"
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
    report = report_of_texts(tmp_path, b"caf\xe9\n\n", b"\n")
    found = [*side_findings(report.source, "en"), *pair_findings(report)]
    text = rows_of(finding for finding in found if finding.stops)
    assert text[0] == "  ERROR: lines that cannot be read: 1"
    assert text[1].startswith(f"      {tmp_path}/a.en:1: byte 0xe9 at column 4 is not UTF-8")
    assert text[2].startswith(f"  ERROR: {tmp_path}/a.en has 2 lines, {tmp_path}/b.fr 1: line n of one")
    assert text[3:] == ["  ERROR: no pair has words on both sides"]
    assert len(found) > 3, "what else was found is said, too"


def test_every_kind_is_counted_with_an_example(tmp_path: Path) -> None:
    source = "\ufeff" + EN + EN + "Это русская строка.\r\nsame\n"
    report = report_of_texts(tmp_path, source.encode(), (FR + FR + "le chat &apos;s\nsame\n").encode())
    text = rows_of(side_findings(report.source, "fr"))
    assert text[0] == "  a byte order mark at its start, which is ignored"
    assert text[1:3] == [
        "  lines that end with a carriage return: 1; it is ignored",
        f"      {tmp_path}/a.en:5: Это русская строка.",
    ]
    assert text[3].startswith("  its name says fr, but its words look like en: are the two sides swapped?")
    assert "  lines in Cyrillic script: 1; do they belong to this language?" in text
    assert text[-2:] == ["  lines that repeat an earlier one: 2", f"      {tmp_path}/a.en:3 repeats line 1"]
    escapes = rows_of(side_findings(report.target, "fr"))
    assert escapes[0].startswith("  lines with escapes (&apos; &quot; ...): 1; undo them, unless Moses'")
    assert escapes[1:2] == [f"      {tmp_path}/b.fr:5: le chat &apos;s"]
    text = rows_of(pair_findings(report))
    assert text[:2] == ["  pairs with identical sides: 1; 17% of the pairs", "      line 6: same | same"]
    assert text[2:] == [
        "  pairs that repeat an earlier one: 2; nmt-clean drops them",
        f"      {tmp_path}/a.en:3 repeats line 1",
    ]


def test_form_of_the_text(tmp_path: Path) -> None:
    report = report_of_texts(
        tmp_path, b"the man , in the house .\nit is the dog .\n", "Γάτα.\n猫。\n".encode()
    )
    assert rows_of(side_findings(report.source, "")) == [
        "  tokenized already: full stops and commas are words of their own",
        "  lower-cased: hardly any line has a capital letter",
    ]


def test_development_pairs_in_the_training_text(tmp_path: Path) -> None:
    train = report_of_texts(tmp_path, EN.encode(), FR.encode())
    dev = report_of_texts(tmp_path, EN[:29].encode() + b"New one.\n", b"autre\nneuf\n")
    assert rows_of(dev_findings(dev, train)) == [
        "  source lines that are also in the training text: 1; validation scores will be too good",
        f"      {tmp_path}/a.en:1 is {tmp_path}/a.en:1",
    ]
    assert rows_of(dev_findings(train, train))[0].startswith("  pairs that are also in the training text: 2;")
    assert rows_of([Finding("x", ["y"], stops=True)]) == ["  ERROR: x", "      y"]


# ---- test survey -------------------------------------------------------------------------------------------
# The survey that nmt-init and smt-build print.

SURVEY_EN = "".join(
    f"The man sees the {word}.\n" for word in ("house", "dog", "car", "street", "child", "tree")
)
SURVEY_FR = "".join(
    f"L'homme voit {word}.\n" for word in ("la maison", "le chien", "la rue", "un enfant", "tout", "rien")
)


def write_texts(folder: Path, name: str, source: str, target: str) -> PairReport:
    for ending, text in (("en", source), ("fr", target)):
        (folder / f"{name}.{ending}").write_text(text, encoding="utf-8")
    return inspect_pairs(str(folder / f"{name}.en"), str(folder / f"{name}.fr"))


def lines(train: PairReport, dev: PairReport | None, raw: bool = False) -> list[str]:
    return [line for section in survey_sections(train, dev, ("en", "fr"), raw) for line in section.lines()]


def test_sound_texts_have_a_title_each_and_no_findings(tmp_path: Path) -> None:
    train = write_texts(tmp_path, "train", SURVEY_EN, SURVEY_FR)
    dev = write_texts(tmp_path, "dev", "The man sleeps.\n", "L'homme dort.\n")
    assert [line.split(":")[0].split(";")[0] for line in lines(train, dev)] == [
        f"{tmp_path}/train.en", f"{tmp_path}/train.fr", "6 pairs",
        f"{tmp_path}/dev.en", f"{tmp_path}/dev.fr", "1 pair",
    ]  # fmt: skip
    assert len(lines(train, None)) == 3 and not count_mistakes(survey_sections(train, dev))


def test_a_development_set_inside_the_training_text(tmp_path: Path) -> None:
    train = write_texts(tmp_path, "train", SURVEY_EN, SURVEY_FR)
    dev = write_texts(
        tmp_path, "dev", *("".join(text.splitlines(True)[:3]) for text in (SURVEY_EN, SURVEY_FR))
    )
    assert any("pairs that are also in the training text: 3" in line for line in lines(train, dev))


def test_one_text_on_both_sides(tmp_path: Path) -> None:
    found = "\n".join(lines(write_texts(tmp_path, "train", SURVEY_EN, SURVEY_EN), None))
    assert "identical sides: 6; 100% of" in found and "its name says fr" in found


def test_exchanged_sides_of_the_development_set(tmp_path: Path) -> None:
    """Where its words are told, even if the names of the files look right, and no language is recognized."""
    train = write_texts(tmp_path, "train", SURVEY_EN, SURVEY_FR)
    dev = write_texts(tmp_path, "dev", "L'homme voit le chien.\n", "The man sees the dog.\n")
    assert any("development set swapped?" in line for line in lines(train, dev))
    assert not any(
        "exchanged?" in line for line in lines(train, write_texts(tmp_path, "good", SURVEY_EN, SURVEY_FR))
    )


def test_a_development_set_of_another_language(tmp_path: Path) -> None:
    other = "Der Hund schläft heute in einem großen Haus am Ende einer langen Straße.\n" * 2
    train = write_texts(tmp_path, "train", SURVEY_EN, SURVEY_FR)
    found = [
        line
        for line in lines(train, write_texts(tmp_path, "dev", other, SURVEY_FR))
        if "in the same language?" in line
    ]
    assert len(found) == 1 and f"words of {tmp_path}/dev.en are in {tmp_path}/train.en" in found[0]


def test_tokenized_text_matters_to_whoever_reads_raw_text(tmp_path: Path) -> None:
    train = write_texts(tmp_path, "train", SURVEY_EN.replace(".", " ."), SURVEY_FR)
    assert "nmt-tokenize --detokenize" in "".join(lines(train, None, raw=True))
    assert "tokenized already" in "".join(lines(train, None)) and "detokenize" not in "".join(
        lines(train, None)
    )


def test_what_stops_a_training_is_counted(tmp_path: Path) -> None:
    assert count_mistakes(survey_sections(write_texts(tmp_path, "train", "\n", "\n"), None)) == 1


# ---- test held out -----------------------------------------------------------------------------------------
# Pairs held out for development: sound ones, once each, always the same.

LINES = 120


def write_repeated(folder: Path, numbers: list[int]) -> tuple[str, str]:
    """Pairs of these numbers; of ten, one is empty, one repeats its source."""
    sources = [f"word {0 if number % 10 == 5 else number}\n" for number in numbers]
    targets = ["\n" if number % 10 == 3 else f"mot {number}\n" for number in numbers]
    for name, lines in (("a.en", sources), ("b.fr", targets)):
        (folder / name).write_text("".join(lines))
    return str(folder / "a.en"), str(folder / "b.fr")


def test_the_same_pairs_in_any_order(tmp_path: Path) -> None:
    found = []
    for numbers in (list(range(LINES)), list(range(LINES))[::-1]):
        paths = write_repeated(tmp_path, numbers)
        rows = choose_held_out(inspect_pairs(*paths))
        train, dev = ([tmp_path / f"{part}.{side}" for side in "st"] for part in ("train", "dev"))
        split_held_out(paths, train, dev, rows)
        lines = [path.read_text().splitlines() for path in (*train, *dev)]
        assert len(lines[2]) == len(lines[3]) == len(rows) == 95 // 20
        assert len(lines[0]) == len(lines[1]) == LINES - len(rows)
        assert not set(lines[2]) & set(lines[0]) and not set(lines[3]) & set(lines[1]) and "" not in lines[3]
        pairs = list(zip(*(Path(path).read_text().splitlines() for path in paths), strict=True))
        assert sorted([*zip(*lines[:2], strict=True), *zip(*lines[2:], strict=True)]) == sorted(pairs)
        found.append(set(zip(*lines[2:], strict=True)))
    assert found[0] == found[1]


def test_too_few(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="14 pairs without faults and repetitions, too few"):
        choose_held_out(inspect_pairs(*write_repeated(tmp_path, list(range(19)))))


def test_files_keep_their_order(tmp_path: Path) -> None:
    paths = write_repeated(tmp_path, list(range(30)))
    split_held_out(
        paths, [tmp_path / "x", tmp_path / "y"], [tmp_path / "v", tmp_path / "w"], np.array([1, 7])
    )
    assert (tmp_path / "v").read_text() == "word 1\nword 7\n"
    assert (tmp_path / "w").read_text() == "mot 1\nmot 7\n"
