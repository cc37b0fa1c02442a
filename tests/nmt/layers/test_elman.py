"""The Elman layer: a loop over its equation, steps as the whole, gradients."""

import torch

from nmt.layers.elman import Elman
from nmt.layers.initialize import initialize


def make() -> Elman:
    torch.manual_seed(0)
    layer = Elman(3, 4)
    initialize(layer, "uniform", 1.0)
    torch.nn.init.normal_(layer.bias)  # type: ignore[arg-type]
    return layer.double()


@torch.no_grad()
def test_equation_and_steps() -> None:
    layer, sizes = make(), [3, 3, 1]
    x, h = torch.randn(7, 3).double(), torch.randn(3, 4).double()
    found, last = layer.unroll_state(x, sizes, h)
    parts = zip(x.split(sizes), found.split(sizes), strict=True)
    for inputs, states in parts:
        stepped = layer.step(inputs, h[: len(inputs)])
        h = torch.sigmoid(inputs @ layer.inputs.t() + h[: len(inputs)] @ layer.recurrent.t() + layer.bias)
        assert torch.allclose(states, h, atol=1e-14) and torch.allclose(stepped, h, atol=1e-14)
    assert torch.equal(last, found[-1:])


def test_gradients() -> None:
    layer, sizes = make(), [3, 2, 2, 1]
    x, h = torch.randn(8, 3).double(), torch.randn(3, 4).double()
    x.requires_grad_(), h.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *_: layer.unroll_state(x, sizes, h)[0], [x, h, *layer.parameters()]
    )
