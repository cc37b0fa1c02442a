"""Types for hand-written autograd functions, which torch leaves untyped."""

from typing import Protocol

import torch
from torch import Tensor


class Context(Protocol):
    """What a forward pass leaves for its backward pass. `sizes`, as in nmt/data/batches.py, for recurrent
    layers."""

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]
    sizes: list[int]

    def save_for_backward(self, *tensors: Tensor | None) -> None: ...

    def mark_non_differentiable(self, *tensors: Tensor) -> None: ...


def apply(function: type[torch.autograd.Function], *args: object) -> Tensor:
    """Call a function of one result."""
    result: Tensor = function.apply(*args)
    return result
