"""nmt-analyze neighbors of a run with a table of word vectors; tests/commands/test_characters.py has the
other kind."""

from pathlib import Path

from tests.nmt.cli.analyses.conftest import Analyze, Refuses

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "0.5.0"
LM = str(GOLDEN / "lm")


def test_neighbors(rows: Analyze) -> None:
    found = rows("neighbors", LM, "--words", "chat", "le", "--count", 2, "-q")
    assert [(row["word"], row["known"], row["rank"]) for row in found] == [
        ("chat", "1", "1"), ("chat", "1", "2"), ("le", "1", "1"), ("le", "1", "2")
    ]  # fmt: skip
    assert 1 >= float(found[0]["cosine"]) >= float(found[1]["cosine"])
    assert "chat" not in [row["neighbor"] for row in found[:2]]


def test_what_is_refused(refuses: Refuses) -> None:
    assert "zzz: not in the vocabulary of" in refuses("neighbors", LM, "--words", "le", "zzz", "-q")
    message = refuses("neighbors", LM, "--words", "le", "--before-highway", "-q")
    assert "is not of lm.type characters" in message
