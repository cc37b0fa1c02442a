"""The back end of matrix products: exact, chosen once, remembered."""

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
