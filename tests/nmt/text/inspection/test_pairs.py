"""Both sides together: what nmt-clean would drop, copies, unequal lengths."""

from pathlib import Path

from nmt.text.clean import CleanConfig, CleanReport, clean
from nmt.text.inspection.pairs import SAME, inspect


def write(folder: Path, source: str, target: str) -> tuple[str, str]:
    (folder / "a.en").write_text(source)
    (folder / "b.fr").write_text(target)
    return str(folder / "a.en"), str(folder / "b.fr")


def test_what_is_counted(tmp_path: Path) -> None:
    source = "a b\n\nsame\na b\n" + "d " * 90 + "\nx\n"
    paths = write(tmp_path, source, "x y\ny\nsame\nx y\nd e\n" + "y " * 10)
    passed: list[int] = []
    report = inspect(*paths, passed.append)
    assert sum(passed) == report.pairs == 6 and report.usable == 5
    assert report.reasons == {"empty": 1, SAME: 1, "long": 1, "ratio": 1}
    assert report.examples["empty"] == ["line 2:  | y"]
    assert list(report.sound) == [1, 0, 0, 1, 0, 0]
    assert report.digests.repeated().first == (4, 1)


def test_reasons_are_those_of_nmt_clean(tmp_path: Path) -> None:
    paths = write(tmp_path, "a b\n\nc\n" + "d " * 90 + "\nx\n", "x y\ny\nz\nd e\n" + "y " * 10)
    rows = zip(*(Path(path).read_text().split("\n")[:5] for path in paths), strict=True)
    cleaned = CleanReport()
    list(clean(rows, CleanConfig(), cleaned))
    assert inspect(*paths).reasons == cleaned.dropped


def test_unequal_lengths(tmp_path: Path) -> None:
    report = inspect(*write(tmp_path, "a\nb\nc\n", "x\n"))
    assert (report.source.lines, report.target.lines, report.pairs) == (3, 1, 1)
    assert len(report.sound) == len(report.digests) == 1
