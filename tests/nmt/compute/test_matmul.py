"""The back end of matrix products: exact, chosen once, remembered."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nmt.compute import matmul
from nmt.errors import ConfigError


@pytest.fixture(autouse=True)
def back() -> Iterator[None]:
    yield
    matmul.use("mkl")


def test_the_choice_is_exact_and_made() -> None:
    choice = matmul.choose("auto")
    a, b = torch.randn(50, 400), torch.randn(400, 60)
    assert float((a @ b - (a.double() @ b.double())).abs().max()) < 1e-3  # bf16 inputs would err by 0.1
    assert choice.back_end in matmul.BACK_ENDS


@pytest.mark.parametrize(
    ("error", "speed", "expected"),
    [(2.0, 2.0, "onednn"), (2.0, 1.1, "mkl"), (1000.0, 9.0, "mkl")],
)
def test_rule(monkeypatch: pytest.MonkeyPatch, error: float, speed: float, expected: str) -> None:
    monkeypatch.setattr(matmul, "measure", lambda: (error, speed))
    assert matmul.choose("auto").back_end == expected


@pytest.mark.parametrize("waiting", matmul.BACK_ENDS)
def test_what_else_the_machine_does_does_not_count(monkeypatch: pytest.MonkeyPatch, waiting: str) -> None:
    """A back end that has to wait is not slower for it. The wait is ten times as long as a product takes."""
    product, quiet = torch.addmm, matmul.measure()[1]

    def disturbed(*given: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        if matmul.in_use() == waiting:
            time.sleep(0.02)
        return product(*given, out=out)

    monkeypatch.setattr(torch, "addmm", disturbed)
    assert quiet / 3 < matmul.measure()[1] < quiet * 3


def test_an_inexact_back_end_is_refused_even_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "measure", lambda: (1000.0, 9.0))
    with pytest.raises(ConfigError, match="errs 1000 times"):
        matmul.choose("onednn")
    with pytest.raises(ConfigError, match="expected auto, mkl or onednn"):
        matmul.choose("amx")


def test_a_choice_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A noisy start must not decide anew: the file of a run holds what was chosen on this processor."""
    memory = tmp_path / "matmul.tsv"
    monkeypatch.setattr(matmul, "measure", lambda: (2.0, 2.0))
    assert matmul.choose("auto", memory).back_end == "onednn"
    monkeypatch.setattr(matmul, "measure", lambda: (2.0, 1.0))
    assert matmul.choose("auto", memory).back_end == "onednn" and matmul.in_use() == "onednn"
    assert matmul.choose("mkl", memory).back_end == "mkl"  # a wish goes before
    monkeypatch.setattr(matmul, "processor", lambda: "another")
    assert matmul.choose("auto", memory).back_end == "mkl"
    assert len(memory.read_text().split("\n")) == 3


def test_a_damaged_memory_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"\xff\n")
    monkeypatch.setattr(matmul, "measure", lambda: (2.0, 2.0))
    assert matmul.choose("auto", tmp_path / "m").back_end == "onednn"


PROGRAM = """
import torch
from nmt.compute import matmul

matmul.use("onednn")
columns = torch.ones(32, 32)
for _ in range(2):
    for rows in range(100, 200):
        torch.ones(rows, 32) @ columns
"""


def compiled(capacity: str) -> int:
    """Kernels that a process compiles for 100 shapes of matrices, in turn and twice, if so many are kept."""
    own = {name: capacity for name in matmul.CACHES if capacity}
    theirs = {name: value for name, value in os.environ.items() if name not in matmul.CACHES}
    environment = theirs | own | {"ONEDNN_VERBOSE": "profile_create"}
    call = [sys.executable, "-c", PROGRAM]
    said = subprocess.run(call, env=environment, check=True, capture_output=True, text=True).stdout
    return said.count("create:cache_miss")


@pytest.mark.ci
def test_few_kernels_are_kept_unless_the_user_says_otherwise() -> None:
    """All shapes are compiled anew where 64 are kept, none where 150 are."""
    if not (once := compiled("150")):
        pytest.skip("torch does not take oneDNN on this processor")
    assert compiled("") > 1.5 * once
