"""Gradients against differences."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def check_gradients(model: nn.Module, loss: Callable[[], Tensor]) -> None:
    """The gradient of `loss`, which computes with the model, in each of its parameters."""

    class Cost(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self) -> Tensor:
            return loss()

    cost = Cost()
    names = [name for name, _ in cost.named_parameters()]
    assert torch.autograd.gradcheck(
        lambda *values: torch.func.functional_call(cost, dict(zip(names, values, strict=True)), ()),
        list(cost.parameters()),
    )
