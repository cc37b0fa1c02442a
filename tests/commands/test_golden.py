"""A run of an earlier version translates as it did: see tests/golden/README.md."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt import nbest

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def test_an_old_run_translates_as_it_did(command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = command(
        "nmt-translate", GOLDEN / "run-1", "-q", "--matmul", "mkl", "--input", GOLDEN / "source.en"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (GOLDEN / "run-1.fr").read_text(encoding="utf-8")


def test_an_old_run_scores_as_it_did(command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = command(
        "nmt-translate",
        GOLDEN / "run-1",
        "-q",
        "--matmul",
        "mkl",
        "-b",
        5,
        "--n-best",
        3,
        "--input",
        GOLDEN / "source.en",
    )
    found = [nbest.parse(line, "x") for line in done.stdout.split("\n")[:-1]]
    expected = list(nbest.read(GOLDEN / "run-1.nbest"))
    assert [(entry.sentence, entry.words) for entry in found] == [
        (entry.sentence, entry.words) for entry in expected
    ]
    for a, b in zip(found, expected, strict=True):
        assert a.features["NMT0"] == pytest.approx(b.features["NMT0"], abs=1e-3)
