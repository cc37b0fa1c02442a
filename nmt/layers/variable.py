"""Recurrent layers that compute only a part of their state at each step, over packed tokens as
nmt/layers/cells.py has them: the variable computation units of the sub-word thesis, section 2.4, which are an
Elman layer (VCRNN) and a gated unit (VCGRU) behind the mask of nmt/layers/computation.py.

Training multiplies whole matrices, by masked vectors. Where no gradient is needed, the dimensions that the
mask has set to 0 are left out of the products: of each row, or of rows with about the same m together.

E input size, H hidden units, C context size, B sentences, N tokens, R rows, G matrices of a cell.
"""

import math
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor, nn

from nmt.compute.autograd import apply_pair
from nmt.layers.computation import ComputationSettings, Scheduler, mask_of
from nmt.layers.hidden_state import HiddenState
from nmt.layers.variable_functions import VCGRUFunction, VCRNNFunction

LEVELS = 8  # groups of rows with about the same m, at most
ALONE = 4  # rows that are computed one by one at most: a group takes longer to put together


class VariableCell(HiddenState):
    """What both units share. A state is h, (R, H); a context, if any, is not masked: it is projected once for
    all steps."""

    function: ClassVar[type[torch.autograd.Function]]
    matrices: ClassVar[int]  # G
    equivalent: ClassVar[float] = 1.0  # units of an Elman layer for each unit of this one, by operations

    def __init__(self, inputs: int, hidden: int, settings: ComputationSettings, context: int = 0) -> None:
        super().__init__()
        self.hidden, G = hidden, self.matrices
        self.inputs = nn.Parameter(torch.empty(G * hidden, inputs))
        self.recurrent = nn.Parameter(torch.empty(G * hidden, hidden))
        self.context = nn.Parameter(torch.empty(G * hidden, context)) if context else None
        self.bias = nn.Parameter(torch.zeros(G * hidden))
        self.scheduler = Scheduler(inputs, hidden, settings)

    def unroll(
        self, inputs: Tensor, sizes: list[int], start: Tensor, context: Tensor | None = None
    ) -> Tensor:
        """Inputs (N, E), start (B, H), projected context of each token (N, GH) -> hidden states (N, H)"""
        return self.unroll_shares(inputs, sizes, start, context)[0]

    def unroll_shares(
        self, inputs: Tensor, sizes: list[int], start: Tensor, context: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """As `unroll`, and what the scheduler decided: hidden states (N, H), m (N,)"""
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
        return (mask_of(m, self.hidden, self.scheduler.sharpness) > 0).sum(1)

    def step(self, inputs: Tensor, state: Tensor, context: Tensor | None = None) -> Tensor:
        """One word for each row: inputs (R, E), state (R, H), projected context (R, GH) -> state (R, H)"""
        return self.advance(self.project(inputs), state, context)

    def project(self, inputs: Tensor) -> Tensor:
        """What can be computed of words alone: x and v x + b, (N, E) -> (N, E + 1). The matrices have to
        wait for m."""
        return torch.cat([inputs, self.scheduler.project(inputs)], 1)

    def advance(self, x: Tensor, state: Tensor, context: Tensor | None = None) -> Tensor:
        """A step on what `project` gives: (R, E + 1), state (R, H), projected context (R, GH) -> (R, H)"""
        m = self.scheduler.share(x[:, -1], state)
        self.scheduler.note(m)
        return self._update(x[:, :-1], state, m, context)

    def _update(self, inputs: Tensor, state: Tensor, m: Tensor, context: Tensor | None) -> Tensor:
        """The state after a step, given m: (R, E), (R, H), (R,), (R, GH) -> (R, H)"""
        E, H = inputs.shape[1], self.hidden
        e = mask_of(m, H, self.scheduler.sharpness)
        f = e if E == H else mask_of(m, E, self.scheduler.sharpness)
        base = self.bias.expand(len(inputs), -1) if context is None else self.bias + context
        if torch.is_grad_enabled() or inputs.device.type != "cpu":
            return self.change(f * inputs, state, e, base)
        after = state.clone()
        for rows, d, k in parts(e, f):
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
        found = torch.addmm(base[:, rows], hidden, self.recurrent[rows, :d].t())
        return torch.addmm(found, inputs, self.inputs[rows, : inputs.shape[1]].t())


def parts(e: Tensor, f: Tensor) -> Iterator[tuple[Tensor | slice, int, int]]:
    """Rows that are computed together, and how many dimensions of state and input they need: masks (R, H),
    (R, E) -> (rows, d, k), ..."""
    R, H = e.shape
    d, k = (e > 0).sum(1), (f > 0).sum(1)
    if R <= ALONE:
        for row, (own_d, own_k) in enumerate(zip(d.tolist(), k.tolist(), strict=True)):
            yield slice(row, row + 1), own_d, own_k
        return
    level = (d * LEVELS + H - 1) // H
    for number in level.unique().tolist():
        rows = (level == number).nonzero()[:, 0]
        yield rows, int(d[rows].max()), int(k[rows].max())


class VCRNN(VariableCell):
    """h_t = e ⊙ σ(U (e ⊙ h_{t-1}) + V (e ⊙ x_t) + b) + (1 - e) ⊙ h_{t-1}: (2.11) of the thesis, where the
    last factor is misprinted as h_t."""

    function = VCRNNFunction
    matrices = 1

    def change(self, inputs: Tensor, state: Tensor, mask: Tensor, base: Tensor) -> Tensor:
        return torch.lerp(state, torch.sigmoid(self.product(0, inputs, mask * state, base)), mask)


class VCGRU(VariableCell):
    """z = e ⊙ σ(U_z h̄ + V_z x̄), r = σ(U_r h̄ + V_r x̄), h̃ = tanh(U (r ⊙ h̄) + V x̄),
    h_t = z ⊙ h̃ + (1 - z) ⊙ h_{t-1}: (2.12) to (2.14) of the thesis, of the masked h̄ = e ⊙ h_{t-1} and
    x̄ = e ⊙ x_t, with biases. z takes the new state."""

    function = VCGRUFunction
    matrices = 3
    equivalent = math.sqrt(2)  # of the thesis' table 2.11, GRU-1024 = RNN-1450; three matrices would be √3

    def change(self, inputs: Tensor, state: Tensor, mask: Tensor, base: Tensor) -> Tensor:
        masked = mask * state
        z = mask * torch.sigmoid(self.product(0, inputs, masked, base))
        r = torch.sigmoid(self.product(1, inputs, masked, base))
        return torch.lerp(state, torch.tanh(self.product(2, inputs, r * masked, base)), z)


VARIABLE_CELLS: dict[str, type[VariableCell]] = {"vcrnn": VCRNN, "vcgru": VCGRU}
