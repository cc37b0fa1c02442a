"""Highway layers: the equation, and what closed and open gates do."""

import torch

from nmt.layers.highway import TRANSFORM_BIAS, Highway
from nmt.layers.initialize import initialize


def make() -> Highway:
    torch.manual_seed(0)
    layer = Highway(3)
    initialize(layer, "glorot", 0)
    return layer.double()


@torch.no_grad()
def test_gates() -> None:
    layer, y = make(), torch.randn(4, 3).double()
    assert layer.transform_bias.tolist() == [TRANSFORM_BIAS] * 3
    t = torch.sigmoid(y @ layer.transform.t() + TRANSFORM_BIAS)
    g = (y @ layer.matrix.t() + layer.bias).clamp(min=0)
    assert torch.allclose(layer(y), t * g + (1 - t) * y, atol=1e-14)
    layer.transform_bias.fill_(-1e9)
    assert torch.equal(layer(y), y)
    layer.transform_bias.fill_(1e9)
    assert torch.allclose(layer(y), g, atol=1e-14)
