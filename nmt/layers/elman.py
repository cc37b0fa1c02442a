"""The simple recurrent layer of Elman (1990), over packed tokens as nmt/layers/cells.py has them.

E input size, H hidden units, B sentences, N tokens, R rows.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.compute.autograd import Context, apply
from nmt.compute.mixed import in_mode


class _ElmanFunction(torch.autograd.Function):
    """h' = σ(x + U h)"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, start: Tensor, matrix: Tensor, sizes: list[int]) -> Tensor:
        """x (N, H) holds the inputs' part; start (B, H); -> states (N, H)"""
        previous, states = torch.empty_like(x), torch.empty_like(x)
        matrix_t, h, end = matrix.t(), start, 0
        for rows in sizes:
            now = slice(end, end + rows)
            previous[now] = h[:rows]
            h = torch.addmm(x[now], h[:rows], matrix_t, out=states[now]).sigmoid_()
            end += rows
        ctx.save_for_backward(matrix, previous, states)
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
            d = grad[now].clone()
            d[: len(dh)] += dh
            torch.mul(d, states[now] * (1 - states[now]), out=dx[now])
            dh = dx[now] @ matrix
            end -= rows
        return dx, dh, dx.t() @ previous, None


class Elman(nn.Module):
    """h_t = σ(V x_t + U h_{t-1} + b) (spec. 1.X, the sub-word thesis, section 1.4). A state is h, (R, H)."""

    def __init__(self, inputs: int, hidden: int, bias: bool = True) -> None:
        super().__init__()
        self.hidden = hidden
        self.inputs = nn.Parameter(torch.empty(hidden, inputs))  # V
        self.recurrent = nn.Parameter(torch.empty(hidden, hidden))  # U
        self.bias = nn.Parameter(torch.zeros(hidden)) if bias else None

    @property
    def state_size(self) -> int:
        """Width of a state."""
        return self.hidden

    def output(self, state: Tensor) -> Tensor:
        """What the layer above reads of a state: (R, H)"""
        return state

    def unroll_state(self, inputs: Tensor, sizes: list[int], start: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (N, E), start (B, H) -> hidden states (N, H), and the state after the last step of the rows
        still alive then, (R, H)."""
        x = F.linear(inputs, self.inputs, self.bias)
        states = apply(_ElmanFunction, x, start, self.recurrent, sizes)
        return states, states[-sizes[-1] :]

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """One word for each row: inputs (R, E), state (R, H) -> state (R, H)"""
        x = F.linear(inputs, self.inputs, self.bias)
        return torch.addmm(x, state, self.recurrent.t()).sigmoid_()
