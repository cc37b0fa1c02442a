"""The complete recipe of the quickstart, a slow test."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.slow
def test_the_whole_recipe_from_the_installed_commands(tmp_path: Path) -> None:
    """Expected: recipes/quickstart/expected.tsv; our BLEU is at least twice the baseline's and 20 points
    above it."""
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes")
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "recipes/quickstart/run.sh"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    summary = done.stdout.rstrip("\n").split("\n")[-4:]
    ours, baseline = float(summary[0].split()[2]), float(summary[1].split()[5])
    for row in lines(ROOT / "recipes/quickstart/expected.tsv")[1:]:
        name, value, tolerance = row.split("\t")
        assert abs({"bleu": ours, "word_for_word_bleu": baseline}[name] - float(value)) <= float(tolerance)
    assert ours >= 2 * baseline and ours >= baseline + 20
    assert summary[2] == "run directory: runs/quickstart/model"
    rows = [line.split("\t") for line in lines(tmp_path / "runs/quickstart/analysis/by-length.tsv")[1:]]
    assert len(rows) > 60 and all(int(row[4]) >= 50 for row in rows)
