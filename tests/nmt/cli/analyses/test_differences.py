"""nmt-analyze by-frequency, ngrams, differences."""

from pathlib import Path

from tests.nmt.cli.analyses.conftest import POOR, REFERENCES, Analyze, Refuses

BASE = ["-r", "r", "--hypothesis", "good", "poor", "--bleu-tokenize", "none", "-q"]


def test_by_frequency(rows: Analyze, small: Path) -> None:
    """The vocabulary has u, v, w, x once each and no r, which the good system never says."""
    found = {(row["system"], row["first"]): row for row in rows("by-frequency", *BASE, "--train", "t.vocab")}
    row = found["good", "0"]
    assert (row["reference"], row["hypothesis"], row["f1"]) == ("1", "0", "0.00")
    row = found["good", "1"]
    assert (row["reference"], row["hypothesis"], row["matches"]) == ("25", "24", "23")
    assert found["poor", "0"]["f1"] == "100.00"
    assert rows("by-frequency", *BASE, "-o", "out") and (small / "out" / "by-frequency.svg").exists()


def test_ngrams(rows: Analyze) -> None:
    found = rows("ngrams", *BASE, "--count", 1)
    assert [row["better"] for row in found] == ["good", "poor"]
    assert found[0]["ngram"] == "w x u v" and found[1]["ngram"] == "r"


def test_differences(rows: Analyze, small: Path) -> None:
    found = rows("differences", *BASE, "-s", "s", "--count", 1)
    assert [(row["line"], row["reference"], row["second_text"]) for row in found] == [
        ("1", REFERENCES[0], POOR[0])
    ]
    assert rows("differences", *BASE, "-s", "s", "-o", "out")
    svg = (small / "out" / "differences.svg").read_text()
    assert "equal" in svg and "chrf of poor minus chrf of good" in svg


def test_differences_are_those_of_two(refuses: Refuses) -> None:
    for kind, source in (("ngrams", []), ("differences", ["-s", "s"])):
        assert "1 system; expected 2" in refuses(kind, "-r", "r", "--hypothesis", "good", *source)
    line = [
        "differences",
        "-s",
        "s",
        "-r",
        "r",
        "--hypothesis",
        "good",
        "good",
        "good",
        "--names",
        "a",
        "b",
        "c",
    ]
    assert "3 systems; differences are those of two" in refuses(*line)
