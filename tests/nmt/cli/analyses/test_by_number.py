"""nmt-analyze by a number that each sentence has."""

from pathlib import Path

import pytest

from nmt.analysis.systems import System
from nmt.cli import analyze
from nmt.cli.analyses import inputs
from tests.nmt.cli.analyses.conftest import POOR, Analyze, Refuses, write

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
BASE = ["-s", "s", "-r", "r", "--hypothesis", "good", "--bleu-tokenize", "none"]


def test_by_rare(rows: Analyze, small: Path) -> None:
    """Source words that the training text lacks: 0, 1 (q), 2 (z z), 0. Those of at most one: 10, 1, 10, 0."""
    write(small / "train.s", ["a b a", "c d e f g h i j k l a b b"])
    write(small / "train.t", ["u v w x"])
    line = ["by-rare", *BASE, "-q", "--least", 1, "--train", "train.s", "train.t"]
    found = [(row["rare"], row["sentences"]) for row in rows(*line) if row["by"] == "source"]
    assert found == [("0", "2"), ("1", "3"), ("2", "4")]
    found = [(row["rare"], row["sentences"]) for row in rows(*line, "--rare", 1) if row["by"] == "source"]
    assert found[0] == ("0", "1") and found[-1] == ("10", "4")


def test_by_segmented(rows: Analyze, refuses: Refuses, small: Path, tiny: Path) -> None:
    write(small / "s", ["a boy sleeps", "the nurses hear her", "zzzz", "a man"])
    line = ["by-segmented", *BASE, "-q", "--least", 1, "--run"]
    found = [row for row in rows(*line, GOLDEN / "0.5.0" / "translator") if row["by"] == "source"]
    assert found[-1]["sentences"] == "4" and int(found[0]["sentences"]) < 4
    assert "cuts no words" in refuses(*line, tiny / "run")


def test_too_few_sentences_for_a_curve(small: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert analyze.main(["by-length", *BASE]) == 0
    assert "no point has 20 sentences; --least asks for fewer" in capfd.readouterr().err


def test_a_report_on_a_run_with_subwords(
    small: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a curve by words that the run cuts, and one by unseen words; the first is about the source."""
    write(small / "s", ["a boy sleeps", "the nurses hear her", "zzzz", "a man"])
    monkeypatch.setattr(
        "nmt.cli.analyses.report.translated",
        lambda args, name, path, test: (System(name, POOR, test), inputs.load_run(args, path).members[0]),
    )
    run = GOLDEN / "0.5.0" / "translator"
    line = ["report", run, "good", "-s", "s", "-r", "r", "--least", 1, "--train", "s", "r", "-o", "page.html"]
    assert analyze.main([*map(str, line)]) == 0, capfd.readouterr().err
    page = (small / "page.html").read_text()
    titles = [title for title in ("unseen", "segmented", "unknown") if f"BLEU by {title} words" in page]
    assert titles == ["unseen", "segmented"] and '"kinds":["unseen","segmented"]' in page
    assert "no unseen" in page and "no segmented" in page and "words by their frequency in training" in page
    write(small / "S", ["A BOY SLEEPS", "THE NURSES HEAR HER", "ZZZZ", "A MAN"] * 3)
    write(small / "R", ["a"] * 12)
    line = ["report", run, "-s", "S", "-r", "R", "--train", "s", "r", "-o", "other.html"]
    monkeypatch.setattr("nmt.cli.analyses.report.translated", None)  # what does not fit is told before
    assert analyze.main([*map(str, line)]) == 2 and not (small / "other.html").exists()
    assert "s: 100% of the running words" in capfd.readouterr().err
