"""Layer normalization: steps and unrolling agree, and the scale of the input does not matter."""

import torch

from nmt.data.batches import pack
from nmt.layers.initialize import initialize
from nmt.layers.normalized import NormalizedLSTM

E, H = 3, 4


def make() -> NormalizedLSTM:
    torch.manual_seed(0)
    layer = NormalizedLSTM(E, H)
    initialize(layer, "uniform", 1.0)
    return layer.double()


@torch.no_grad()
def test_unrolling_is_stepping() -> None:
    layer, layout = make(), pack([[1, 2], [3, 4, 5], [6]])
    inputs = torch.randn(6, E, dtype=torch.float64)
    states, last = layer.unroll_state(inputs, layout.sizes, torch.zeros(3, 2 * H, dtype=torch.float64))
    state, end = torch.zeros(3, 2 * H, dtype=torch.float64), 0
    for rows in layout.sizes:
        state = layer.step(inputs[end : end + rows], state[:rows])
        assert torch.allclose(states[end : end + rows], layer.output(state), atol=1e-12)
        end += rows
    assert torch.allclose(last, state, atol=1e-12) and state.shape == (1, layer.state_size)


@torch.no_grad()
def test_the_scale_of_the_input_does_not_matter() -> None:
    layer, x = make(), torch.randn(5, E, dtype=torch.float64)
    assert torch.allclose(layer.project(100 * x), layer.project(1000 * x), atol=1e-4)
    assert not torch.allclose(layer.project(100 * x), layer.project(-100 * x), atol=1e-4)
