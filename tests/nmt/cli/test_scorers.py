"""Blocks of pairs and lines as nmt-score computes them."""

from pathlib import Path

import pytest

from nmt import Run, load_language_model
from nmt.cli import score, scorers
from nmt.cli.scorers import Block, Scorer
from nmt.errors import ConfigError, DataError
from tests.commands.runs import LINES
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden" / "0.5.0"
PAIRS = [(line, line) for line in LINES]


def made(*words: object) -> Scorer:
    return scorers.load(score.parser().parse_args(list(map(str, words))))


def test_scores_of_pairs_are_those_of_python() -> None:
    work = made(GOLDEN / "translator", "-s", "s", "-t", "t")
    expected = Run.load(GOLDEN / "translator").score(PAIRS)
    lines, sums = work.lines(Block(0, PAIRS))
    assert [float(line) for line in lines] == pytest.approx(expected, abs=1e-6)
    more = work.lines(Block(4, PAIRS[:1]))[1]
    total = sum(expected) + expected[0]
    assert work.summary([*sums, *more], 5).startswith(f"5 pairs, mean log p {total / 5:.4f}, a word ")
    assert work.summary([], 0) == ""


def test_scores_of_text_are_those_of_python() -> None:
    work = made(GOLDEN / "lm", "-i", "text")
    lines, sums = work.lines(Block(0, [(line,) for line in LINES]))
    found = load_language_model(GOLDEN / "lm").score(LINES)
    assert [float(line) for line in lines] == pytest.approx([sum(one.log_probs) for one in found], abs=1e-6)
    assert work.summary(sums * 2, 8).startswith("8 lines, perplexity ")


def test_a_line_that_is_too_long_has_its_number() -> None:
    work = made(GOLDEN / "translator", "-s", "s", "-t", "t", "--max-line-words", 2)
    with pytest.raises(DataError, match=r"^s:12: "):
        work.lines(Block(10, [("a", "b"), ("a boy does not follow the man", "b")]))


def test_lines_that_depend_on_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    work = made(GOLDEN / "lm", "-i", "text")
    work.check(in_parts=True)
    monkeypatch.setattr("nmt.runs.language_model.NeuralLineScorer.carries", True)
    work.check(in_parts=False)
    with pytest.raises(ConfigError, match="each line depends on those before it"):
        work.check(in_parts=True)


def test_scores_depend_on_the_files_of_the_model(tmp_path: Path) -> None:
    names = [path.name for path in made(GOLDEN / "lm", "-i", "text").models()]
    assert "config.yaml" in names and len(names) > 2
    pairs = made(GOLDEN / "translator", "-s", "s", "-t", "t").models()
    assert all(path.parent == GOLDEN / "translator" for path in pairs) and len(pairs) > 2
