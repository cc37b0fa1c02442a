"""TER and COMET beside BLEU and chrF: in comparisons and in differences between sentences."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from nmt.analysis import comet
from nmt.analysis.differences import DifferenceConfig, largest_differences, sentence_scores
from nmt.analysis.statistics import compare_further
from nmt.analysis.systems import SystemOutput, TestSet
from nmt.errors import ConfigError, UserError

from .conftest import GOOD, POOR, REFERENCES, Analyze, Refuses

RNG = np.random.default_rng(3)
LINES = [" ".join(RNG.choice(list("abcdef"), RNG.integers(1, 12))) for _ in range(80)]
TEST = TestSet(LINES, [LINES])


def changed(share: float) -> list[str]:
    """The lines with a share of their words replaced."""
    return [" ".join("x" if RNG.random() < share else word for word in line.split()) for line in LINES]


# A program with the options and the output of comet-score 2: the score of a sentence is the number of
# characters of its translation, and a tenth for each word of its reference.
STUB = """#!{python}
import argparse, json, sys
parser = argparse.ArgumentParser()
for name in ("-s", "-r", "--model", "--to_json"):
    parser.add_argument(name, required=True)
parser.add_argument("-t", nargs="+")
parser.add_argument("--quiet", action="store_true")
parser.add_argument("--only_system", action="store_true")
args = parser.parse_args()
read = lambda path: [line.strip() for line in open(path, encoding="utf-8")]
if open(args.model).read() == "broken":
    print("a warning", file=sys.stderr)
    sys.exit("no such layer")
sources, references = read(args.s), read(args.r)
rows = {{
    path: [
        {{"src": s, "mt": t, "ref": r, "COMET": len(t) + len(r.split()) / 10}}
        for s, t, r in zip(sources, read(path), references)
    ]
    for path in args.t
}}
json.dump(rows, open(args.to_json, "w"))
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model for the program comet-score, which is on PATH."""
    path = tmp_path / "bin" / "comet-score"
    path.parent.mkdir()
    path.write_text(STUB.format(python=sys.executable), encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent), prepend=os.pathsep)
    model = tmp_path / "model.ckpt"
    model.write_text("fine", encoding="utf-8")
    return model


def test_ter_of_a_system_and_its_p_value_are_sacrebleus() -> None:
    systems = [
        SystemOutput(name, changed(share), TEST) for name, share in (("a", 0.3), ("b", 0.33), ("c", 0.6))
    ]
    _, expected = PairedTest(
        [(system.name, system.hypotheses) for system in systems], {"TER": TER()}, [LINES], "bs", 200
    )()
    results = compare_further(systems, "ter", 200)
    assert [result.score for result in results] == pytest.approx([row.score for row in expected["TER"]])  # type: ignore[union-attr]
    assert [result.p for result in results] == [row.p_value for row in expected["TER"]]  # type: ignore[union-attr]
    assert 0.01 < (results[1].p or 0) < 1 and (results[2].p or 1) < 0.01


def test_comet_is_what_the_program_says(program: Path) -> None:
    """Of each system and sentence in order; what the program takes for the end of a line is none."""
    test = TestSet(["s", "t", ""], [["r s", "t\rv w", ""]])
    systems = [SystemOutput("a", ["xy", "", "z"], test), SystemOutput("b", ["x\ry", "yyyy", ""], test)]
    scores = comet.score_systems(systems, str(program))
    assert [values.tolist() for values in scores] == [[2.2, 0.3, 1.0], [3.2, 4.3, 0.0]]
    with pytest.raises(ConfigError, match="a: has no scores of COMET"):
        sentence_scores(systems[0], "comet")


def test_comet_in_a_comparison(small: Path, rows: Analyze, program: Path) -> None:
    """The system's score is the mean of its sentences."""
    options = ["-s", "s", "-r", "r", "--baseline", "poor", "--hypothesis", "good", "--samples", "50"]
    plain = rows("compare", *options)
    compared = rows("compare", *options, "--metric", "comet", "ter", "--comet-model", str(program))
    expected = [
        np.mean([len(line) + len(r.split()) / 10 for line, r in zip(lines, REFERENCES, strict=True)])
        for lines in (POOR, GOOD)
    ]
    assert [float(row["comet"]) for row in compared] == pytest.approx(expected, abs=1e-4)
    assert compared[0]["comet_p"] == compared[0]["ter_p"] == "" and 0 < float(compared[1]["comet_p"]) <= 1
    assert float(compared[1]["ter"]) < float(compared[0]["ter"])
    further = ("comet", "comet_p", "ter", "ter_p")
    assert [{key: row[key] for key in row if key not in further} for row in compared] == plain


def test_sentences_by_ter_and_comet(small: Path, rows: Analyze, program: Path) -> None:
    """Of TER less is better: the sentences that the second system translates better come first."""
    test = TestSet(GOOD, [REFERENCES])
    first = SystemOutput("first", [*POOR[:3], GOOD[3]], test)
    second = SystemOutput("second", [*GOOD[:3], POOR[3]], test)
    differences = [row.difference for row in largest_differences(first, second, DifferenceConfig("ter"))]
    assert [value < 0 for value in differences] == [True, True, True, False]
    assert differences[:3] == sorted(differences[:3])
    options = ["-s", "s", "-r", "r", "--hypothesis", "poor", "good", "--metric", "comet"]
    table = rows("differences", *options, "--comet-model", str(program))
    assert {row["line"]: float(row["difference"]) for row in table} == {
        str(n): len(good) - len(poor)
        for n, (poor, good) in enumerate(zip(POOR, GOOD, strict=True), 1)
        if len(good) != len(poor)
    }


def test_what_is_refused(
    small: Path, refuses: Refuses, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["compare", "-r", "r", "--baseline", "poor", "--hypothesis", "good"]
    model = ["--comet-model", str(program)]
    assert "belong together" in refuses(*options, *model)
    assert "belong together" in refuses(*options, "--metric", "comet")
    assert "needs the source text" in refuses(*options, "--metric", "comet", *model)
    options += ["-s", "s", "--metric", "comet", *model]
    assert "2 files, but COMET compares with one" in refuses(*options, "-r", "r", "good")
    program.write_text("broken", encoding="utf-8")
    assert "comet-score failed with status 1: no such layer" in refuses(*options)
    monkeypatch.setenv("PATH", "/nowhere")
    assert "the program comet-score is not on PATH" in refuses(*options)


def test_scores_that_are_not_those_of_the_program(tmp_path: Path) -> None:
    path = tmp_path / "scores"
    for content in ("", "[1]", "{}", '{"0": [{"mt": "x"}]}', '{"0": [{"COMET": "x"}]}', '{"0": []}'):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(UserError, match="is it version 2"):
            comet.read_scores(path, ["0"], 1)
    path.write_text('{"0": [{"COMET": 1}], "1": [{"COMET": 1}, {"COMET": 1}]}', encoding="utf-8")
    with pytest.raises(UserError, match="2 scores for 1 sentence"):
        comet.read_scores(path, ["0", "1"], 1)
    path.write_text('{"0": [{"COMET": NaN}]}', encoding="utf-8")
    with pytest.raises(UserError, match="not a finite number"):
        comet.read_scores(path, ["0"], 1)
    path.write_text('{"0": [{"COMET": 0.5}]}', encoding="utf-8")
    assert comet.read_scores(path, ["0"], 1)[0].tolist() == [0.5]
