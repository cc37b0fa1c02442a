"""Recurrent layers over packed tokens (see nmt/data/batches.py): the gated unit of Cho et al. 2014a, the
LSTM, plain and with layer normalization, and the simple layer of Elman 1990.

Letters as in Cho et al. 2014a; E input size, H hidden units, C context size, B sentences, N tokens of all
sentences, R rows. Each layer has two forms of the same equations: `unroll` or `unroll_state`, all steps of a
batch, and `step`, one word for search. The unrolled LSTM, Elman layer and GRU (with reset `before`) are
custom autograd functions, whose weight gradients are one matrix product after the loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.compute.autograd import Context, apply, apply_pair
from nmt.compute.precision import in_mode
from nmt.plugins import Registry, with_settings

# ---- what cells have in common -----------------------------------------------------------------------------


class Cell(nn.Module):
    """A recurrent layer of G matrices, over inputs of size E and contexts, if any, of size C. A state is h,
    (R, H), unless a subclass says otherwise."""

    hidden: int  # H
    inputs: nn.Parameter  # (GH, E)
    recurrent: nn.Parameter
    context: nn.Parameter | None  # (GH, C)
    bias: nn.Parameter | None  # (GH,)

    @property
    def state_size(self) -> int:
        """Number of columns of a state tensor."""
        return self.hidden

    def project_context(self, context: Tensor) -> Tensor:
        """C c, once for all steps: (B, C) -> (B, GH)"""
        assert self.context is not None, "this layer was made without a context"
        return F.linear(context, self.context)

    def start(self, hidden: Tensor) -> Tensor:
        """Build the initial state from a hidden vector (B, H)."""
        return hidden

    def output(self, state: Tensor) -> Tensor:
        """The part of a state that the layer above reads: (R, H)"""
        return state

    def project(self, inputs: Tensor) -> Tensor:
        """W x + b, the inputs' part of all sums: (N, E) -> (N, GH). Cells may choose another width."""
        return F.linear(inputs, self.inputs, self.bias)

    def advance(self, x: Tensor, state: Tensor, context: Tensor | None = None) -> Tensor:
        """A step on projected inputs: x (R, GH), state (R, S), projected context (R, GH) -> state (R, S)"""
        raise NotImplementedError

    def step(self, inputs: Tensor, state: Tensor, context: Tensor | None = None) -> Tensor:
        """One word for each row: inputs (R, E), state (R, S), projected context (R, GH) -> state (R, S)"""
        return self.advance(self.project(inputs), state, context)

    def unroll(
        self, inputs: Tensor, sizes: list[int], start: Tensor, context: Tensor | None = None
    ) -> Tensor:
        """Compute all steps: inputs (N, E), start (B, S), projected context of each token (N, GH) -> hidden
        states (N, H). `sizes`: the number of rows at each step, longest sentence first."""
        raise NotImplementedError

    def unroll_state(self, inputs: Tensor, sizes: list[int], start: Tensor) -> tuple[Tensor, Tensor]:
        """Compute all steps like `unroll`, without a context; also returns the final state of the rows that
        reach the last step, (R, S)."""
        states = self.unroll(inputs, sizes, start)
        return states, states[-sizes[-1] :]


class ConfiguredCell(Cell):
    """A cell added by a paper or a plugin, created from the settings of its section."""

    no_recompute: ClassVar[str] = ""  # why its steps cannot be computed a second time, for lm.recompute
    bias: nn.Parameter

    def __init__(self, inputs: int, hidden: int, settings: object, context: int = 0) -> None:
        """A layer over inputs and, with `context`, contexts of these widths. `settings`: `CellSettings`."""
        super().__init__()
        self.hidden = hidden


CONFIGURED_CELLS: Registry[type[ConfiguredCell]] = Registry("cell", {})  # by the names that `cell` takes


@dataclass
@with_settings("cell settings")
class CellSettings:
    """The keys of `lm` and `model` that configured cells add."""


class Penalized(nn.Module):
    """A part of a model that adds to the cost of training."""

    def penalty(self) -> Tensor | float:
        """Penalty for everything computed since the last call: ()"""
        raise NotImplementedError


def penalized_parts(model: nn.Module) -> list[Penalized]:
    """The parts of a model that add to the cost of training."""
    return [part for part in model.modules() if isinstance(part, Penalized)]


def total_penalty(parts: Sequence[Penalized]) -> Tensor | float:
    """The sum of the penalties of some parts since the last call, (); 0 without parts."""
    return sum(part.penalty() for part in parts)


# ---- cells -------------------------------------------------------------------------------------------------


GATES = ("keep_old", "take_new")
RESETS = ("before", "after", "after_with_context")


class _RepeatFunction(torch.autograd.Function):
    """values[rows] for packed rows, with a gradient that is summed in a fixed order, unlike torch's."""

    @staticmethod
    def forward(ctx: Context, values: Tensor, sizes: list[int]) -> Tensor:
        ctx.sizes = sizes
        return torch.cat([values[:rows] for rows in sizes])

    @staticmethod
    @once_differentiable
    @in_mode
    def backward(ctx: Context, grad: Tensor) -> tuple[Tensor | None, ...]:
        total = grad[: ctx.sizes[0]].clone()
        end = ctx.sizes[0]
        for rows in ctx.sizes[1:]:
            total[:rows] += grad[end : end + rows]
            end += rows
        return total, None


def repeat(values: Tensor, sizes: list[int]) -> Tensor:
    """Repeat the vector of each sentence for each of its words: (B, K), longest sentence first -> (N, K)"""
    return apply(_RepeatFunction, values, sizes)


def earlier_states(states: Tensor, start: Tensor, sizes: list[int]) -> Tensor:
    """The state before each step: states after each (N, H), start (B, H) -> (N, H)"""
    firsts = accumulate([0, *sizes[:-1]])  # of the states of each step
    later = [states[first : first + rows] for first, rows in zip(firsts, sizes[1:], strict=False)]
    return torch.cat([start[: sizes[0]], *later])


def add_rows(grad: Tensor, later: Tensor) -> Tensor:
    """Add `later` (r, H), the gradient from the next step, to the first r rows of a copy of `grad` (R, H):
    only the r longest sentences have a next step."""
    if len(later) == len(grad):
        return grad + later
    total = grad.clone()
    total[: len(later)] += later
    return total


def tanh_gradient(grad: Tensor, y: Tensor, out: Tensor) -> None:
    """Write grad (1 - y²), the gradient before y = tanh(x), to `out`; all have one shape."""
    torch.ops.aten.tanh_backward.grad_input(grad, y, grad_input=out)


def sigmoid_gradient(grad: Tensor, y: Tensor, out: Tensor) -> None:
    """Write grad y (1 - y), the gradient before y = σ(x), to `out`; all have one shape."""
    torch.ops.aten.sigmoid_backward.grad_input(grad, y, grad_input=out)


class _GRUFunction(torch.autograd.Function):
    """z, r = σ(x + U_zr h); h̃ = tanh(x + U (r ⊙ h)); h' = z ⊙ h + (1 - z) ⊙ h̃
    (van Merriënboer 2018, eqs. 4.5-4.8)"""

    @staticmethod
    def forward(
        ctx: Context, x: Tensor, start: Tensor, gates_matrix: Tensor, matrix: Tensor, sizes: list[int]
    ) -> Tensor:
        """x (N, 3H) holds the inputs' part of z, r and the candidate; start (B, H); -> states (N, H)"""
        N, H = x.shape[0], start.shape[1]
        gates = x.new_empty(N, 2 * H)
        reset, candidate, states = x.new_empty(N, H), x.new_empty(N, H), x.new_empty(N, H)
        gates_t, matrix_t = gates_matrix.t(), matrix.t()
        h, end = start, 0
        for rows in sizes:
            now = slice(end, end + rows)
            h = h[:rows]
            zr = torch.addmm(x[now, : 2 * H], h, gates_t, out=gates[now]).sigmoid_()
            rh = torch.mul(zr[:, H:], h, out=reset[now])
            c = torch.addmm(x[now, 2 * H :], rh, matrix_t, out=candidate[now]).tanh_()
            h = torch.lerp(c, h, zr[:, :H], out=states[now])
            end += rows
        ctx.save_for_backward(
            gates_matrix, matrix, gates, earlier_states(states, start, sizes), reset, candidate
        )
        ctx.sizes = sizes
        return states

    @staticmethod
    @once_differentiable
    @in_mode
    def backward(ctx: Context, grad: Tensor) -> tuple[Tensor | None, ...]:
        gates_matrix, matrix, gates, previous, reset, candidate = ctx.saved_tensors
        N, H = candidate.shape
        dx = grad.new_empty(N, 3 * H)
        dh = grad.new_zeros(0, H)
        end = N
        for rows in reversed(ctx.sizes):
            now = slice(end - rows, end)
            d = add_rows(grad[now], dh)
            z, r, c, h = gates[now, :H], gates[now, H:], candidate[now], previous[now]
            dzr, dc = dx[now, : 2 * H], dx[now, 2 * H :]
            tanh_gradient(torch.addcmul(d, d, z, value=-1), c, out=dc)
            drh = dc @ matrix
            sigmoid_gradient((h - c).mul_(d), z, out=dzr[:, :H])
            sigmoid_gradient(drh * h, r, out=dzr[:, H:])
            dh = torch.addmm(d.mul_(z), dzr, gates_matrix).addcmul_(drh, r)
            end -= rows
        # sizes[0] is the whole batch, so dh ends with one row a sentence
        return dx, dh, dx[:, : 2 * H].t() @ previous, dx[:, 2 * H :].t() @ reset, None


class GRU(Cell):
    """The gated unit of Cho et al. 2014a (van Merriënboer 2018, eqs. 4.5-4.8); the context enters both gates
    and the candidate at every step.

    `gate`: z keeps the old state (Cho et al. 2014a) or takes the new one (their code). `reset`: r multiplies
    h before U (Cho et al. 2014a and their code), U h after it, or U h + C c together (their supplement).
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        context: int = 0,
        bias: bool = False,
        gate: str = "keep_old",
        reset: str = "before",
    ) -> None:
        super().__init__()
        self.hidden, self.gate, self.reset = hidden, gate, reset
        self.inputs = nn.Parameter(torch.empty(3 * hidden, inputs))  # W_z, W_r, W
        self.recurrent_gates = nn.Parameter(torch.empty(2 * hidden, hidden))  # U_z, U_r
        self.recurrent = nn.Parameter(torch.empty(hidden, hidden))  # U
        self.context = nn.Parameter(torch.empty(3 * hidden, context)) if context else None  # C_z, C_r, C
        self.bias = nn.Parameter(torch.zeros(3 * hidden)) if bias else None

    def unroll(
        self, inputs: Tensor, sizes: list[int], start: Tensor, context: Tensor | None = None
    ) -> Tensor:
        x = self.project(inputs)
        if self.reset != "before":
            return self.unroll_by_steps(x, sizes, start, context)
        if context is not None:
            x = x + context
        gates: Tensor = self.recurrent_gates
        if self.gate == "take_new":  # σ(-a) = 1 - σ(a): the same function with the update gate inverted
            sign = torch.ones(3 * self.hidden, dtype=x.dtype, device=x.device)
            sign[: self.hidden] = -1
            x, gates = x * sign, gates * sign[: 2 * self.hidden, None]
        return apply(_GRUFunction, x, start, gates, self.recurrent, sizes)

    def unroll_by_steps(self, x: Tensor, sizes: list[int], start: Tensor, context: Tensor | None) -> Tensor:
        """Compute the same as `unroll`, given projected inputs `x` (N, 3H), by plain autograd: slower, but
        with any placement of the reset gate. `unroll` uses it for all but `before`."""
        states, h, end = [], start, 0
        for rows in sizes:
            part = None if context is None else context[end : end + rows]
            h = self.advance(x[end : end + rows], h[:rows], part)
            states.append(h)
            end += rows
        return torch.cat(states)

    def advance(self, x: Tensor, state: Tensor, context: Tensor | None = None) -> Tensor:
        """One step, see the base class; may overwrite `x` if no gradient is needed."""
        H, h = self.hidden, state
        if self.reset == "before" and not torch.is_grad_enabled():
            return self._advance_in_place(x if context is None else x + context, h)
        part = x if context is None else x + context
        z, r = torch.addmm(part[:, : 2 * H], h, self.recurrent_gates.t()).sigmoid_().chunk(2, 1)
        if self.reset == "before":
            candidate = torch.addmm(part[:, 2 * H :], r * h, self.recurrent.t()).tanh_()
        else:
            inside = h @ self.recurrent.t()
            outside = part[:, 2 * H :]
            if self.reset == "after_with_context" and context is not None:
                inside, outside = inside + context[:, 2 * H :], x[:, 2 * H :]
            candidate = torch.tanh(outside + r * inside)
        return torch.lerp(candidate, h, z) if self.gate == "keep_old" else torch.lerp(h, candidate, z)

    def _advance_in_place(self, x: Tensor, h: Tensor) -> Tensor:
        """Advance without allocating memory, which saves 6% of the time of phrase scoring. tanh a =
        2 σ(2a) - 1, and torch's σ is six times as fast."""
        H = self.hidden
        z, r = x[:, : 2 * H].addmm_(h, self.recurrent_gates.t()).sigmoid_().chunk(2, 1)
        candidate = x[:, 2 * H :].addmm_(r.mul_(h), self.recurrent.t()).mul_(2).sigmoid_().mul_(2).sub_(1)
        return torch.lerp(candidate, h, z) if self.gate == "keep_old" else torch.lerp(h, candidate, z)


class _LSTMFunction(torch.autograd.Function):
    """i, f, o = σ(x + U h);  g = tanh(x + U h);  c' = f ⊙ c + i ⊙ g;  h' = o ⊙ tanh(c')"""

    @staticmethod
    def forward(
        ctx: Context, x: Tensor, start: Tensor, matrix: Tensor, sizes: list[int]
    ) -> tuple[Tensor, Tensor]:
        """x (N, 4H): the inputs' part of i, f, o, g; start (B, 2H): [h; c] -> states (N, H), cells (N, H)"""
        N, H = x.shape[0], start.shape[1] // 2
        gates = torch.empty_like(x)
        cells, squashed, states = (x.new_empty(N, H) for _ in range(3))
        matrix_t = matrix.t()
        h, c, end = start[:, :H], start[:, H:], 0
        for rows in sizes:
            now = slice(end, end + rows)
            h, c = h[:rows], c[:rows]
            a = torch.addmm(x[now], h, matrix_t, out=gates[now])
            a[:, : 3 * H].sigmoid_()
            a[:, 3 * H :].tanh_()
            i, f, o, g = a.chunk(4, 1)
            c = torch.addcmul(f * c, i, g, out=cells[now])
            t = torch.tanh(c, out=squashed[now])
            h = torch.mul(o, t, out=states[now])
            end += rows
        previous, old_cells = (
            earlier_states(states, start[:, :H], sizes),
            earlier_states(cells, start[:, H:], sizes),
        )
        ctx.save_for_backward(matrix, gates, previous, old_cells, squashed)
        ctx.sizes = sizes
        ctx.set_materialize_grads(False)
        return states, cells

    @staticmethod
    @once_differentiable
    @in_mode
    def backward(ctx: Context, grad: Tensor | None, cell_grad: Tensor | None) -> tuple[Tensor | None, ...]:
        matrix, gates, previous, old_cells, squashed = ctx.saved_tensors
        N, H = squashed.shape
        grad = torch.zeros_like(squashed) if grad is None else grad
        dx = grad.new_empty(N, 4 * H)
        dh, dc = grad.new_zeros(0, H), grad.new_zeros(0, H)
        end = N
        for rows in reversed(ctx.sizes):
            now = slice(end - rows, end)
            i, f, o, g = gates[now].chunk(4, 1)
            t, d = squashed[now], add_rows(grad[now], dh)
            dcell = torch.ops.aten.tanh_backward(d * o, t)
            dcell[: len(dc)] += dc
            if cell_grad is not None:
                dcell += cell_grad[now]
            di, df, do, dg = dx[now].chunk(4, 1)
            sigmoid_gradient(dcell * g, i, out=di)
            sigmoid_gradient(dcell * old_cells[now], f, out=df)
            sigmoid_gradient(d.mul_(t), o, out=do)
            tanh_gradient(dcell * i, g, out=dg)
            dh, dc = dx[now] @ matrix, dcell * f
            end -= rows
        return dx, torch.cat([dh, dc], 1), dx.t() @ previous, None


class MemoryCell(Cell):
    """A layer with a memory cell c: a state is [h; c], (R, 2H)."""

    @property
    def state_size(self) -> int:
        return 2 * self.hidden

    def start(self, hidden: Tensor) -> Tensor:
        """Build the initial state from a hidden vector (B, H), with a memory cell of zeros: (B, 2H)"""
        return torch.cat([hidden, torch.zeros_like(hidden)], 1)

    def output(self, state: Tensor) -> Tensor:
        return state[:, : self.hidden]


class LSTM(MemoryCell):
    """The LSTM (Jernite 2018, eq. 1.4), with a forget bias of 1 at first. The context enters all gates."""

    bias: nn.Parameter

    def __init__(self, inputs: int, hidden: int, context: int = 0) -> None:
        super().__init__()
        self.hidden = hidden
        self.inputs = nn.Parameter(torch.empty(4 * hidden, inputs))
        self.recurrent = nn.Parameter(torch.empty(4 * hidden, hidden))
        self.context = nn.Parameter(torch.empty(4 * hidden, context)) if context else None
        self.bias = nn.Parameter(torch.zeros(4 * hidden))  # the forget gate needs its 1

    def after_initialize(self) -> None:
        """Restore the forget bias, which `initialize` set to 0."""
        self.bias[self.hidden : 2 * self.hidden] = 1

    def unroll(
        self, inputs: Tensor, sizes: list[int], start: Tensor, context: Tensor | None = None
    ) -> Tensor:
        x = self.project(inputs)
        x = x if context is None else x + context
        return apply_pair(_LSTMFunction, x, start, self.recurrent, sizes)[0]

    def unroll_state(self, inputs: Tensor, sizes: list[int], start: Tensor) -> tuple[Tensor, Tensor]:
        states, cells = apply_pair(_LSTMFunction, self.project(inputs), start, self.recurrent, sizes)
        return states, torch.cat([states[-sizes[-1] :], cells[-sizes[-1] :]], 1)

    def advance(self, x: Tensor, state: Tensor, context: Tensor | None = None) -> Tensor:
        H = self.hidden
        a = torch.addmm(x if context is None else x + context, state[:, :H], self.recurrent.t())
        i, f, o = torch.sigmoid(a[:, : 3 * H]).chunk(3, 1)
        c = f * state[:, H:] + i * torch.tanh(a[:, 3 * H :])
        return torch.cat([o * torch.tanh(c), c], 1)


class _ElmanFunction(torch.autograd.Function):
    """h' = σ(x + U h)"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, start: Tensor, matrix: Tensor, sizes: list[int]) -> Tensor:
        """x (N, H) holds the inputs' part; start (B, H); -> states (N, H)"""
        states = torch.empty_like(x)
        matrix_t, h, end = matrix.t(), start, 0
        for rows in sizes:
            now = slice(end, end + rows)
            h = torch.addmm(x[now], h[:rows], matrix_t, out=states[now]).sigmoid_()
            end += rows
        ctx.save_for_backward(matrix, earlier_states(states, start, sizes), states)
        ctx.sizes = sizes
        return states

    @staticmethod
    @once_differentiable
    @in_mode
    def backward(ctx: Context, grad: Tensor) -> tuple[Tensor | None, ...]:
        matrix, previous, states = ctx.saved_tensors
        dx, dh, end = torch.empty_like(states), grad.new_zeros(0, states.shape[1]), len(states)
        for rows in reversed(ctx.sizes):
            now = slice(end - rows, end)
            sigmoid_gradient(add_rows(grad[now], dh), states[now], out=dx[now])
            dh = dx[now] @ matrix
            end -= rows
        return dx, dh, dx.t() @ previous, None


class Elman(Cell):
    """The simple recurrent layer of Elman (1990): h_t = σ(V x_t + U h_{t-1} + b) (Jernite 2018, section 1.4).
    It reads no context: `context` of its methods is ignored."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden, self.context = hidden, None
        self.inputs = nn.Parameter(torch.empty(hidden, inputs))  # V
        self.recurrent = nn.Parameter(torch.empty(hidden, hidden))  # U
        self.bias = nn.Parameter(torch.zeros(hidden))

    def unroll(
        self, inputs: Tensor, sizes: list[int], start: Tensor, context: Tensor | None = None
    ) -> Tensor:
        return apply(_ElmanFunction, self.project(inputs), start, self.recurrent, sizes)

    def advance(self, x: Tensor, state: Tensor, context: Tensor | None = None) -> Tensor:
        return torch.addmm(x, state, self.recurrent.t()).sigmoid_()


class NormalizedLSTM(MemoryCell):
    """The LSTM with layer normalization (Ba, Kiros and Hinton 2016, eqs. 20-22), by plain autograd.

        i, f, o, g = norm(W x) + norm(U h) + b, with gains
        c' = σ(f) c + σ(i) tanh(g);  h' = σ(o) tanh(norm(c'))

    It reads no context, and has `unroll_state` but not `unroll`.
    """

    bias: nn.Parameter

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden, self.context = hidden, None
        self.inputs = nn.Parameter(torch.empty(4 * hidden, inputs))
        self.recurrent = nn.Parameter(torch.empty(4 * hidden, hidden))
        self.bias = nn.Parameter(torch.zeros(4 * hidden))
        self.gain_inputs = nn.Parameter(torch.ones(4 * hidden))
        self.gain_recurrent = nn.Parameter(torch.ones(4 * hidden))
        self.gain_cell = nn.Parameter(torch.ones(hidden))
        self.cell_bias = nn.Parameter(torch.zeros(hidden))

    def after_initialize(self) -> None:
        """Restore the gains and the forget bias, which `initialize` has overwritten."""
        for gain in (self.gain_inputs, self.gain_recurrent, self.gain_cell):
            gain.fill_(1)
        self.bias[self.hidden : 2 * self.hidden] = 1  # the forget gate

    def project(self, inputs: Tensor) -> Tensor:
        """norm(W x) + b: (N, E) -> (N, 4H)"""
        return F.layer_norm(F.linear(inputs, self.inputs), (4 * self.hidden,), self.gain_inputs, self.bias)

    def advance(self, x: Tensor, state: Tensor, context: Tensor | None = None) -> Tensor:
        H = self.hidden
        a = x + F.layer_norm(F.linear(state[:, :H], self.recurrent), (4 * H,), self.gain_recurrent)
        i, f, o = torch.sigmoid(a[:, : 3 * H]).chunk(3, 1)
        c = f * state[:, H:] + i * torch.tanh(a[:, 3 * H :])
        return torch.cat([o * torch.tanh(F.layer_norm(c, (H,), self.gain_cell, self.cell_bias)), c], 1)

    def unroll_state(self, inputs: Tensor, sizes: list[int], start: Tensor) -> tuple[Tensor, Tensor]:
        x, states, state, end = self.project(inputs), [], start, 0
        for rows in sizes:
            state = self.advance(x[end : end + rows], state[:rows])
            states.append(self.output(state))
            end += rows
        return torch.cat(states), state
