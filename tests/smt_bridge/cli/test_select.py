"""smt-select: lines, scores and the table of sizes; what does not go together is refused."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nmt.io import files
from nmt.ngram import selection
from nmt.work.executors import EXECUTORS, Local
from smt_bridge.cli import select
from tests.nmt.ngram.test_selection import texts

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_the_command(tmp_path: Path, command: Command, refused: Callable[..., str]) -> None:
    inside, general, planted = texts(tmp_path)
    lines = general.read_text().split("\n")[:-1]
    done = command(
        "smt-select",
        "--in-domain",
        inside,
        "-g",
        general,
        "-o",
        tmp_path / "o",
        "--keep",
        100,
        "--scores",
        tmp_path / "s",
    )
    assert done.returncode == 0 and "100 of 500 lines selected" in done.stderr, done.stderr
    assert (tmp_path / "o").read_text().split("\n")[:-1] == [
        line for line, keep in zip(lines, planted, strict=True) if keep
    ]
    values = [float(line) for line in (tmp_path / "s").read_text().split("\n")[:-1]]
    assert max(v for v, p in zip(values, planted, strict=True) if p) < min(
        v for v, p in zip(values, planted, strict=True) if not p
    )
    done = command(
        "smt-select", "-q", "--in-domain", inside, "-g", general, "-o", tmp_path / "o", "--dev", inside
    )
    rows = [line.split("\t") for line in done.stdout.split("\n")[:-1]]
    assert rows[0] == ["lines", "perplexity", "best"] and len(rows) == 7, done.stderr
    (best,) = (row for row in rows if row[2] == "*")
    assert len((tmp_path / "o").read_text().split("\n")) - 1 == int(best[0])
    done = command(
        "smt-select",
        "-q",
        "--in-domain",
        inside,
        inside,
        "-g",
        general,
        general,
        "-o",
        tmp_path / "a",
        tmp_path / "b",
        "--words",
        200,
    )
    assert done.returncode == 0 and (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes(), (
        done.stderr
    )
    assert 190 <= len((tmp_path / "a").read_text().split()) <= 200


def test_what_is_refused(tmp_path: Path, command: Command, refused: Callable[..., str]) -> None:
    inside, general, _ = texts(tmp_path)
    (tmp_path / "short").write_text("a0\n")
    line = ["smt-select", "-q", "--keep", 5, "-o", tmp_path / "o"]
    assert "found 1, 2 and 1" in refused(command(*line, "--in-domain", inside, "-g", general, general))
    assert "give files" in refused(command(*line, "--in-domain", "-", "-g", general))
    assert "no word occurs 2 times" in refused(
        command(*line, "--in-domain", tmp_path / "short", "-g", general)
    )
    assert "short" in refused(
        command(*line, tmp_path / "p", "--in-domain", inside, inside, "-g", general, tmp_path / "short")
    )
    assert "not allowed with" in refused(command(*line, "--in-domain", inside, "-g", general, "--words", 4))
    assert not (tmp_path / "o").exists()


@pytest.mark.ci
def test_multi30k_is_found_again(nmt_data: Path, tmp_path: Path, command: Command) -> None:
    """In-domain Multi30k, general Multi30k and Tatoeba shuffled, both sides: of the 29,000 lines selected at
    least 95% are Multi30k's."""
    domain = [nmt_data / "multi30k" / f"train.{side}" for side in ("en", "fr")]
    others = [nmt_data / "tatoeba-enfr" / f"train.{side}.gz" for side in ("en", "fr")]
    rows = [(row, True) for row in files.parallel(*domain)] + [
        (row, False) for row in files.parallel(*others)
    ]
    random.Random(1).shuffle(rows)
    for number, side in enumerate(("en", "fr")):
        files.write_text(tmp_path / f"all.{side}", (row[number] for row, _ in rows))
    general, out = [tmp_path / "all.en", tmp_path / "all.fr"], [tmp_path / "o.en", tmp_path / "o.fr"]
    done = command(
        "smt-select",
        "--in-domain",
        *domain,
        "-g",
        *general,
        "-o",
        *out,
        "--keep",
        29000,
        "--scores",
        tmp_path / "s",
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    values = np.array([float(line) for line in files.read_lines(tmp_path / "s")])
    found = [rows[row][1] for row in np.argsort(values, kind="stable")[:29000]]
    assert sum(found) >= 0.95 * 29000


def test_a_job_in_blocks_selects_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are learned from a sample that lies beside the output; nothing of it is left."""
    inside, general, _ = texts(tmp_path)
    monkeypatch.setattr(selection, "BLOCK", 70)
    monkeypatch.setitem(EXECUTORS, "blocks", Local)
    found = []
    for name, more in (("here", []), ("there", ["--executor", "blocks"]), ("kept", ["--resume"])):
        folder = tmp_path / name
        line = ["--in-domain", str(inside), "-g", str(general), "--keep", "50", "-q", *more]
        assert select.main([*line, "-o", f"{folder}/out", "--scores", f"{folder}/scores"]) == 0
        assert sorted(path.name for path in folder.iterdir()) == ["out", "scores"]
        found.append([path.read_bytes() for path in sorted(folder.iterdir())])
    assert found[0] == found[1] == found[2]


def test_several_processes_need_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inside, general, _ = texts(tmp_path)
    line = ["--in-domain", str(inside), "-g", str(general), "--keep", "50", "-q", "-o", "/dev/null"]
    assert select.main([*line, "--workers", "2"]) == 2
    assert "need a folder beside the output" in capsys.readouterr().err
