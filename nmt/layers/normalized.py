"""The LSTM with layer normalization (Ba, Kiros and Hinton 2016, eqs. 20-22), by plain autograd."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class NormalizedLSTM(nn.Module):
    """i, f, o, g = norm(W x) + norm(U h) + b, with gains;
    c' = σ(f) c + σ(i) tanh(g);  h' = σ(o) tanh(norm(c'))

    A state is [h; c], (R, 2H).
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.inputs = nn.Parameter(torch.empty(4 * hidden, inputs))
        self.recurrent = nn.Parameter(torch.empty(4 * hidden, hidden))
        self.bias = nn.Parameter(torch.zeros(4 * hidden))
        self.gain_inputs = nn.Parameter(torch.ones(4 * hidden))
        self.gain_recurrent = nn.Parameter(torch.ones(4 * hidden))
        self.gain_cell = nn.Parameter(torch.ones(hidden))
        self.cell_bias = nn.Parameter(torch.zeros(hidden))

    def after_initialize(self) -> None:
        """Set what `initialize` drew or made 0."""
        for gain in (self.gain_inputs, self.gain_recurrent, self.gain_cell):
            gain.fill_(1)
        self.bias[self.hidden : 2 * self.hidden] = 1  # the forget gate

    @property
    def state_size(self) -> int:
        """Width of a state."""
        return 2 * self.hidden

    def output(self, state: Tensor) -> Tensor:
        """What the layer above reads of a state: (R, H)"""
        return state[:, : self.hidden]

    def project(self, inputs: Tensor) -> Tensor:
        """norm(W x) + b: (N, E) -> (N, 4H)"""
        return F.layer_norm(F.linear(inputs, self.inputs), (4 * self.hidden,), self.gain_inputs, self.bias)

    def advance(self, x: Tensor, state: Tensor) -> Tensor:
        """A step on projected inputs: x (R, 4H), state (R, 2H) -> (R, 2H)"""
        H = self.hidden
        a = x + F.layer_norm(F.linear(state[:, :H], self.recurrent), (4 * H,), self.gain_recurrent)
        i, f, o = torch.sigmoid(a[:, : 3 * H]).chunk(3, 1)
        c = f * state[:, H:] + i * torch.tanh(a[:, 3 * H :])
        return torch.cat([o * torch.tanh(F.layer_norm(c, (H,), self.gain_cell, self.cell_bias)), c], 1)

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """One word for each row: inputs (R, E), state (R, 2H) -> state (R, 2H)"""
        return self.advance(self.project(inputs), state)

    def unroll_state(self, inputs: Tensor, sizes: list[int], start: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (N, E), start (B, 2H) -> hidden states (N, H), the state after the last step of the rows
        still alive then (R, 2H)"""
        x, states, state, end = self.project(inputs), [], start, 0
        for rows in sizes:
            state = self.advance(x[end : end + rows], state[:rows])
            states.append(self.output(state))
            end += rows
        return torch.cat(states), state
