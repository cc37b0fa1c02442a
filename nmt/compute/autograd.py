"""Types for hand-written autograd functions, which torch leaves untyped."""

from typing import Any, Protocol

import torch
from torch import Tensor


class Context(Protocol):
    """Values that a forward pass saves for its backward pass."""

    saved_tensors: tuple[Tensor, ...]
    sizes: list[int]  # rows of each step of a recurrent layer, see nmt/data/batches.py
    values: Any  # what else a function needs that is no tensor

    def save_for_backward(self, *tensors: Tensor | None) -> None: ...

    def mark_non_differentiable(self, *tensors: Tensor) -> None: ...

    def set_materialize_grads(self, value: bool) -> None: ...


def apply(function: type[torch.autograd.Function], *args: object) -> Tensor:
    """Call a function that has one result."""
    result: Tensor = function.apply(*args)
    return result


def apply_pair(function: type[torch.autograd.Function], *args: object) -> tuple[Tensor, Tensor]:
    """Call a function that has two results."""
    first, second = function.apply(*args)
    return first, second


def apply_triple(function: type[torch.autograd.Function], *args: object) -> tuple[Tensor, Tensor, Tensor]:
    """Call a function that has three results."""
    first, second, third = function.apply(*args)
    return first, second, third
