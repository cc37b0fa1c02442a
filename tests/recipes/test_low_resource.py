"""The recipe of learning curves: its texts, its table and figure; the whole recipe, cut short, is a slow
test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.io import files
from nmt.metrics import corpus_bleu
from recipes.low_resource import corpora, curve
from tests.conftest import BIN, ROOT


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A corpus in a folder of its own."""
    folder = tmp_path / "mine"
    for part, count in (("train", 50), ("dev", 3), ("test", 4)):
        for language in ("en", "fr"):
            files.write_text(folder / f"{part}.{language}", [f"{part} {language} {n}" for n in range(count)])
    return folder


def pairs_of(folder: Path, size: int) -> list[tuple[str, ...]]:
    paths = (folder / f"train-{size}.{language}" for language in ("en", "fr"))
    return list(zip(*(path.read_text().split("\n")[:-1] for path in paths), strict=True))


def test_each_size_contains_the_smaller_ones(
    texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpora.main(str(texts), tmp_path / "out", [5, 20, 60])
    assert "has 50 pairs; 60 is left out" in capsys.readouterr().err
    small, large = (pairs_of(tmp_path / "out", size) for size in (5, 20))
    assert small == large[:5] and len(set(large)) == 20 and not (tmp_path / "out/train-60.en").exists()
    assert all(a.split()[2] == b.split()[2] for a, b in large), "pairs stay pairs"
    assert [a.split()[2] for a, _ in large] != [str(n) for n in range(20)], "not the beginning of the corpus"
    assert (tmp_path / "out/dev.fr").read_text() == (texts / "dev.fr").read_text()


def test_missing_data_is_one_line(tmp_path: Path) -> None:
    script = [
        sys.executable,
        str(ROOT / "recipes/low_resource/corpora.py"),
        "tatoeba",
        str(tmp_path / "out"),
        "5",
    ]
    env = {**os.environ, "NMT_DATA": str(tmp_path)}
    done = subprocess.run(script, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "train.en.gz: cannot read" in done.stderr


def test_the_hybrid_is_compared_with_the_better_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A size without an attention model has a gap in its curve."""
    pytest.importorskip("matplotlib")
    reference = [f"a b c d{n % 7} e f" for n in range(40)]
    files.write_text(tmp_path / "ref", reference)
    worse = {"phrase-based": 3, "neural": 2, "hybrid": 5}  # every n-th line is wrong
    for size, seed, system in [(10, 1, name) for name in worse] + [
        (5, seed, name) for seed in (1, 2) for name in ("phrase-based", "hybrid")
    ]:
        lines = [line if n % worse[system] else f"x {n + seed}" for n, line in enumerate(reference)]
        files.write_text(tmp_path / f"{size}.seed-{seed}.{system}", lines)
    curve.main(tmp_path, str(tmp_path / "ref"), "it")
    small, large = [line.split("\t") for line in capsys.readouterr().out.split("\n")[1:3]]
    of_part = [line if n % 3 else f"x {n + 1}" for n, line in enumerate(reference)]
    assert large[:3] == ["10", "1", f"{corpus_bleu(of_part, [reference]).score:.2f}"]
    assert small[:2] == ["5", "2"] and small[3] == "" and float(large[3]) < float(large[2]) < float(large[4])
    assert small[5] == large[5] == "phrase-based" and len(small[7].split()) == 2
    assert float(large[6]) == pytest.approx(float(large[4]) - float(large[2]), abs=0.011)
    assert (tmp_path / "curve.png").stat().st_size > 5000 and "hybrid" in (tmp_path / "curve.svg").read_text()


@pytest.mark.slow
def test_the_whole_recipe_cut_short(tmp_path: Path) -> None:
    """Two sizes of the grammar's corpus; started again it does nothing anew."""
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    script, out = str(ROOT / "recipes/low_resource/run.sh"), str(tmp_path / "out")
    given = [
        "bash",
        script,
        "--data",
        "generated",
        "--out",
        out,
        "--sizes",
        "300 1000 90000",
        "--seeds",
        "1",
        "--budget",
        "180s",
    ]
    done = subprocess.run(given, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = (tmp_path / "out/curve.tsv").read_text().split("\n")
    assert [row.split("\t")[0] for row in rows[1:3]] == ["300", "1000"] and "neural" in rows[0]
    assert (tmp_path / "out/curve.svg").exists() and (tmp_path / "out/1000.seed-1/report.html").exists()
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.seed-1.*")}
    again = subprocess.run(given, capture_output=True, text=True, env=env, check=False)
    assert again.returncode == 0 and len(times) >= 6
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.seed-1.*")}
