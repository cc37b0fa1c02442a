"""The recipes of back-translation and distillation: their dry runs."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import BIN, ROOT


def dry_run(name: str, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    script = str(ROOT / "recipes" / "augmentation" / f"{name}.sh")
    given = ["bash", script, "--quick", "--out", str(out), *options]
    return subprocess.run(given, capture_output=True, text=True, env=env, check=False)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.slow
def test_back_translation_cut_short(tmp_path: Path) -> None:
    """The second half goes in by its target side alone; started again nothing is done anew."""
    out = tmp_path / "out"
    done = dry_run("back_translation", out, "--pairs", "200")
    assert done.returncode == 0, done.stderr[-3000:]
    texts = out / "texts"
    assert lines(texts / "mono.fr") == lines(texts / "train-200.fr")[100:]
    assert len(lines(texts / "mono.en")) == 100
    used = re.search(r"corpus back <bt>: (\d+) pairs", done.stderr)
    assert used and int(used[1]) == sum(bool(line.strip()) for line in lines(texts / "mono.en"))
    rows = lines(out / "back_translation-test" / "compare.tsv")
    assert len(rows) == 4 and [len(lines(out / f"test.{run}.fr")) for run in ("half", "whole")] == [40, 40]
    times = {path: path.stat().st_mtime_ns for path in out.glob("*.fr")}
    again = dry_run("back_translation", out, "--pairs", "200")
    assert again.returncode == 0, again.stderr[-3000:]
    assert times == {path: path.stat().st_mtime_ns for path in out.glob("*.fr")}


@pytest.mark.slow
def test_distillation_cut_short(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = dry_run("distillation", out, "--pairs", "200")
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(lines(out / "texts" / "distilled.fr")) == 200
    assert len(lines(out / "distillation-dev" / "compare.tsv")) == 4


def test_an_unknown_option_is_one_line(tmp_path: Path) -> None:
    done = dry_run("distillation", tmp_path / "out", "--quik")
    assert done.returncode == 2 and done.stderr.startswith("distillation.sh: unknown option --quik")
    assert done.stderr.count("\n") == 1
