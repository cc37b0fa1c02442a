"""Recurrent layers that compute only a part of their state at each step, over packed tokens as
nmt/layers/cells.py has them: the variable computation units of Jernite 2018, section 2.4, which are an
Elman layer (VCRNN) and a gated unit (VCGRU) behind a mask.

Training multiplies whole matrices, by masked vectors. Where no gradient is needed, the dimensions that the
mask has set to 0 are left out of the products: of each row, or of rows with about the same m together.

E input size, H hidden units, C context size, B sentences, N tokens, R rows, G matrices of a cell.
"""

import math
from collections.abc import Iterator
from typing import ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.compute.autograd import Context, apply_pair
from nmt.compute.precision import in_mode
from nmt.layers.cells import ConfiguredCell, Penalized
from nmt.papers.settings import ComputationSettings
from nmt.training.protocols import Callback

# ---- computation -------------------------------------------------------------------------------------------
# How much of its state a recurrent cell computes at each step (Jernite 2018, section 2.4): a
# scheduler decides on a share m of the dimensions, a mask e lets the first of them change.
#
# m_t = σ(u h_{t-1} + v x_t + b), and e_i = Thres(σ(λ (m_t D - i))) for i = 0, ..., D - 1. Jernite 2018 counts
# i from 1; from 0, a mask without slope (λ → ∞) has exactly the first ⌈m D⌉ dimensions, and all of them at m
# = 1.
#
# D size of a vector, E input size, H hidden units, N tokens, R rows.


MASK_EPSILON = 1e-6  # values of the mask nearer than this to 0 or 1 are 0 or 1; Jernite 2018 gives no figure


def make_mask(m: Tensor, size: int, sharpness: Tensor) -> Tensor:
    """Compute the masks of vectors of D = `size` dimensions: shares m (R,), λ () -> (R, D). Values within
    MASK_EPSILON of 0 or 1 become 0 or 1."""
    positions = torch.arange(size, dtype=m.dtype, device=m.device)
    e = torch.sigmoid(sharpness * (m[:, None] * size - positions))
    return torch.where(e < MASK_EPSILON, 0.0, torch.where(e > 1 - MASK_EPSILON, 1.0, e))


class Scheduler(Penalized, Callback):
    """Computes m, the share of the state that a step updates. The sharpness λ of the mask is saved with the
    weights and grows with each epoch."""

    one_process: ClassVar[str] = "the masks of cells vcrnn and vcgru follow the updates of one process"

    sharpness: Tensor  # () λ

    def __init__(self, inputs: int, hidden: int, settings: ComputationSettings) -> None:
        super().__init__()
        self.settings = settings
        self.state = nn.Parameter(torch.zeros(hidden))  # u
        self.inputs = nn.Parameter(torch.zeros(inputs))  # v
        self.bias = nn.Parameter(torch.zeros(1))  # b
        self.register_buffer("sharpness", torch.tensor(settings.sharpness))
        self.epoch_updates = 0
        self.noted: list[Tensor] = []  # shares m of each batch since the last call of `penalty`

    def after_initialize(self) -> None:
        """Set the bias so that m starts at the share of computation that the settings ask for."""
        self.bias.fill_(math.log(self.settings.computation / (1 - self.settings.computation)))

    def project(self, inputs: Tensor) -> Tensor:
        """The inputs' part, v x + b: (N, E) -> (N, 1)"""
        return F.linear(inputs, self.inputs[None], self.bias)

    def share(self, projected: Tensor, state: Tensor) -> Tensor:
        """m of each row, given v x + b: (R,), (R, H) -> (R,)"""
        return torch.sigmoid(projected + state @ self.state)

    def on_start(self, epoch_updates: int) -> None:
        self.epoch_updates = epoch_updates

    def on_update(self, step: int) -> None:
        """Let λ grow by `sharpness_step` after each epoch, up to `sharpness_most`."""
        if self.epoch_updates and step % self.epoch_updates == 0:
            settings = self.settings
            slope = settings.sharpness + settings.sharpness_step * (step // self.epoch_updates)
            self.sharpness.fill_(min(max(settings.sharpness, settings.sharpness_most), slope))

    def note(self, m: Tensor) -> None:
        """Store the shares (N,) of a batch in training until `penalty` reads them."""
        if self.training and torch.is_grad_enabled():
            self.noted.append(m)

    def penalty(self) -> Tensor | float:
        """`computation_penalty` times Σ |m - `computation`| over the shares stored since the last call: ()"""
        noted, self.noted = self.noted, []
        distance = sum((m - self.settings.computation).abs().sum() for m in noted)
        return self.settings.computation_penalty * distance


# ---- variable functions ------------------------------------------------------------------------------------
# Forward and backward passes of both cells over all steps; the gradient of each matrix is one product after
# the loop.
#
# E input size, H hidden units, B sentences, N tokens, R rows of a step. h̄ and x̄ are masked vectors.


Gradients = tuple[Tensor | None, ...]


class Masks:
    """m and the masks of all steps, and the masked vectors: what both cells do before their products."""

    def __init__(self, x: Tensor, projected: Tensor, u: Tensor, sharpness: Tensor) -> None:
        """`x`: inputs (N, E); `projected`: v x + b (N,); `u` (H,); `sharpness`: λ ()"""
        N, H = len(x), len(u)
        self.x, self.projected, self.u, self.sharpness = x, projected, u, sharpness
        self.m, self.state_mask = x.new_empty(N), x.new_empty(N, H)
        self.input_mask = self.state_mask if x.shape[1] == H else torch.empty_like(x)
        self.previous, self.h, self.inputs = x.new_empty(N, H), x.new_empty(N, H), torch.empty_like(x)

    def step(self, now: slice, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the masked vectors of a step from the states before it: (R, H) -> mask (R, H), h̄ (R, H),
        x̄ (R, E). `now`: the rows of the step."""
        self.previous[now] = h
        m = torch.add(self.projected[now], torch.mv(h, self.u), out=self.m[now]).sigmoid_()
        self.state_mask[now] = make_mask(m, h.shape[1], self.sharpness)
        if self.input_mask is not self.state_mask:
            self.input_mask[now] = make_mask(m, self.x.shape[1], self.sharpness)
        e = self.state_mask[now]
        return (
            e,
            torch.mul(e, h, out=self.h[now]),
            torch.mul(self.input_mask[now], self.x[now], out=self.inputs[now]),
        )

    @property
    def saved(self) -> tuple[Tensor, ...]:
        """Tensors that the backward pass needs, in the order in which `MaskGradients` takes them."""
        return (
            self.x, self.u, self.sharpness, self.m, self.state_mask, self.input_mask, self.previous, self.h,
            self.inputs,
        )  # fmt: skip


class MaskGradients:
    """The backward pass through the masks to inputs, states and scheduler."""

    def __init__(self, saved: tuple[Tensor, ...], share_grad: Tensor | None) -> None:
        """`share_grad`: the gradient of m, (N,)"""
        (self.x, self.u, self.sharpness, self.m, self.state_mask, self.input_mask, self.previous, self.h,
         self.inputs) = saved  # fmt: skip
        self.share_grad = share_grad
        self.x_grad, self.sum_grad = torch.empty_like(self.x), torch.empty_like(self.m)

    def step(self, now: slice, dh: Tensor, de: Tensor, h_grad: Tensor, x_grad: Tensor) -> Tensor:
        """Go back through the masks of a step; returns the gradient of the states before it, (R, H). Sets the
        gradients of inputs and of v x + b in the rows `now` of the step.

        Gradients: `dh` of h where it passes by h̄ and the mask, `de` of the mask, `h_grad` of h̄, (R, H) each;
        `x_grad` of x̄, (R, E)."""
        H, E = self.h.shape[1], self.x.shape[1]
        e, f, m = self.state_mask[now], self.input_mask[now], self.m[now]
        de = torch.addcmul(de, h_grad, self.previous[now])
        torch.mul(x_grad, f, out=self.x_grad[now])
        slope = H * (de * e * (1 - e)).sum(1) + E * (x_grad * self.x[now] * f * (1 - f)).sum(1)
        dm = self.sharpness * slope  # a mask of 0 or 1 has no slope, wherever the threshold set it so
        if self.share_grad is not None:
            dm = dm + self.share_grad[now]
        torch.mul(dm, m * (1 - m), out=self.sum_grad[now])
        return torch.addcmul(dh, h_grad, e).addr_(self.sum_grad[now], self.u)

    def scheduler_gradient(self) -> Tensor:
        """The gradient of u: (H,)"""
        return torch.mv(self.previous.t(), self.sum_grad)


class VCRNNFunction(torch.autograd.Function):
    """h' = h + e ⊙ (σ(U h̄ + V x̄ + b) - h)"""

    @staticmethod
    def forward(
        ctx: Context, x: Tensor, projected: Tensor, base: Tensor, start: Tensor, U: Tensor, V: Tensor,
        u: Tensor, sharpness: Tensor, sizes: list[int],
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """x (N, E), v x + b (N,), biases and contexts (N, H), start (B, H), U (H, H), V (H, E), u (H,), λ (),
        rows of each step -> states (N, H), m (N,)"""
        masks = Masks(x, projected, u, sharpness)
        new, states = torch.empty_like(masks.h), torch.empty_like(masks.h)
        h, end = start, 0
        for rows in sizes:
            now = slice(end, end + rows)
            h = h[:rows]
            e, masked, inputs = masks.step(now, h)
            s = torch.addmm(base[now], masked, U.t(), out=new[now]).addmm_(inputs, V.t()).sigmoid_()
            h = torch.lerp(h, s, e, out=states[now])
            end += rows
        ctx.save_for_backward(U, V, new, *masks.saved)
        ctx.sizes = sizes
        ctx.set_materialize_grads(False)
        return states, masks.m

    @staticmethod
    @once_differentiable
    @in_mode
    def backward(ctx: Context, grad: Tensor | None, share_grad: Tensor | None) -> Gradients:
        U, V, new, *saved = ctx.saved_tensors
        masks = MaskGradients(tuple(saved), share_grad)
        grad = torch.zeros_like(new) if grad is None else grad
        da, dh, end = torch.empty_like(new), new.new_zeros(0, new.shape[1]), len(new)
        for rows in reversed(ctx.sizes):
            now = slice(end - rows, end)
            d = grad[now].clone()
            d[: len(dh)] += dh
            e, s, h = masks.state_mask[now], new[now], masks.previous[now]
            torch.mul(d * e, s * (1 - s), out=da[now])
            dh = masks.step(now, d * (1 - e), d * (s - h), da[now] @ U, da[now] @ V)
            end -= rows
        dU, dV = da.t() @ masks.h, da.t() @ masks.inputs
        return masks.x_grad, masks.sum_grad, da, dh, dU, dV, masks.scheduler_gradient(), None, None


class VCGRUFunction(torch.autograd.Function):
    """z, r = σ(U_zr h̄ + V_zr x̄ + b);  h̃ = tanh(U (r ⊙ h̄) + V x̄ + b);  h' = h + e ⊙ z ⊙ (h̃ - h)"""

    @staticmethod
    def forward(
        ctx: Context, x: Tensor, projected: Tensor, base: Tensor, start: Tensor, U: Tensor, V: Tensor,
        u: Tensor, sharpness: Tensor, sizes: list[int],
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """x (N, E), v x + b (N,), biases and contexts (N, 3H), start (B, H), U (3H, H), V (3H, E), u (H,),
        λ (), rows of each step -> states (N, H), m (N,)"""
        N, H = len(x), start.shape[1]
        masks = Masks(x, projected, u, sharpness)
        gates, reset, states = x.new_empty(N, 3 * H), torch.empty_like(masks.h), torch.empty_like(masks.h)
        h, end = start, 0
        for rows in sizes:
            now = slice(end, end + rows)
            h = h[:rows]
            e, masked, inputs = masks.step(now, h)
            a = torch.addmm(base[now], inputs, V.t(), out=gates[now])
            z, r = a[:, : 2 * H].addmm_(masked, U[: 2 * H].t()).sigmoid_().chunk(2, 1)
            rh = torch.mul(r, masked, out=reset[now])
            c = a[:, 2 * H :].addmm_(rh, U[2 * H :].t()).tanh_()
            h = torch.lerp(h, c, e * z, out=states[now])
            end += rows
        ctx.save_for_backward(U, V, gates, reset, *masks.saved)
        ctx.sizes = sizes
        ctx.set_materialize_grads(False)
        return states, masks.m

    @staticmethod
    @once_differentiable
    @in_mode
    def backward(ctx: Context, grad: Tensor | None, share_grad: Tensor | None) -> Gradients:
        U, V, gates, reset, *saved = ctx.saved_tensors
        masks, H = MaskGradients(tuple(saved), share_grad), reset.shape[1]
        grad = torch.zeros_like(reset) if grad is None else grad
        da, dh, end = torch.empty_like(gates), reset.new_zeros(0, H), len(reset)
        for rows in reversed(ctx.sizes):
            now = slice(end - rows, end)
            d = grad[now].clone()
            d[: len(dh)] += dh
            z, r, c = gates[now].chunk(3, 1)
            dz, dr, dc = da[now].chunk(3, 1)
            e, h = masks.state_mask[now], masks.previous[now]
            through = d * (c - h)
            torch.mul(through * e, z * (1 - z), out=dz)
            torch.mul(d * e * z, 1 - c * c, out=dc)
            drh = dc @ U[2 * H :]
            torch.mul(drh * masks.h[now], r * (1 - r), out=dr)
            masked = torch.addmm(drh * r, da[now, : 2 * H], U[: 2 * H])
            dh = masks.step(now, d * (1 - e * z), through * z, masked, da[now] @ V)
            end -= rows
        dU = torch.cat([da[:, : 2 * H].t() @ masks.h, da[:, 2 * H :].t() @ reset])
        dV = da.t() @ masks.inputs
        return masks.x_grad, masks.sum_grad, da, dh, dU, dV, masks.scheduler_gradient(), None, None


# ---- variable ----------------------------------------------------------------------------------------------


LEVELS = 8  # groups of rows with about the same m, at most
ALONE = 4  # rows that are computed one by one at most: a group takes longer to put together


class VariableCell(ConfiguredCell):
    """Base class of the cells vcrnn and vcgru. A state is h, (R, H); a context, if any, is not masked: it is
    projected once for all steps."""

    function: ClassVar[type[torch.autograd.Function]]
    matrices: ClassVar[int]  # G
    no_recompute: ClassVar[str] = "stores the shares m of its steps for the penalty"
    equivalent: ClassVar[float] = 1.0  # units of an Elman layer for each unit of this one, by operations

    def __init__(self, inputs: int, hidden: int, settings: object, context: int = 0) -> None:
        super().__init__(inputs, hidden, settings, context)
        G = self.matrices
        self.inputs = nn.Parameter(torch.empty(G * hidden, inputs))
        self.recurrent = nn.Parameter(torch.empty(G * hidden, hidden))
        self.context = nn.Parameter(torch.empty(G * hidden, context)) if context else None
        self.bias = nn.Parameter(torch.zeros(G * hidden))
        self.scheduler = Scheduler(inputs, hidden, cast(ComputationSettings, settings))

    def unroll(
        self, inputs: Tensor, sizes: list[int], start: Tensor, context: Tensor | None = None
    ) -> Tensor:
        return self.unroll_shares(inputs, sizes, start, context)[0]

    def unroll_shares(
        self, inputs: Tensor, sizes: list[int], start: Tensor, context: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Unroll as `unroll` does, with the same arguments. Returns the hidden states (N, H), and the share m
        of the state that the scheduler lets each token update (N,)."""
        projected = self.project(inputs)
        if not torch.is_grad_enabled():
            return self._unroll_by_steps(projected, sizes, start, context)
        states, m = apply_pair(
            self.function,
            inputs,
            projected[:, -1],
            self.bias.expand(len(inputs), -1) if context is None else self.bias + context,
            start,
            self.recurrent,
            self.inputs,
            self.scheduler.state,
            self.scheduler.sharpness,
            sizes,
        )
        self.scheduler.note(m)
        return states, m

    def _unroll_by_steps(
        self, x: Tensor, sizes: list[int], start: Tensor, context: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        states, shares, h, end = [], [], start, 0
        for rows in sizes:
            now = slice(end, end + rows)
            h = h[:rows]
            shares.append(self.scheduler.share(x[now, -1], h))
            h = self._update(x[now, :-1], h, shares[-1], None if context is None else context[now])
            states.append(h)
            end += rows
        return torch.cat(states), torch.cat(shares)

    def dimensions(self, m: Tensor) -> Tensor:
        """How many of the H units a step computes: shares (R,) -> (R,)"""
        return (make_mask(m, self.hidden, self.scheduler.sharpness) > 0).sum(1)

    def project(self, inputs: Tensor) -> Tensor:
        """The part that depends on the words alone, x and v x + b: (N, E) -> (N, E + 1). They need m."""
        return torch.cat([inputs, self.scheduler.project(inputs)], 1)

    def advance(self, x: Tensor, state: Tensor, context: Tensor | None = None) -> Tensor:
        """A step on what `project` gives: (R, E + 1), state (R, H), projected context (R, GH) -> (R, H)"""
        m = self.scheduler.share(x[:, -1], state)
        self.scheduler.note(m)
        return self._update(x[:, :-1], state, m, context)

    def _update(self, inputs: Tensor, state: Tensor, m: Tensor, context: Tensor | None) -> Tensor:
        """The state after a step, given m: (R, E), (R, H), (R,), (R, GH) -> (R, H)"""
        E, H = inputs.shape[1], self.hidden
        e = make_mask(m, H, self.scheduler.sharpness)
        f = e if E == H else make_mask(m, E, self.scheduler.sharpness)
        base = self.bias.expand(len(inputs), -1) if context is None else self.bias + context
        if torch.is_grad_enabled() or inputs.device.type != "cpu":
            return self.change(f * inputs, state, e, base)
        after = state.clone()
        for rows, d, k in row_groups(e, f):
            h = state[rows, :d]
            after[rows, :d] = self.change(f[rows, :k] * inputs[rows, :k], h, e[rows, :d], base[rows])
        return after

    def change(self, inputs: Tensor, state: Tensor, mask: Tensor, base: Tensor) -> Tensor:
        """The first d dimensions of the state after a step, from the first k of the masked inputs: (R, k),
        (R, d), (R, d), biases and contexts (R, GH) -> (R, d)"""
        raise NotImplementedError

    def product(self, gate: int, inputs: Tensor, hidden: Tensor, base: Tensor) -> Tensor:
        """U h + V x + b of one of the G matrices, d dimensions of it: (R, k), (R, d), (R, GH) -> (R, d)"""
        d, first = hidden.shape[1], gate * self.hidden
        rows = slice(first, first + d)
        preactivation = torch.addmm(base[:, rows], hidden, self.recurrent[rows, :d].t())
        return torch.addmm(preactivation, inputs, self.inputs[rows, : inputs.shape[1]].t())


def row_groups(e: Tensor, f: Tensor) -> Iterator[tuple[Tensor | slice, int, int]]:
    """Group rows whose masks have about the same size. Yields the rows of each group, and the numbers d and k
    of dimensions of state and input that they need. `e` (R, H), `f` (R, E): masks of states and inputs."""
    R, H = e.shape
    d, k = (e > 0).sum(1), (f > 0).sum(1)
    if R <= ALONE:
        for row, (own_d, own_k) in enumerate(zip(d.tolist(), k.tolist(), strict=True)):
            yield slice(row, row + 1), own_d, own_k
        return
    level = (d * LEVELS + H - 1) // H
    for group in level.unique().tolist():
        rows = (level == group).nonzero()[:, 0]
        yield rows, int(d[rows].max()), int(k[rows].max())


class VCRNN(VariableCell):
    """h_t = e ⊙ σ(U (e ⊙ h_{t-1}) + V (e ⊙ x_t) + b) + (1 - e) ⊙ h_{t-1}: Jernite 2018, eq. 2.11, where the
    last factor is misprinted as h_t."""

    function = VCRNNFunction
    matrices = 1

    def change(self, inputs: Tensor, state: Tensor, mask: Tensor, base: Tensor) -> Tensor:
        return torch.lerp(state, torch.sigmoid(self.product(0, inputs, mask * state, base)), mask)


class VCGRU(VariableCell):
    """z = e ⊙ σ(U_z h̄ + V_z x̄), r = σ(U_r h̄ + V_r x̄), h̃ = tanh(U (r ⊙ h̄) + V x̄),
    h_t = z ⊙ h̃ + (1 - z) ⊙ h_{t-1}: Jernite 2018, eqs. 2.12-2.14, of the masked h̄ = e ⊙ h_{t-1} and
    x̄ = e ⊙ x_t, with biases. z takes the new state."""

    function = VCGRUFunction
    matrices = 3
    equivalent = math.sqrt(2)  # Jernite 2018, table 2.11: GRU-1024 = RNN-1450; three matrices would be √3

    def change(self, inputs: Tensor, state: Tensor, mask: Tensor, base: Tensor) -> Tensor:
        masked = mask * state
        z = mask * torch.sigmoid(self.product(0, inputs, masked, base))
        r = torch.sigmoid(self.product(1, inputs, masked, base))
        return torch.lerp(state, torch.tanh(self.product(2, inputs, r * masked, base)), z)
