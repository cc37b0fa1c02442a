"""Inference with matrix products in bf16 or int8; never chosen automatically, and the caller reports the
error."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from nmt.compute.products import deliver

PRODUCTS = (torch.mm, torch.addmm, Tensor.addmm_)


@runtime_checkable
class Aligns(Protocol):
    """A layer that multiplies with a copy of its matrix, see nmt/layers/output/softmax.py."""

    def aligned(self) -> tuple[Tensor, Tensor | None]: ...


class Weights(Protocol):
    """What is asked of a model: see `torch.nn.Module`."""

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def modules(self) -> Iterator[nn.Module]: ...


class Reduced(TorchFunctionMode):
    """`with Reduced("bf16", model):` computes products with the model's matrices in that precision; all else
    stays fp32.

    bf16 rounds inputs and results to 8 bits. int8 scales each row of the input and of the matrix by its
    largest value (symmetric, the scales of the input computed each time) and sums in int32.
    """

    def __init__(self, precision: str, model: Weights) -> None:
        super().__init__()
        with torch.no_grad():  # copies that stand for a parameter
            kept = [module.aligned()[0] for module in model.modules() if isinstance(module, Aligns)]
        make = {"bf16": bf16_product, "int8": int8_product}[precision]
        matrices = [
            p.detach() for p in (*model.parameters(), *kept) if p.dim() == 2 and p.dtype == torch.float32
        ]
        self.products = {(p.data_ptr(), tuple(p.shape)): make(p) for p in matrices}

    def product(self, matrix: Tensor) -> Callable[[Tensor], Tensor] | None:
        """x -> x Wᵀ, for a matrix of the model (columns, inner)"""
        return self.products.get((matrix.data_ptr(), tuple(matrix.shape)))

    def __torch_function__(
        self,
        function: Callable[..., object],
        types: Sequence[type],
        args: Sequence[Tensor] = (),
        kwargs: dict[str, Tensor] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if function is F.linear and (product := self.product(args[1])):
            bias = args[2] if len(args) > 2 else None
            result = product(args[0].flatten(0, -2)).view(*args[0].shape[:-1], -1)
            return result if bias is None else result.add_(bias)
        if function in PRODUCTS and (product := self.product(args[-1].t())):
            return deliver(function, args, kwargs, product(args[-2]))
        return function(*args, **kwargs)


def entered(contexts: Sequence[Reduced]) -> ExitStack:
    """Several models at once: `with entered(contexts):`"""
    stack = ExitStack()
    for one in contexts:
        stack.enter_context(one)
    return stack


def bf16_product(matrix: Tensor) -> Callable[[Tensor], Tensor]:
    """x -> x Wᵀ in bf16"""
    packed = matrix.bfloat16()
    return lambda x: F.linear(x.bfloat16(), packed).float()


def int8_product(matrix: Tensor) -> Callable[[Tensor], Tensor]:
    """x -> x Wᵀ in int8"""
    pad = -matrix.shape[1] % 8  # the kernel wants whole blocks
    scales = matrix.abs().amax(1).clamp_(min=1e-30) / 127
    packed = F.pad((matrix / scales[:, None]).round_().to(torch.int8), (0, pad)).t()

    def product(x: Tensor) -> Tensor:
        steps = x.abs().amax(1, keepdim=True).clamp_(min=1e-30) / 127
        rounded = F.pad((x / steps).round_().to(torch.int8), (0, pad))
        # The only int8 product that torch has; it is documented, but private by name.
        return torch._int_mm(rounded, packed).float().mul_(steps).mul_(scales)

    return product
