from collections.abc import Iterator

import pytest
import torch

from nmt import fastmath
from nmt.errors import ConfigError


@pytest.fixture(autouse=True)
def back() -> Iterator[None]:
    yield
    fastmath.use("mkl")


def test_the_choice_is_exact_and_made() -> None:
    choice = fastmath.choose("auto")
    a, b = torch.randn(50, 400), torch.randn(400, 60)
    assert float((a @ b - (a.double() @ b.double())).abs().max()) < 1e-3  # bf16 inputs would err by 0.1
    assert choice.back_end in fastmath.BACK_ENDS


@pytest.mark.parametrize(
    ("error", "speed", "expected"),
    [(2.0, 2.0, "onednn"), (2.0, 1.1, "mkl"), (1000.0, 9.0, "mkl")],
)
def test_rule(monkeypatch: pytest.MonkeyPatch, error: float, speed: float, expected: str) -> None:
    monkeypatch.setattr(fastmath, "measure", lambda: (error, speed))
    assert fastmath.choose("auto").back_end == expected


def test_an_inexact_back_end_is_refused_even_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastmath, "measure", lambda: (1000.0, 9.0))
    with pytest.raises(ConfigError, match="errs 1000 times"):
        fastmath.choose("onednn")
    with pytest.raises(ConfigError, match="expected auto, mkl or onednn"):
        fastmath.choose("amx")
