"""The LSTM with layer normalization: its equations written out, steps = the whole, gradients."""

import pytest
import torch
from torch import Tensor

from nmt.layers.normalized import NormalizedLSTM

E, H = 3, 4


def make() -> NormalizedLSTM:
    torch.manual_seed(0)
    cell = NormalizedLSTM(E, H).double()
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.normal_()
    return cell


def norm(x: Tensor, gain: Tensor, bias: Tensor | float = 0.0) -> Tensor:
    """Row by row: mean 0 and variance 1, times the gain, plus the bias."""
    rows = [(row - row.mean()) / torch.sqrt(row.var(unbiased=False) + 1e-5) * gain + bias for row in x]
    return torch.stack(rows)


@torch.no_grad()
def test_a_step_by_its_equations() -> None:
    cell = make()
    x, h, c = torch.randn(5, E).double(), torch.randn(5, H).double(), torch.randn(5, H).double()
    a = norm(x @ cell.inputs.T, cell.gain_inputs, cell.bias) + norm(h @ cell.recurrent.T, cell.gain_recurrent)
    i, f, o, g = a.split(H, 1)
    after = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    shown = torch.sigmoid(o) * torch.tanh(norm(after, cell.gain_cell, cell.cell_bias))
    found = cell.step(x, torch.cat([h, c], 1))
    assert torch.allclose(found, torch.cat([shown, after], 1), atol=1e-12)
    assert torch.equal(cell.output(found), found[:, :H]) and cell.state_size == found.shape[1]


@torch.no_grad()
@pytest.mark.parametrize("sizes", [[3, 2, 2, 1], [2], [1, 1, 1]])
def test_the_whole_is_its_steps(sizes: list[int]) -> None:
    """Rows end one after the other; the last state is that of the rows that are still alive."""
    cell = make()
    inputs, start = torch.randn(sum(sizes), E).double(), torch.randn(sizes[0], 2 * H).double()
    states, last = cell.unroll_state(inputs, sizes, start)
    alone = []
    for row in range(sizes[0]):
        state, end = start[row : row + 1], 0
        for step, rows in enumerate(sizes):
            if row < rows:
                state = cell.step(inputs[end + row : end + row + 1], state)
                assert torch.allclose(states[end + row], cell.output(state)[0], atol=1e-12), step
            end += rows
        alone.append(state)
    assert torch.allclose(last, torch.cat(alone[: sizes[-1]]), atol=1e-12)


def test_gradients() -> None:
    cell = make()
    inputs, start = torch.randn(6, E).double(), torch.randn(3, 2 * H).double()
    parameters = list(cell.parameters())
    assert torch.autograd.gradcheck(
        lambda *_: cell.unroll_state(inputs, [3, 2, 1], start)[0], parameters, fast_mode=True
    )


def test_a_fresh_layer_forgets_little() -> None:
    cell = make()
    with torch.no_grad():
        cell.bias.zero_()
        cell.after_initialize()
    assert cell.bias.tolist() == [0.0] * H + [1.0] * H + [0.0] * (2 * H)
    assert all((gain == 1).all() for gain in (cell.gain_inputs, cell.gain_recurrent, cell.gain_cell))
