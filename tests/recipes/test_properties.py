"""The properties recipe: joined lines keep every sentence; the whole recipe, cut short, is a slow test."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from recipes.properties import corpus
from tests.conftest import BIN, ROOT


def test_joined_lines_are_neighbours_in_order() -> None:
    rows = [(f"a{n} b", f"x{n}", f"s{n}") for n in range(50)]
    lines = list(corpus.joined(rows, random.Random(1)))
    for column in range(3):
        assert " ".join(line[column] for line in lines) == " ".join(row[column] for row in rows)
    sizes = [len(line[1].split()) for line in lines]
    assert set(sizes) == {1, 2, 3, 4} and lines == list(corpus.joined(rows, random.Random(1)))
    assert all(len(line[0].split()) == 2 * len(line[1].split()) == 2 * len(line[2].split()) for line in lines)


def test_lengths_that_fit() -> None:
    assert corpus.fits(("a " * 5, "b " * 60)) and corpus.fits(("a " * 5, "b " * 5, "c"))
    assert not corpus.fits(("a " * 4, "b " * 5)) and not corpus.fits(("a " * 5, "b " * 61))


def test_missing_data_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "recipes/properties/corpus.py", "multi30k", tmp_path / "out"],
        capture_output=True,
        text=True,
        env={**os.environ, "NMT_DATA": ""},
    )
    assert done.returncode == 2 and done.stderr.startswith("set NMT_DATA") and done.stderr.count("\n") == 1


@pytest.mark.slow
def test_the_whole_recipe_cut_short(tmp_path: Path) -> None:
    """Three small models of a few updates on the generated corpus: every table and figure is there, and the
    report."""
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    script = (
        (ROOT / "recipes/properties/run.sh")
        .read_text()
        .replace('cd "$(dirname "$0")/../.."', f"cd {tmp_path}")
    )
    (tmp_path / "run.sh").write_text(script)
    options = [
        "generated",
        "long",
        "300",
        "",
        "training.max_steps=30",
        "model.hidden=32",
        "model.embedding=16",
        "model.maxout=16",
        "training.dev_beam=1",
    ]
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", str(tmp_path / "run.sh"), *options],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    out = tmp_path / "runs/properties/generated-long-300"
    for name in ("subsets", "by-length", "by-unknown", "samples", "curves", "parse"):
        assert (out / "analysis" / f"{name}.tsv").stat().st_size and (
            out / "analysis" / f"{name}.svg"
        ).stat().st_size
    assert "attention" in (out / "report.html").read_text(encoding="utf-8")
