"""The recipe of hybrid systems: its choice on dev; the whole recipe, cut short, is a slow test."""

import os
import subprocess
from pathlib import Path

import pytest

from nmt.io import files
from nmt.metrics import corpus_bleu
from recipes.hybrid import summary
from tests.conftest import BIN, ROOT

REFERENCE = [f"a b c d{n % 7} e f" for n in range(40)]


def write_rows(folder: Path) -> None:
    """Two systems; the second is better on dev and worse on test."""
    for name, every in (("baseline:rescored", {"dev": 3, "test": 5}), ("attention", {"dev": 6, "test": 2})):
        for part, wrong in every.items():
            for seed in (1, 2, 3):
                lines = [line if n % (wrong + seed) else "x" for n, line in enumerate(REFERENCE)]
                files.write_text(folder / f"{name}.seed-{seed}.{part}", lines)
    for part in ("dev", "test"):
        files.write_text(folder / part, REFERENCE)


def test_systems_are_chosen_on_dev(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(tmp_path)
    names = ["baseline:rescored", "attention"]
    assert summary.best(tmp_path, str(tmp_path / "dev"), names) == "attention"
    summary.show(tmp_path, str(tmp_path / "dev"), str(tmp_path / "test"), names)
    head, first, second, note = capsys.readouterr().out.split("\n")[:4]
    assert head.split("\t") == ["row", "dev", "test", "chosen"] and first.endswith("\t")
    assert second.split("\t")[3] == "by dev" and float(first.split("\t")[2]) > float(second.split("\t")[2])
    scores = [
        corpus_bleu(
            [line if n % (6 + seed) else "x" for n, line in enumerate(REFERENCE)], [REFERENCE], "none"
        ).score
        for seed in (1, 2, 3)
    ]
    assert float(second.split("\t")[1]) == pytest.approx(sum(scores) / 3, abs=0.006)
    assert (
        note.startswith("# attention against baseline:rescored on test")
        and len(note.split(": ")[1].split()) == 3
    )


@pytest.mark.slow
def test_the_whole_recipe_cut_short(tmp_path: Path) -> None:
    """Tiny networks on the grammar's corpus: every file is there; started again it does nothing anew."""
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    script, out = str(ROOT / "recipes/hybrid/run.sh"), str(tmp_path / "out")
    given = [
        "bash",
        script,
        "--data",
        "generated",
        "--quick",
        "--joints",
        "--out",
        out,
        "--rows",
        "cslm+nnjm cslm+nnjm+attention",
    ]
    done = subprocess.run(given, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    names = [row.split("\t")[0] for row in (tmp_path / "out/table.tsv").read_text().split("\n")]
    rows = ["baseline", "cslm+nnjm", "cslm+nnjm+attention"]
    assert names[:7] == ["row", *rows, "neural-1", "neural-2", "neural-1+2"]
    assert {"baseline:rescored", "cslm+nnjm:rescored"} < set(names) and any(
        name.endswith(":joints") for name in names
    )
    summed = (tmp_path / "out/summary.tsv").read_text()
    assert summed.count("by dev") == 1 and summed.count("\n# ") == 1
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/rows").glob("*:mbr.*")}
    again = subprocess.run(given, capture_output=True, text=True, env=env, check=False)
    assert again.returncode == 0 and len(times) == 9
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "out/rows").glob("*:mbr.*")}
