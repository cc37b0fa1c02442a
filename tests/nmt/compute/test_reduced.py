"""Products in bf16 and int8: a small error, and only inside."""

import pytest
import torch

from nmt.compute.reduced import Reduced, entered


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
        with Reduced(precision, layer):
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


def test_models_that_are_entered_together() -> None:
    layers = [torch.nn.Linear(8, 8) for _ in range(2)]
    x = torch.randn(3, 8)
    with torch.no_grad():
        exact = [layer(x) for layer in layers]
        with entered([Reduced("int8", layer) for layer in layers]):
            assert not any(torch.equal(layer(x), y) for layer, y in zip(layers, exact, strict=True))
        with entered([]):
            assert all(torch.equal(layer(x), y) for layer, y in zip(layers, exact, strict=True))
