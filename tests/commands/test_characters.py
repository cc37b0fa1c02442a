"""Words outside the vocabulary of a character-aware language model, by the installed commands."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.test_lm import config

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.ci
def test_unknown_words_of_a_character_model(tiny: Path, tmp_path: Path, command: Command) -> None:
    """They are read by their spelling, here and in n-best lists, and have neighbors."""
    done = command("nmt-train", *config(tiny, tmp_path, "characters"))
    assert done.returncode == 0, done.stderr
    run, lines = tmp_path / "run", "le chattt\nle chattt dort\nle zzz dort\n"
    done = command("nmt-score", run, "-i", "-", "--word-scores", "-q", input=lines)
    rows = [[float(v) for v in row.split(" ||| ")[1].split()] for row in done.stdout.split("\n")[:-1]]
    assert rows[0][:2] == rows[1][:2] == rows[2][:2] and rows[1][2] != rows[2][2]
    (tmp_path / "n").write_text("0 ||| le chattt dort ||| X= -1 ||| -1\n")
    (tmp_path / "s").write_text("a\n")
    lists = [tmp_path / "n", "-s", tmp_path / "s", "-o", "-", "-q"]
    done = command("smt-rescore", *lists, "-f", f"neural-lm={run}")
    assert float(done.stdout.split("NeuralLM0= ")[1].split(" ")[0]) == pytest.approx(sum(rows[1]), abs=1e-4)
    table = command("nmt-perplexity", run, "-i", "-", "-q", input=lines).stdout
    assert "3\tof them unknown" in table
    asked = ["--words", "le", "chattt", "--count", 2, "-q"]
    for more in ([], ["--before-highway"]):
        found = command("nmt-analyze", "neighbors", run, *asked, *more).stdout.split("\n")[1:-1]
        fields = [row.split("\t") for row in found]
        assert [row[:3] for row in fields] == [
            [word, known, rank] for word, known in (("le", "1"), ("chattt", "0")) for rank in "12"
        ]
        assert "le" not in [row[3] for row in fields[:2]]
