"""One side, both sides, and repeated lines of inspected texts."""

import random
from pathlib import Path

import numpy as np

from nmt.text.clean import CleanConfig, CleanReport, clean
from nmt.text.inspection.texts import (
    BAD,
    BOM,
    RETURNS,
    SAME,
    Digests64,
    Lengths,
    RepeatedLines,
    SharedLines,
    SideReport,
    excerpt,
    inspect_pairs,
    inspected_lines,
)

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
    assert raw.has_case() and not raw.is_tokenized()
    tokens = report_of("the man , here , sleeps .", "lines end .", "what ? yes !")
    assert tokens.is_tokenized() and not tokens.has_case()
    assert not report_of("Quoi ?", "Oui !").is_tokenized(), "a blank before ? and ! is good French"
    assert report_of("a a b", "A c").once() == 2 / 5 and report_of("1").once() == 0


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


def digests_of(*lines: str) -> Digests64:
    found = Digests64()
    for line in lines:
        found.add(line)
    return found


def test_the_first_repeated_line() -> None:
    assert digests_of("a", "b", "c", "b", "a", "b").repeated() == RepeatedLines(3, (4, 2))
    assert digests_of("a", "b").repeated() == digests_of().repeated() == RepeatedLines(0, None)
    assert digests_of("a", "b", "c", "b").unique().tolist() == [True, False, True, False]


def test_lines_of_another_text() -> None:
    assert digests_of("x", "b", "a").within(digests_of("a", "b", "b")) == SharedLines(2, (2, 2))
    assert (
        digests_of("x").within(digests_of("a"))
        == digests_of().within(digests_of("a"))
        == digests_of("x").within(digests_of())
        == SharedLines(0, None)
    )


def test_as_sets_say() -> None:
    rng = random.Random(1)
    lines = [str(rng.randrange(40)) for _ in range(60)]
    others = [str(rng.randrange(80)) for _ in range(50)]
    assert digests_of(*lines).repeated().lines == len(lines) - len(set(lines))
    assert digests_of(*others).within(digests_of(*lines)).lines == sum(line in lines for line in others)
    assert np.flatnonzero(digests_of(*lines).unique()).tolist() == [
        place for place, line in enumerate(lines) if lines.count(line) == 1
    ]
