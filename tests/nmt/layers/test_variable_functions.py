"""The hand-written gradients of units of variable computation."""

import pytest
import torch

from tests.nmt.layers.test_variable import CELLS, SIZES, E, H, given, make


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("inputs", [E, H])
def test_gradients(kind: str, inputs: int) -> None:
    """Of states and shares, in everything that is trained."""
    cell = make(kind, inputs=inputs)
    x, start, context = (part.requires_grad_() for part in given(cell))
    trained = [parameter for name, parameter in cell.named_parameters() if name != "context"]
    assert torch.autograd.gradcheck(
        lambda *_: cell.unroll_shares(x, SIZES, start, context), [x, start, context, *trained]
    )
