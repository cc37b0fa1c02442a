"""Layers whose state is a hidden vector."""

from collections.abc import Callable

import pytest
import torch

from nmt.layers.cells import GRU
from nmt.layers.computation import ComputationSettings
from nmt.layers.hidden_state import HiddenState
from nmt.layers.initialize import initialize
from nmt.layers.variable import VCRNN

LAYERS: dict[str, Callable[[int], HiddenState]] = {
    "gru": lambda context: GRU(3, 4, context),
    "vcrnn": lambda context: VCRNN(3, 4, ComputationSettings(), context),
}


def made(kind: str, context: int = 0) -> HiddenState:
    torch.manual_seed(0)
    layer = LAYERS[kind](context)
    initialize(layer, "glorot", 0)
    return layer.double().eval()


@torch.no_grad()
@pytest.mark.parametrize("kind", LAYERS)
def test_the_state_is_the_last_hidden_vector(kind: str) -> None:
    """Of the rows that are still alive at the last step: two of three."""
    layer, sizes = made(kind), [3, 3, 2]
    inputs = torch.randn(8, 3, dtype=torch.float64)
    start = layer.start(torch.randn(3, layer.state_size, dtype=torch.float64))
    hidden, state = layer.unroll_state(inputs, sizes, start)
    assert torch.equal(hidden, layer.unroll(inputs, sizes, start))
    assert torch.equal(layer.output(state), hidden[6:]) and state.shape == (2, 4)


@pytest.mark.parametrize("kind", LAYERS)
def test_a_context_is_projected_by_its_matrix(kind: str) -> None:
    layer = made(kind, 2)
    assert layer.context is not None
    assert torch.equal(layer.project_context(torch.eye(2, dtype=torch.float64)), layer.context.t())
    with pytest.raises(AssertionError, match="without a context"):
        made(kind).project_context(torch.eye(2, dtype=torch.float64))
