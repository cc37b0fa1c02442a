from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from nmt import fastmath
from nmt.data.batches import make_batch
from nmt.errors import ConfigError
from nmt.models.config import RNNConfig
from nmt.models.translator import Translator


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


def test_a_choice_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A noisy start must not decide anew: the file of a run holds what was chosen on this processor."""
    memory = tmp_path / "matmul.tsv"
    monkeypatch.setattr(fastmath, "measure", lambda: (2.0, 2.0))
    assert fastmath.choose("auto", memory).back_end == "onednn"
    monkeypatch.setattr(fastmath, "measure", lambda: (2.0, 1.0))
    assert fastmath.choose("auto", memory).back_end == "onednn" and fastmath.in_use() == "onednn"
    assert fastmath.choose("mkl", memory).back_end == "mkl"  # a wish goes before
    monkeypatch.setattr(fastmath, "processor", lambda: "another")
    assert fastmath.choose("auto", memory).back_end == "mkl"
    assert len(memory.read_text().split("\n")) == 3


def test_a_damaged_memory_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"\xff\n")
    monkeypatch.setattr(fastmath, "measure", lambda: (2.0, 2.0))
    assert fastmath.choose("auto", tmp_path / "m").back_end == "onednn"


@pytest.mark.parametrize(("precision", "least", "most"), [("bf16", 1e-4, 0.05), ("int8", 1e-4, 0.2)])
def test_reduced_products_err_a_little_and_only_inside(precision: str, least: float, most: float) -> None:
    torch.manual_seed(1)
    layer = torch.nn.Linear(100, 60)
    x, other = torch.randn(20, 100), torch.randn(100, 60)
    with torch.no_grad():
        whole = torch.addmm(layer.bias, x, layer.weight.t())
        exact = [
            torch.nn.functional.linear(x, layer.weight, layer.bias),
            torch.mm(x, layer.weight.t()),
            whole,
            whole + 1,
        ]
        with fastmath.Reduced(precision, layer):
            out = torch.empty(20, 60)
            torch.mm(x, layer.weight.t(), out=out)
            found = [
                torch.nn.functional.linear(x, layer.weight, layer.bias),
                out,
                torch.addmm(layer.bias, x, layer.weight.t()),
            ]
            found.append((layer.bias + torch.ones(20, 60)).addmm_(x, layer.weight.t()))
            assert torch.equal(torch.mm(x, other), x @ other)  # not a matrix of the model
        for a, b in zip(exact, found, strict=True):
            assert least < float((a - b).abs().max()) < most
        assert torch.equal(torch.mm(x, layer.weight.t()), exact[1])


@pytest.mark.parametrize(
    "options",
    [{"encoder": "birnn", "attention": 64}, {"cell": "lstm"}, {"encoder": "grconv"}, {"decoder_layers": 2}],
    ids=str,
)
def test_mixed_gradients_are_those_of_fp32_up_to_rounding(options: dict[str, object]) -> None:
    """Loss to 1%, the direction of every gradient to a cosine of .99; and it really is another arithmetic,
    forward and backward."""
    torch.manual_seed(0)
    model = Translator(
        RNNConfig(embedding=64, hidden=96, maxout=48, init="glorot", bias=True, **options), 400, 500
    )  # type: ignore[arg-type]
    batch = make_batch(
        [[3 + n % 90, 7, 8 + n] for n in range(40)], [[5 + n, 9, 11, 3 + n % 7] for n in range(40)]
    )
    results = []
    for mode in (nullcontext(), fastmath.Mixed()):
        model.zero_grad()
        with mode:
            loss = model.loss(batch)
            torch.autograd.backward(loss)
        results.append((float(loss.detach()), [parameter.grad.clone() for parameter in model.parameters()]))
    assert results[1][0] == pytest.approx(results[0][0], rel=0.01) and results[1][0] != results[0][0]
    for (name, _), exact, rounded in zip(model.named_parameters(), results[0][1], results[1][1], strict=True):
        if exact.norm() > 1e-6:
            assert torch.cosine_similarity(exact.flatten(), rounded.flatten(), 0) > 0.99, name
    changed = {
        name
        for (name, _), exact, rounded in zip(
            model.named_parameters(), results[0][1], results[1][1], strict=True
        )
        if not torch.equal(exact, rounded)
    }
    assert "decoder.cell.recurrent" in changed  # a gradient of a hand-written backward pass
    assert fastmath.Mixed.entered == []


def test_recurrent_gradients_are_made_in_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside backward the mode is entered again: its products are asked for there too."""
    torch.manual_seed(0)
    model = Translator(RNNConfig(embedding=64, hidden=128, maxout=48, init="glorot"), 90, 90)
    batch = make_batch([[3 + n, 7, 8] for n in range(64)], [[5 + n % 80, 9, 11] for n in range(64)])
    shapes: set[tuple[int, ...]] = set()
    product = fastmath.Mixed.product
    monkeypatch.setattr(
        fastmath.Mixed,
        "product",
        lambda self, a, b: (shapes.add((*a.shape, *b.shape)), product(self, a, b))[1],
    )
    with fastmath.Mixed():
        loss = model.loss(batch)
        shapes.clear()
        torch.autograd.backward(loss)
    assert (64, 256, 256, 128) in shapes  # dz and dr times U_z, U_r, for the 64 sentences of a step


def test_bf16_is_refused_where_the_processor_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastmath, "flags", lambda: {"avx2", "avx512f"})
    with pytest.raises(ConfigError, match="bf16 needs a processor with avx512_bf16"):
        fastmath.check_precision("bf16", "cpu")
    fastmath.check_precision("fp32", "cpu")
    monkeypatch.setattr(fastmath, "flags", lambda: {"avx512_bf16"})
    fastmath.check_precision("bf16", "cpu")
    with pytest.raises(ConfigError, match="expected one of fp32, bf16"):
        fastmath.check_precision("fp16", "cpu")


