"""Optimizers: Adadelta (in cache-sized blocks, on a GPU all tensors at once), Adam and SGD by torch; clipping
of the total gradient norm; the moving average of weights; schedules of the learning rate."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from nmt.errors import ConfigError

BLOCK = 1 << 16  # floats; five arrays of 256 kiB stay in a core's cache, three times as fast as whole tensors


class Adadelta(Optimizer):
    """Zeiler 2012: G = ρG + (1-ρ)g²;  Δ = -√(D+ε)/√(G+ε) g;  D = ρD + (1-ρ)Δ²;  θ = θ + lr Δ"""

    def __init__(
        self, parameters: Iterable[Parameter], lr: float = 1.0, rho: float = 0.95, eps: float = 1e-6
    ) -> None:
        super().__init__(parameters, {"lr": lr, "rho": rho, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient. `closure` is ignored: compute the gradients before."""
        for group in self.param_groups:
            lr, rho, eps = group["lr"], group["rho"], group["eps"]
            with_gradients = [parameter for parameter in group["params"] if parameter.grad is not None]
            if not with_gradients:
                continue
            tensors = [self.tensors(parameter) for parameter in with_gradients]
            params, grads, squares, deltas = map(list, zip(*tensors, strict=True))
            update = update_in_blocks if params[0].device.type == "cpu" else update_all_at_once
            update(params, grads, squares, deltas, lr, rho, eps)

    def tensors(self, parameter: Parameter) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """A parameter, its gradient, G and D, which are created with 0 if missing, as flat tensors (n,)."""
        state = self.state[parameter]
        if not state:
            state["square_avg"] = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
            state["acc_delta"] = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
        assert parameter.grad is not None
        return (
            parameter.view(-1),
            parameter.grad.reshape(-1),
            state["square_avg"].view(-1),
            state["acc_delta"].view(-1),
        )


Tensors = list[Tensor]


def update_in_blocks(
    parameters: Tensors, grads: Tensors, squares: Tensors, deltas: Tensors, lr: float, rho: float, eps: float
) -> None:
    """Update parameters, G (`squares`) and D (`deltas`) in place, block by block within each tensor, so that
    the blocks stay in the processor's cache. All tensors are flat; symbols as in `Adadelta`."""
    for flat in zip(parameters, grads, squares, deltas, strict=True):
        for p, g, square, delta in zip(*(tensor.split(BLOCK) for tensor in flat), strict=True):
            square.mul_(rho).addcmul_(g, g, value=1 - rho)
            move = (delta + eps).sqrt_().div_((square + eps).sqrt_()).mul_(g)
            delta.mul_(rho).addcmul_(move, move, value=1 - rho)
            p.sub_(move, alpha=lr)


def update_all_at_once(
    parameters: Tensors, grads: Tensors, squares: Tensors, deltas: Tensors, lr: float, rho: float, eps: float
) -> None:
    """Update parameters, G (`squares`) and D (`deltas`) in place, all tensors at once by a few GPU kernels,
    as torch's own optimizers do. All tensors are flat; symbols as in `Adadelta`."""
    torch._foreach_mul_(squares, rho)
    torch._foreach_addcmul_(squares, grads, grads, value=1 - rho)
    moves, roots = torch._foreach_add(deltas, eps), torch._foreach_add(squares, eps)
    torch._foreach_sqrt_(moves)
    torch._foreach_sqrt_(roots)
    torch._foreach_div_(moves, roots)
    torch._foreach_mul_(moves, grads)
    torch._foreach_mul_(deltas, rho)
    torch._foreach_addcmul_(deltas, moves, moves, value=1 - rho)
    torch._foreach_sub_(parameters, moves, alpha=lr)


def make_optimizer(
    name: str,
    parameters: Iterable[Parameter],
    rate: float,
    rho: float,
    eps: float,
    betas: tuple[float, float] = (0.9, 0.999),
) -> Optimizer:
    """Create the optimizer that `training.optimizer` names. `rate`: initial learning rate; `rho` and `eps`
    are for Adadelta, `betas` for Adam. ConfigError for an unknown name."""
    parameters = list(parameters)
    if name == "adadelta":
        return Adadelta(parameters, rate, rho, eps)
    if name == "adam":
        return torch.optim.Adam(parameters, rate, betas, fused=True)
    if name == "sgd":
        return torch.optim.SGD(parameters, rate)
    raise ConfigError(f"training.optimizer: {name!r} is unknown, expected one of adadelta, adam, sgd")


def current_rate(optimizer: Optimizer) -> float:
    return float(optimizer.param_groups[0]["lr"])


def set_rate(optimizer: Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


@torch.no_grad()
def clip(parameters: Iterable[Parameter], threshold: float) -> float | Tensor:
    """Scale all gradients so that their total norm, √Σ g², is at most `threshold` (0: leave them). Returns
    the norm before, 0 without gradients; on a GPU, for which it does not wait, as a tensor (). The sum over
    parameters is in double precision, unlike torch.nn.utils.clip_grad_norm_."""
    grads: list[Tensor] = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not grads:
        return 0.0
    norms = torch.stack(torch._foreach_norm(grads))
    if norms.device.type != "cpu":
        total = norms.double().square().sum().sqrt()
        if threshold > 0:
            torch._foreach_mul_(grads, (threshold / total).clamp_(max=1).to(norms.dtype))
        return total
    norm = math.sqrt(sum(value**2 for value in norms.tolist()))
    if threshold > 0 and norm > threshold:
        torch._foreach_mul_(grads, threshold / norm)
    return norm


# ---- ema ---------------------------------------------------------------------------------------------------
# The exponential moving average of the weights during training: training.ema.
#
#     m_1 = θ_1,   m_t = d_t m_{t-1} + (1 - d_t) θ_t,   d_t = min(ema, (t + 1) / (t + 10))
#
# θ_t are the weights after update t. The smaller d_t of the first updates are the correction that Marian's
# --exponential-smoothing and OpenNMT-py's average_decay have too: without it the mean would long remember the
# random weights of the beginning.


def ema_decay(step: int, decay: float) -> float:
    """d_t: the share of the average that update `step`, from 1, keeps. `decay`: the limit of d_t."""
    return min(decay, (step + 1) / (step + 10)) if step > 1 else 0.0


class WeightAverage:
    """Exponential moving average of a model's weights; the model trains on with the raw ones."""

    def __init__(self, parameters: Iterable[Parameter], decay: float) -> None:
        self.decay = decay
        # Detached tensors share the memory of the parameters: they follow the model.
        self.weights: list[Tensor] = [parameter.detach() for parameter in parameters]
        self.mean = [weight.clone() for weight in self.weights]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Update the average with the weights after update `step`, counted from 1."""
        torch._foreach_lerp_(self.mean, self.weights, 1 - ema_decay(step, self.decay))

    @torch.no_grad()
    def set(self) -> None:
        """Set the average to the current weights of the model."""
        torch._foreach_copy_(self.mean, self.weights)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Context in which the model has the averaged weights; then its own again, bit for bit."""
        raw = [weight.clone() for weight in self.weights]
        with torch.no_grad():
            torch._foreach_copy_(self.weights, self.mean)
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self.weights, raw)


# ---- schedules ---------------------------------------------------------------------------------------------
# Schedules of the learning rate after the warm-up, as factors of `learning_rate`. To add one, write a
# function and add it to `SCHEDULES`.

Schedule = Callable[[int, int, int], float]  # warmup, update from 1, last update -> factor of the rate


def constant(warmup: int, step: int, last: int) -> float:
    """Factor of a constant learning rate: always 1."""
    return 1.0


def inverse_sqrt(warmup: int, step: int, last: int) -> float:
    """Factor √(warmup / step) (Vaswani et al. 2017); `step` is at least 1."""
    return math.sqrt(warmup / step)


def linear(warmup: int, step: int, last: int) -> float:
    """Linear decay from 1 at the end of the warm-up to 0 after update `last`, whose own rate is still above
    0. Always 1 if `last` is 0."""
    if not last:
        return 1.0
    return max(0.0, (last + 1 - step) / max(1, last + 1 - warmup))


LINEAR = "linear"
SCHEDULES: dict[str, Schedule] = {"constant": constant, "inverse_sqrt": inverse_sqrt, LINEAR: linear}


def rate_factor(schedule: str, warmup: int, step: int, last: int = 0, used: float = 0.0) -> float:
    """Factor of the learning rate at update `step`, counted from 1: step / warmup during the warm-up, then
    that of the schedule. `last`: number of the last update, 0 if only a time limit applies; `used`: share of
    the time limit used so far. The linear schedule reaches 0 at whichever of the two comes first."""
    factor = step / warmup if step < warmup else SCHEDULES[schedule](warmup, step, last)
    return min(factor, 1 - used) if schedule == LINEAR else factor
