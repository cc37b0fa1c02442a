"""nmt-score: one line a pair."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.cli import perplexity, score
from nmt.runs.language_model import line_scorer
from tests.conftest import ROOT

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_score_one_line_a_pair_with_words_that_sum(tiny: Path, command: Command) -> None:
    done = command(
        "nmt-score",
        tiny / "run",
        "-q",
        "--source",
        tiny / "dev.en",
        "--target",
        tiny / "dev.fr",
        "--word-scores",
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")[:-1]
    assert len(lines) == 20
    for line in lines:
        total, words = line.split(" ||| ")
        assert sum(map(float, words.split())) == pytest.approx(float(total), abs=1e-4)
    plain = command(
        "nmt-score", tiny / "run", "-q", "-s", tiny / "dev.en", "-t", tiny / "dev.fr"
    ).stdout.split()
    assert plain == [line.split(" ||| ")[0] for line in lines]


def test_score_keeps_empty_lines(tiny: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("The man sees the dog.\n\n")
    (tmp_path / "t").write_text("\nL'homme voit le chien.\n")
    done = command(
        "nmt-score", tiny / "run", "-q", "-s", tmp_path / "s", "-t", tmp_path / "t", "--word-scores"
    )
    assert [len(line.split(" ||| ")[1].split()) for line in done.stdout.split("\n")[:-1]] == [1, 7]


def test_score_refuses_unequal_files(
    tiny: Path, command: Command, tmp_path: Path, refused: Callable[..., str]
) -> None:
    (tmp_path / "t").write_text("x\n" * 7)
    done = command(
        "nmt-score", tiny / "run", "-s", tiny / "dev.en", "-t", tmp_path / "t", "-o", tmp_path / "out"
    )
    assert "t: 7 lines, but" in refused(done) and "has 20" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_language_model_says_both_perplexities(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = ROOT / "tests" / "golden" / "0.5.0" / "lm"
    (tmp_path / "text").write_text("Un garçon ne suit pas xyzzy.\n\n", encoding="utf-8")
    assert score.main([str(run), "-i", str(tmp_path / "text"), "-o", str(tmp_path / "out")]) == 0
    totals = perplexity.Totals()
    for line, scored in zip(
        ("Un garçon ne suit pas xyzzy.", ""),
        line_scorer(run).score(["Un garçon ne suit pas xyzzy.", ""]),
        strict=True,
    ):
        totals.add(line, scored)
    assert totals.unknown == 1 and totals.perplexity != totals.known_perplexity
    assert f"2 lines, {totals.perplexities()} (lm@" in capfd.readouterr().err
