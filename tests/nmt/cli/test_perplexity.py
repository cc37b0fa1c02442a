"""nmt-perplexity, in process: its table is the sums of the scores of lines."""

import math
from pathlib import Path

import pytest

from nmt.cli import perplexity
from nmt.runs.language_model import line_scorer
from nmt.runs.line_scores import LineScores

RUN = Path(__file__).resolve().parents[2] / "golden" / "0.5.0" / "lm"


def test_totals_by_hand() -> None:
    totals = perplexity.Totals(seconds=2.0)
    totals.add("ab c", LineScores(units=["ab", "c"], log_probs=[-1.0, -2.0, -3.0], known=[True, False]))
    totals.add("", LineScores(units=[], log_probs=[-4.0], known=[]))
    found = {name: value for value, name in totals.rows()}
    assert found["sentences"] == "2" and found["words or subword units"] == "2"
    assert (
        found["perplexity a unit, ends of sentences counted, unknown ones as <unk>"] == f"{math.exp(2.5):.4f}"
    )
    assert found["perplexity without unknown units"] == f"{math.exp(8 / 3):.4f}"
    assert found["bits a character, ends of lines counted"] == f"{10 / math.log(2) / 6:.5f}"
    assert found["units a CPU second"] == "2" and "mean |log Z| of distinct contexts" not in found
    assert math.isnan(perplexity.perplexity(0.0, 0))


def test_totals_of_parts_are_those_of_the_whole() -> None:
    scored = [LineScores(["a", "b"], [-0.1, -1 / 3, -0.5], [True, False]), LineScores([], [-0.25], [])]
    whole, parts = perplexity.Totals(), perplexity.Totals()
    for line, one in zip(("ab", ""), scored, strict=True):
        part = perplexity.Totals()
        for totals in (whole, part):
            totals.add(line, one)
        parts.add_packed(part.packed())
    assert parts == whole and parts.perplexity == whole.perplexity


def test_a_run(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Un garçon ne suit pas l'homme.\n\n", encoding="utf-8")
    arguments = ["-i", str(tmp_path / "text"), "-o", str(tmp_path / "table"), "-q", "--threads", "1"]
    assert perplexity.main([str(RUN), *arguments, "--assume-normalized"]) == 0
    lines = (tmp_path / "table").read_text(encoding="utf-8").split("\n")[:-1]
    found = {name: value for value, name in (line.split("\t") for line in lines)}
    model = line_scorer(RUN, normalized=True)
    expected = sum(sum(line.log_probs) for line in model.score(["Un garçon ne suit pas l'homme.", ""]))
    assert float(found["log p of the text, natural"]) == pytest.approx(expected, abs=1e-3)
    assert found["log Z = 0: probabilities do not sum to one"] == "assumed"
    assert float(found["mean |log Z| of distinct contexts"]) > 0


def test_an_empty_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").touch()
    assert perplexity.main([str(RUN), "-i", str(tmp_path / "text"), "-q"]) == 2
    assert "empty file, expected one sentence a line" in capfd.readouterr().err
