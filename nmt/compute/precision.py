"""Matrix products in reduced precision: bf16 for training with fp32 weights, bf16 or int8 for inference."""

import functools
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import ClassVar, ParamSpec, Protocol, TypeVar, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from nmt.compute.autograd import Context, apply
from nmt.compute.device import processor_flags
from nmt.errors import ConfigError

log = logging.getLogger(__name__)

# ---- products ----------------------------------------------------------------------------------------------
# Completing a call of torch for a matrix product after the product itself has been computed.


def deliver_product(
    function: Callable[..., object], args: Sequence[Tensor], kwargs: Mapping[str, Tensor], product: Tensor
) -> Tensor:
    """Finish a call of torch's mm, addmm or addmm_ (`function`) with these arguments, given the `product` of
    its two matrices: add the third operand, and write to `out=` if there is one."""
    if function is Tensor.addmm_:
        return args[0].add_(product)
    if function is torch.addmm and "out" in kwargs:
        return torch.add(product, args[0], out=kwargs["out"])
    if function is torch.addmm:
        product += args[0]
    return kwargs["out"].copy_(product) if "out" in kwargs else product


# ---- training in bf16 --------------------------------------------------------------------------------------
# Training with matrix products in bf16; everything else, weights and sums included, stays fp32.

PRECISIONS = ("fp32", "bf16")
Inputs = ParamSpec("Inputs")
Result = TypeVar("Result")
SMALL_PRODUCT = 1 << 20  # products of fewer multiplications stay fp32: rounding their operands takes longer
CACHED_OPERANDS = 12  # operands whose rounded copies are kept: the matrices of a recurrent loop


def check_precision(precision: str, device: str) -> None:
    """ConfigError for an unknown precision, and for bf16 on a CPU without bf16 products, where it would be
    slower."""
    if precision not in PRECISIONS:
        raise ConfigError(f"precision: {precision!r} is unknown, expected one of {', '.join(PRECISIONS)}")
    if precision == "bf16" and device == "cpu" and not processor_flags() & {"avx512_bf16", "amx_bf16"}:
        raise ConfigError(
            "precision: bf16 needs a processor with avx512_bf16 or amx_bf16, which this CPU lacks; use fp32"
        )


class _LinearFunction(torch.autograd.Function):
    """x Wᵀ + b with x and W rounded to bf16, in the forward pass and for both gradients."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, matrix: Tensor, bias: Tensor | None, mixed: "Mixed") -> Tensor:
        ctx.save_for_backward(x, matrix)
        ctx.values = mixed
        result = mixed.product(x.flatten(0, -2), matrix.t())
        if bias is not None:
            result += bias
        return result.view(*x.shape[:-1], len(matrix))

    @staticmethod
    def backward(ctx: Context, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, matrix = ctx.saved_tensors
        mixed: Mixed = ctx.values
        rows = grad.flatten(0, -2)
        dx = mixed.product(rows, matrix).view(x.shape) if ctx.needs_input_grad[0] else None
        return (
            dx,
            mixed.product(rows.t(), x.flatten(0, -2)),
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

    entered: ClassVar[list["Mixed"]] = []  # modes that this process has entered, the innermost last

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
        if self not in self.entered:
            # A rounded activation leads through its gradient function back to this mode: a cycle, which would
            # keep the memory of the update until Python collects it.
            self.rounded.clear()
        super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]

    def round(self, value: Tensor) -> Tensor:
        """Round a tensor to bf16. The results for the last few tensors are cached until the tensors
        change."""
        cached = self.rounded.get(id(value))
        if cached and cached[0] is value and cached[1] == value._version:
            self.rounded.move_to_end(id(value))
            return cached[2]
        result = value.bfloat16()
        # The cache holds the tensor, so that no other gets its id.
        self.rounded[id(value)] = (value, value._version, result)
        if len(self.rounded) > CACHED_OPERANDS:
            self.rounded.popitem(last=False)
        return result

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        """Matrix product in bf16, or in fp32 if it is small: (n, k), (k, m) -> (n, m) in fp32"""
        if a.shape[0] * b.numel() < SMALL_PRODUCT and a.dtype == b.dtype:
            return a @ b
        if a.device.type == "cuda":  # its bf16 units can return their sums in fp32
            return torch.mm(a.bfloat16(), self.round(b), out_dtype=torch.float32)
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
            and args[0].numel() * len(args[1]) >= SMALL_PRODUCT
            and args[1].dtype == torch.float32
        ):
            bias = args[2] if len(args) > 2 else kwargs.get("bias")
            return apply(_LinearFunction, args[0], args[1], bias, self)
        if (
            function in MIXED_PRODUCTS
            and args[-2].dim() == args[-1].dim() == 2
            and args[-1].dtype == torch.float32
            and not needs_grad(args[-2:])
        ):
            return deliver_product(function, args, kwargs, self.product(args[-2], args[-1]))
        return function(*args, **kwargs)


def bf16_products(device: torch.device, autocast: bool = False) -> AbstractContextManager[object]:
    """Context for training with matrix products in bf16: `Mixed` or, on a GPU for models with `autocast`,
    torch's own, in which results of products are bf16, too."""
    if autocast and device.type == "cuda":
        # without its cache, which would keep the rounded weights of another update from a CUDA graph
        return torch.autocast("cuda", torch.bfloat16, cache_enabled=False)
    return Mixed()


def mixed_instead_of_autocast(forward: Callable[Inputs, Result]) -> Callable[Inputs, Result]:
    """Decorate a hand-written forward pass that writes products to memory of its own: `Mixed` takes the place
    of torch's autocast, where that is on."""

    @functools.wraps(forward)
    def mixed(*args: Inputs.args, **kwargs: Inputs.kwargs) -> Result:
        if not torch.is_autocast_enabled("cuda"):
            return forward(*args, **kwargs)
        with torch.autocast("cuda", enabled=False), Mixed():
            return forward(*args, **kwargs)

    return mixed


def round_operand(value: Tensor) -> Tensor:
    """Round an operand of several products to bf16 once, inside `Mixed`; elsewhere, return the operand
    itself."""
    return value.bfloat16() if Mixed.entered and value.dtype == torch.float32 else value


def in_mode(backward: Callable[Inputs, Result]) -> Callable[Inputs, Result]:
    """Decorate a hand-written backward pass to run in the current `Mixed` mode, which torch's autograd engine
    leaves."""

    @functools.wraps(backward)
    def again(*args: Inputs.args, **kwargs: Inputs.kwargs) -> Result:
        if not Mixed.entered:
            return backward(*args, **kwargs)
        with Mixed.entered[-1]:
            return backward(*args, **kwargs)

    return again


# Products of the hand-written forward and backward passes; where torch itself differentiates, only F.linear
# is replaced.
MIXED_PRODUCTS = (torch.mm, torch.matmul, torch.addmm, Tensor.addmm_, Tensor.matmul, Tensor.__matmul__)


def needs_grad(operands: Sequence[Tensor]) -> bool:
    """Whether torch would differentiate an operation on these operands."""
    return torch.is_grad_enabled() and any(operand.requires_grad for operand in operands)


# ---- inference in bf16 or int8 -----------------------------------------------------------------------------
# Inference with matrix products in bf16 or int8; never chosen automatically, since scores change.

# Width of a model's matrices below which its search gains at most a tenth: rounding the operands, and looking
# at each call of torch, take as long as the products gain (tests/benchmarks/README.md).
LEAST_WIDTH = 256
REDUCED_PRODUCTS = (torch.mm, torch.addmm, Tensor.addmm_)


@runtime_checkable
class PadsWeights(Protocol):
    """A layer that multiplies by a padded copy of its matrix, see nmt/layers/output/softmax.py."""

    def padded_weights(self) -> tuple[Tensor, Tensor | None]: ...


class Reduced(TorchFunctionMode):
    """`with Reduced("bf16", model):` computes products with the model's matrices in that precision, bf16 or
    int8; everything else stays fp32.

    bf16 rounds inputs and results to 8 bits. int8 scales each row of the input and of the matrix by its
    largest absolute value (symmetrically; the scales of the input are computed at each call) and sums in
    int32. The matrices are copied once: later changes of the weights have no effect.
    """

    def __init__(self, precision: str, model: nn.Module) -> None:
        super().__init__()
        with torch.no_grad():  # copies that replace a parameter
            padded = [part.padded_weights()[0] for part in model.modules() if isinstance(part, PadsWeights)]
        make = {"bf16": bf16_product, "int8": int8_product}[precision]
        matrices = [
            p.detach() for p in (*model.parameters(), *padded) if p.dim() == 2 and p.dtype == torch.float32
        ]
        self.products = {(p.data_ptr(), tuple(p.shape)): make(p) for p in matrices}
        weights = sum(p.numel() for p in matrices)
        self.width = sum(p.numel() * p.shape[1] for p in matrices) / max(1, weights)
        if weights and self.width < LEAST_WIDTH:
            log.info(
                "precision %s is hardly faster than fp32 for a model of this size: the rows of its matrices "
                "have %.0f numbers on average, and it pays from %d on",
                precision,
                self.width,
                LEAST_WIDTH,
            )

    def product(self, matrix: Tensor) -> Callable[[Tensor], Tensor] | None:
        """The function x -> x Wᵀ for a matrix (columns, inner) of the model; None for other matrices."""
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
            bias = args[2] if len(args) > 2 else kwargs.get("bias")
            result = product(args[0].flatten(0, -2)).view(*args[0].shape[:-1], -1)
            return result if bias is None else result.add_(bias)
        if function in REDUCED_PRODUCTS and (product := self.product(args[-1].t())):
            return deliver_product(function, args, kwargs, product(args[-2]))
        return function(*args, **kwargs)


def bf16_product(matrix: Tensor) -> Callable[[Tensor], Tensor]:
    """Build the function x -> x Wᵀ in bf16, for a matrix W (m, k): fp32 (n, k) -> fp32 (n, m)"""
    packed = matrix.bfloat16()
    return lambda x: F.linear(x.bfloat16(), packed).float()


def int8_product(matrix: Tensor) -> Callable[[Tensor], Tensor]:
    """Build the function x -> x Wᵀ in int8, for a matrix W (m, k): fp32 (n, k) -> fp32 (n, m)"""
    pad = -matrix.shape[1] % 8  # the kernel needs a multiple of 8
    scales = matrix.abs().amax(1).clamp_(min=1e-30) / 127
    packed = F.pad((matrix / scales[:, None]).round_().to(torch.int8), (0, pad)).t()

    def product(x: Tensor) -> Tensor:
        steps = x.abs().amax(1, keepdim=True).clamp_(min=1e-30) / 127
        quantized = F.pad((x / steps).round_().to(torch.int8), (0, pad))
        # Torch's only int8 product; documented, although its name is private.
        return torch._int_mm(quantized, packed).float().mul_(steps).mul_(scales)

    return product
