"""Training with matrix products in bf16; everything else, weights and sums included, stays fp32."""

import functools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import ClassVar, ParamSpec, Protocol, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from nmt.compute.autograd import apply
from nmt.compute.processor import flags
from nmt.compute.products import deliver
from nmt.errors import ConfigError

PRECISIONS = ("fp32", "bf16")
Inputs = ParamSpec("Inputs")
Result = TypeVar("Result")
SMALL = 1 << 20  # products of fewer multiplications stay fp32: rounding their operands takes longer
CACHED = 12  # operands whose rounded copies are kept: the matrices of a recurrent loop


def check_precision(precision: str, device: str) -> None:
    """ConfigError for an unknown precision, and for bf16 on a processor without bf16 products, where it would
    be slower."""
    if precision not in PRECISIONS:
        raise ConfigError(f"precision: {precision!r} is unknown, expected one of {', '.join(PRECISIONS)}")
    if precision == "bf16" and device == "cpu" and not flags() & {"avx512_bf16", "amx_bf16"}:
        raise ConfigError(
            "precision: bf16 needs a processor with avx512_bf16 or amx_bf16, which this CPU lacks; use fp32"
        )


class Context(Protocol):
    """What the forward pass of a product leaves for its backward pass."""

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]
    mixed: "Mixed"

    def save_for_backward(self, *tensors: Tensor) -> None: ...


class _LinearFunction(torch.autograd.Function):
    """x Wᵀ + b with x and W rounded to bf16, in the forward pass and for both gradients."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, matrix: Tensor, bias: Tensor | None, mixed: "Mixed") -> Tensor:
        ctx.save_for_backward(x, matrix)
        ctx.mixed = mixed
        result = mixed.product(x.flatten(0, -2), matrix.t())
        if bias is not None:
            result += bias
        return result.view(*x.shape[:-1], len(matrix))

    @staticmethod
    def backward(ctx: Context, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, matrix = ctx.saved_tensors
        rows = grad.flatten(0, -2)
        dx = ctx.mixed.product(rows, matrix).view(x.shape) if ctx.needs_input_grad[0] else None
        return (
            dx,
            ctx.mixed.product(rows.t(), x.flatten(0, -2)),
            rows.sum(0) if ctx.needs_input_grad[2] else None,
            None,
        )


class Mixed(TorchFunctionMode):
    """`with Mixed(): model.loss(batch).backward()` computes large matrix products in bf16, but their results
    and all other operations in fp32.

    Rounding to bf16 keeps 8 bits of each factor; a product of n terms is summed in fp32 and rounded once.
    Matrices that are used repeatedly, as in a recurrent loop, are rounded once: enter the mode anew after
    each change of the weights.
    """

    entered: ClassVar[list["Mixed"]] = []  # those that this process has entered, the innermost last

    def __init__(self) -> None:
        super().__init__()
        self.rounded: OrderedDict[int, tuple[Tensor, int, Tensor]] = OrderedDict()

    def __enter__(self) -> "Mixed":
        self.entered.append(self)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.entered.pop()
        super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]

    def round(self, value: Tensor) -> Tensor:
        """bf16 of a tensor; cached for the last few tensors while they do not change."""
        known = self.rounded.get(id(value))
        if known and known[0] is value and known[1] == value._version:
            self.rounded.move_to_end(id(value))
            return known[2]
        made = value.bfloat16()
        # The cache holds the tensor, so that no other gets its id.
        self.rounded[id(value)] = (value, value._version, made)
        if len(self.rounded) > CACHED:
            self.rounded.popitem(last=False)
        return made

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        """(n, k), (k, m) -> (n, m)"""
        if a.shape[0] * b.numel() < SMALL and a.dtype == b.dtype:
            return a @ b
        return (a.bfloat16() @ self.round(b)).float()

    def __torch_function__(
        self,
        function: Callable[..., object],
        types: Sequence[type],
        args: Sequence[Tensor] = (),
        kwargs: dict[str, Tensor] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if (
            function is F.linear
            and args[1].dim() == 2
            and args[0].numel() * len(args[1]) >= SMALL
            and args[1].dtype == torch.float32
        ):
            bias = args[2] if len(args) > 2 else kwargs.get("bias")
            return apply(_LinearFunction, args[0], args[1], bias, self)
        if (
            function in PRODUCTS
            and args[-2].dim() == args[-1].dim() == 2
            and args[-1].dtype == torch.float32
            and not needs_grad(args[-2:])
        ):
            return deliver(function, args, kwargs, self.product(args[-2], args[-1]))
        return function(*args, **kwargs)


def rounded(value: Tensor) -> Tensor:
    """bf16 of an operand of several products, rounded once, inside `Mixed`; else the value itself."""
    return value.bfloat16() if Mixed.entered and value.dtype == torch.float32 else value


def in_mode(backward: Callable[Inputs, Result]) -> Callable[Inputs, Result]:
    """For a hand-written backward pass: torch's engine leaves modes, so the current one is entered again."""

    @functools.wraps(backward)
    def again(*args: Inputs.args, **kwargs: Inputs.kwargs) -> Result:
        if not Mixed.entered:
            return backward(*args, **kwargs)
        with Mixed.entered[-1]:
            return backward(*args, **kwargs)

    return again


# Products of the hand-written forward and backward passes; where torch itself differentiates, only F.linear
# is replaced.
PRODUCTS = (torch.mm, torch.matmul, torch.addmm, Tensor.addmm_, Tensor.matmul, Tensor.__matmul__)


def needs_grad(operands: Sequence[Tensor]) -> bool:
    """Whether torch would differentiate an operation on these."""
    return torch.is_grad_enabled() and any(operand.requires_grad for operand in operands)
