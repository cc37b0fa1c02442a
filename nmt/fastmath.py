"""The fastest exact fp32 matrix product of this machine: MKL, or oneDNN where it is as exact and faster.

On AMD processors stock torch takes MKL's slow path and loses a factor of two. oneDNN is reached through a
torch switch that on processors with AMX really computes in bf16, so it is taken only after its error against
fp64 was measured. The choice is made once for a run and a processor and stored in the run directory: two back
ends differ in the last bits, so every start, worker and resume has to use the same one.

`Reduced` is the other thing, and never chosen by itself: products in bf16 or int8, with an error that the
caller reports. `Mixed` is its counterpart for training: forward and backward products in bf16, everything
else, weights and sums included, in fp32.
"""

import functools
import platform
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, cast, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from nmt import files
from nmt.errors import ConfigError, DataError, UserError

BACK_ENDS = ("mkl", "onednn")
SHAPES = [
    (256, 512, 1536),
    (16, 512, 1536),
    (64, 500, 4000),
]  # rows, inner, columns: a layer, a short batch, a softmax
# an exact back end errs at most this many times as much as MKL; rounding inputs to bf16 errs 1000 times as
# much
TOLERANCE = 8.0
MARGIN = 1.5  # oneDNN has to be this much faster, so that the noise of a busy machine does not decide


@dataclass
class Choice:
    back_end: str  # mkl | onednn
    error: float = float(
        "nan"
    )  # largest error of oneDNN against fp64, as a multiple of MKL's; nan: not measured
    speed: float = float("nan")  # time of MKL over time of oneDNN

    def __str__(self) -> str:
        if self.error != self.error:  # not a number: nothing was measured
            return f"matrix products by {self.back_end}"
        return (
            f"matrix products by {self.back_end} (oneDNN: {self.error:.1f}x the error and "
            f"{self.speed:.2f}x the speed of MKL)"
        )


def use(back_end: str) -> None:
    """Switch all following fp32 matrix products on the CPU to `mkl` or `onednn`."""
    torch.backends.mkldnn.matmul.fp32_precision = "bf16" if back_end == "onednn" else "none"  # type: ignore[attr-defined]


def in_use() -> str:
    """The back end that `use` or `choose` has switched to."""
    return "onednn" if torch.backends.mkldnn.matmul.fp32_precision == "bf16" else "mkl"  # type: ignore[attr-defined]


def measure() -> tuple[float, float]:
    """Error and speed of oneDNN relative to MKL; see Choice."""
    generator = torch.Generator().manual_seed(1)
    errors, seconds = dict.fromkeys(BACK_ENDS, 0.0), dict.fromkeys(BACK_ENDS, 0.0)
    for rows, inner, columns in SHAPES:
        a, b = torch.randn(rows, inner, generator=generator), torch.randn(columns, inner, generator=generator)
        c = torch.randn(rows, columns, generator=generator)
        forms = [(a, b.t()), (c, b), (c.t(), a)]  # forward, gradient of the input, gradient of the weight
        for left, right in forms:
            exact = left.double() @ right.double()
            out = torch.empty(exact.shape)
            for name in BACK_ENDS:
                use(name)
                best = float("inf")
                for _ in range(4):
                    clock = time.perf_counter()
                    torch.addmm(torch.zeros(exact.shape[1]), left, right, out=out)
                    best = min(best, time.perf_counter() - clock)
                seconds[name] += best
                errors[name] = max(errors[name], float((out - exact).abs().max() / exact.abs().max()))
    use("mkl")
    return errors["onednn"] / errors["mkl"], seconds["mkl"] / seconds["onednn"]


def choose(wish: str = "auto", memory: Path | None = None) -> Choice:
    """Test both back ends and switch to the chosen one. ConfigError when the wish is not exact on this
    machine.

    `memory` is a file of earlier choices: `auto` takes the one made on this processor, or makes it and adds
    it there.
    """
    if wish not in ("auto", *BACK_ENDS):
        raise ConfigError(f"matmul: {wish!r} is unknown, expected auto, mkl or onednn")
    if wish == "auto" and memory and (known := recall(memory)):
        use(known.back_end)
        return known
    choice = _choose(wish)
    if wish == "auto" and memory:
        remember(memory, choice)
    return choice


def _choose(wish: str) -> Choice:
    if wish == "mkl" or not torch.backends.mkldnn.is_available():
        use("mkl")
        return Choice("mkl")
    with torch.no_grad():
        error, speed = measure()
    exact = error <= TOLERANCE
    if wish == "onednn" and not exact:
        raise ConfigError(
            f"matmul: onednn errs {error:.0f} times as much as mkl on this processor; use auto or mkl"
        )
    back_end = "onednn" if wish == "onednn" or (exact and speed >= MARGIN) else "mkl"
    use(back_end)
    return Choice(back_end, error, speed)


def processor() -> str:
    """The processor and the torch that a choice holds for."""
    name = platform.processor() or platform.machine()
    with suppress(OSError, StopIteration), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{name}, torch {torch.__version__}"


def recall(memory: Path) -> Choice | None:
    """The choice that was made on this processor; None when there is none."""
    with suppress(OSError, DataError, ValueError):
        for line in files.read_lines(memory):
            name, back_end, error, speed = line.split("\t")
            if name == processor() and back_end in BACK_ENDS:
                return Choice(back_end, float(error), float(speed))
    return None


def remember(memory: Path, choice: Choice) -> None:
    """Add a choice; a run directory that cannot be written to is left as it is."""
    with suppress(OSError, UserError):
        lines = list(files.read_lines(memory)) if memory.exists() else []
        files.write_text(
            memory, [*lines, f"{processor()}\t{choice.back_end}\t{choice.error:.3g}\t{choice.speed:.3g}"]
        )


@runtime_checkable
class Aligns(Protocol):
    """A layer that multiplies with a copy of its matrix: see nmt.layers.output."""

    def aligned(self) -> tuple[Tensor, Tensor | None]: ...


class Reduced(TorchFunctionMode):
    """`with Reduced("bf16", model):` products with the model's matrices are computed in that precision; all
    else stays fp32.

    bf16 rounds inputs and results to 8 bits. int8 scales each row of the input and each row of the matrix by
    its largest value (symmetric, the input's scales found anew each time), adds in int32.
    """

    def __init__(self, precision: str, model: nn.Module) -> None:
        super().__init__()
        with torch.no_grad():
            kept = [
                module.aligned()[0] for module in model.modules() if isinstance(module, Aligns)
            ]  # copies that stand for a parameter
        make = {"bf16": bf16_product, "int8": int8_product}[precision]
        matrices = [
            p.detach() for p in (*model.parameters(), *kept) if p.dim() == 2 and p.dtype == torch.float32
        ]
        self.products = {(p.data_ptr(), tuple(p.shape)): make(p) for p in matrices}

    def product(self, matrix: Tensor) -> Callable[[Tensor], Tensor] | None:
        """x -> x Wᵀ, for a matrix of the model (columns, inner)"""
        return self.products.get((matrix.data_ptr(), tuple(matrix.shape)))

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is F.linear and (product := self.product(args[1])):
            bias = args[2] if len(args) > 2 else None
            result = product(args[0].flatten(0, -2)).view(*args[0].shape[:-1], -1)
            return result if bias is None else result.add_(bias)
        if function is Tensor.addmm_ and (product := self.product(args[2].t())):
            return args[0].add_(product(args[1]))
        if function in (torch.mm, torch.addmm) and (product := self.product(args[-1].t())):
            result = product(args[-2])
            if function is torch.addmm:
                result += args[0]
            return kwargs["out"].copy_(result) if "out" in kwargs else result
        return function(*args, **kwargs)


PRECISIONS = ("fp32", "bf16")
Backward = TypeVar("Backward", bound=Callable[..., Any])
SMALL = 1 << 20  # products of fewer multiplications stay fp32: rounding their operands takes longer
REMEMBERED = 12  # operands whose rounded copies are kept: the matrices of a recurrent loop


def check_precision(precision: str, device: str) -> None:
    """ConfigError for an unknown precision, and for bf16 on a processor that has no bf16 products: it would
    be slower there."""
    if precision not in PRECISIONS:
        raise ConfigError(f"precision: {precision!r} is unknown, expected one of {', '.join(PRECISIONS)}")
    if precision == "bf16" and device == "cpu" and not flags() & {"avx512_bf16", "amx_bf16"}:
        raise ConfigError(
            "precision: bf16 needs a processor with avx512_bf16 or amx_bf16, which this one has not; use fp32"
        )


def flags() -> set[str]:
    """What the processor says it can do; empty where the system does not tell."""
    with suppress(OSError, StopIteration), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        return set(next(line.partition(":")[2] for line in lines if line.startswith("flags")).split())
    return set()


class _LinearFunction(torch.autograd.Function):
    """x Wᵀ + b with x and W rounded to bf16, in the forward pass and for both gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, bias: Tensor | None, mixed: "Mixed") -> Tensor:
        ctx.save_for_backward(x, matrix)
        ctx.mixed = mixed
        result = mixed.product(x.flatten(0, -2), matrix.t())
        if bias is not None:
            result += bias
        return result.view(*x.shape[:-1], len(matrix))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
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
    """`with Mixed(): model.loss(batch).backward()` computes large matrix products in bf16, results and all
    other operations in fp32.

    Rounding to bf16 keeps 8 bits of each factor; a product of n terms is added in fp32 and rounded once.
    Matrices that are used again and again, as in a recurrent loop, are rounded once: enter the mode anew
    after each change of the weights.
    """

    entered: ClassVar[list["Mixed"]] = []  # by this process, the last one innermost

    def __init__(self) -> None:
        super().__init__()
        self.rounded: OrderedDict[int, tuple[Tensor, int, Tensor]] = OrderedDict()

    def __enter__(self) -> "Mixed":
        self.entered.append(self)
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.entered.pop()
        super().__exit__(*error)

    def round(self, value: Tensor) -> Tensor:
        """bf16 of a tensor; that of the last few tensors is remembered while they do not change."""
        known = self.rounded.get(id(value))
        if known and known[0] is value and known[1] == value._version:
            self.rounded.move_to_end(id(value))
            return known[2]
        made = value.bfloat16()
        self.rounded[id(value)] = (
            value,
            value._version,
            made,
        )  # holds the tensor, so that its id stays its own
        if len(self.rounded) > REMEMBERED:
            self.rounded.popitem(last=False)
        return made

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        """(n, k), (k, m) -> (n, m)"""
        if a.shape[0] * b.numel() < SMALL and a.dtype == b.dtype:
            return a @ b
        return (a.bfloat16() @ self.round(b)).float()

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if (
            function is F.linear
            and args[1].dim() == 2
            and args[0].numel() * len(args[1]) >= SMALL
            and args[1].dtype == torch.float32
        ):
            bias = args[2] if len(args) > 2 else kwargs.get("bias")
            return _LinearFunction.apply(args[0], args[1], bias, self)
        if (
            function in PRODUCTS
            and args[-2].dim() == args[-1].dim() == 2
            and args[-1].dtype == torch.float32
            and not needs_grad(args[-2:])
        ):
            result = self.product(args[-2], args[-1])
            if function is Tensor.addmm_:
                return args[0].add_(result)
            if function is torch.addmm:
                result += args[0]
            return kwargs["out"].copy_(result) if "out" in kwargs else result
        return function(*args, **kwargs)


def rounded(value: Tensor) -> Tensor:
    """bf16 of an operand of several products, rounded once, where `Mixed` is entered; else the value
    itself."""
    return value.bfloat16() if Mixed.entered and value.dtype == torch.float32 else value


def in_mode(backward: Backward) -> Backward:
    """For a hand-written backward pass: torch's engine leaves modes, so the one that is entered is entered
    again."""

    @functools.wraps(backward)
    def again(ctx: Any, *grads: Tensor) -> Any:
        if not Mixed.entered:
            return backward(ctx, *grads)
        with Mixed.entered[-1]:
            return backward(ctx, *grads)

    return cast(Backward, again)


# Those of the hand-written forward and backward passes; where torch itself would differentiate, only F.linear
# is replaced.
PRODUCTS = (torch.mm, torch.matmul, torch.addmm, Tensor.addmm_, Tensor.matmul, Tensor.__matmul__)


def needs_grad(operands: Sequence[Tensor]) -> bool:
    return torch.is_grad_enabled() and any(operand.requires_grad for operand in operands)


def bf16_product(matrix: Tensor) -> Callable[[Tensor], Tensor]:
    packed = matrix.bfloat16()
    return lambda x: F.linear(x.bfloat16(), packed).float()


def int8_product(matrix: Tensor) -> Callable[[Tensor], Tensor]:
    pad = -matrix.shape[1] % 8  # the kernel wants whole blocks
    scales = matrix.abs().amax(1).clamp_(min=1e-30) / 127
    packed = F.pad((matrix / scales[:, None]).round_().to(torch.int8), (0, pad)).t()

    def product(x: Tensor) -> Tensor:
        steps = x.abs().amax(1, keepdim=True).clamp_(min=1e-30) / 127
        rounded = F.pad((x / steps).round_().to(torch.int8), (0, pad))
        return torch._int_mm(rounded, packed).float().mul_(steps).mul_(scales)

    return product
