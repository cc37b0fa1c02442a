"""Typed helpers for autograd functions with hand-written gradients, which torch leaves untyped."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx


class Context(FunctionCtx):
    """Values that a forward pass saves for its backward pass."""

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]
    sizes: list[int]  # rows of each step of a recurrent layer, see nmt/data/batches.py
    values: Any  # anything else that the backward pass needs and that is not a tensor

    def save_for_backward(self, *tensors: Tensor | None) -> None: ...


def apply(function: type[torch.autograd.Function], *args: object) -> Tensor:
    """Call an autograd function with one result. Arguments are those of its `forward` without the context."""
    result: Tensor = function.apply(*args)
    return result


def apply_pair(function: type[torch.autograd.Function], *args: object) -> tuple[Tensor, Tensor]:
    """Call an autograd function with two results; arguments as in `apply`."""
    first, second = function.apply(*args)
    return first, second


def apply_triple(function: type[torch.autograd.Function], *args: object) -> tuple[Tensor, Tensor, Tensor]:
    """Call an autograd function with three results; arguments as in `apply`."""
    first, second, third = function.apply(*args)
    return first, second, third
