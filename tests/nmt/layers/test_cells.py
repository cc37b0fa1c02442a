"""The cells against plain NumPy loops over the equations of the papers, one word of one sentence at a
time."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.data.batches import pack
from nmt.layers.cells import GRU, LSTM, Cell, Elman, NormalizedLSTM, repeat
from nmt.layers.initialize import initialize, orthogonal
from nmt.papers.settings import ComputationSettings
from nmt.papers.variable.cells import VCRNN

# ---- cells -------------------------------------------------------------------------------------------------


E, H, C = 3, 4, 5
Array = NDArray[np.float64]
SENTENCES = [[3, 4, 5], [6], [7, 8, 9, 3, 4], [5, 5, 5]]


def sigmoid(a: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-a)))


def gru_step(cell: GRU, x: Array, h: Array, c: Array) -> Array:
    """Eqs. 4.5-4.8, with the named variants: r, z, candidate, mix."""
    W_z, W_r, W = (part.detach().numpy() for part in cell.inputs.chunk(3))
    U_z, U_r = (part.detach().numpy() for part in cell.recurrent_gates.chunk(2))
    C_z, C_r, C_h = (part.detach().numpy() for part in cell.context.chunk(3))  # type: ignore[union-attr]
    U = cell.recurrent.detach().numpy()
    b_z, b_r, b = (part.detach().numpy() for part in cell.bias.chunk(3))  # type: ignore[union-attr]
    r = sigmoid(W_r @ x + U_r @ h + C_r @ c + b_r)
    z = sigmoid(W_z @ x + U_z @ h + C_z @ c + b_z)
    inner = {
        "before": W @ x + U @ (r * h) + C_h @ c,
        "after": W @ x + r * (U @ h) + C_h @ c,
        "after_with_context": W @ x + r * (U @ h + C_h @ c),
    }[cell.reset]
    candidate = np.tanh(inner + b)
    return np.asarray(z * h + (1 - z) * candidate if cell.gate == "keep_old" else (1 - z) * h + z * candidate)


def lstm_step(cell: LSTM, x: Array, state: Array, c: Array) -> Array:
    assert cell.context is not None
    h, memory = state[:H], state[H:]
    sums = cell.inputs @ torch.tensor(x) + cell.recurrent @ torch.tensor(h) + cell.context @ torch.tensor(c)
    i, f, o, g = np.split((sums + cell.bias).detach().numpy(), 4)
    memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(g)
    return np.concatenate([sigmoid(o) * np.tanh(memory), memory])


VARIANTS: dict[str, tuple[Callable[[], Cell], Callable[..., Array]]] = {
    "gru": (lambda: GRU(E, H, C, bias=True), gru_step),
    "gru take_new": (lambda: GRU(E, H, C, bias=True, gate="take_new"), gru_step),
    "gru reset after": (lambda: GRU(E, H, C, bias=True, reset="after"), gru_step),
    "gru reset after_with_context take_new": (
        lambda: GRU(E, H, C, bias=True, reset="after_with_context", gate="take_new"),
        gru_step,
    ),
    "lstm": (lambda: LSTM(E, H, C), lstm_step),
}


AnyCell = TypeVar("AnyCell", bound=Cell)


def fill(cell: AnyCell) -> AnyCell:
    torch.manual_seed(1)
    initialize(cell, "glorot", 0)
    if cell.bias is not None:
        torch.nn.init.normal_(cell.bias)
    cell.double()
    return cell


@pytest.mark.parametrize("variant", VARIANTS)
def test_unroll_and_step_equal_the_loop(variant: str) -> None:
    make, loop_step = VARIANTS[variant]
    cell = fill(make())
    packed = pack(SENTENCES)
    words = torch.randn(10, E, dtype=torch.float64)
    contexts = torch.randn(len(SENTENCES), C, dtype=torch.float64)
    starts = torch.randn(len(SENTENCES), cell.state_size, dtype=torch.float64)
    projected = cell.project_context(contexts)
    states = cell.unroll(
        words[packed.ids], packed.sizes, starts[packed.order], projected[packed.order][packed.rows]
    )
    for number, (sentence, found) in enumerate(zip(SENTENCES, packed.split(states), strict=True)):
        state, row = starts[number].numpy(), starts[number : number + 1]
        for word, vector in zip(sentence, found, strict=True):
            state = loop_step(cell, words[word].numpy(), state, contexts[number].numpy())
            row = cell.step(words[word][None], row, projected[number : number + 1])
            assert np.allclose(vector.detach(), state[:H], atol=1e-12)
            assert np.allclose(row.detach()[0], state, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_gradients(variant: str) -> None:
    cell = fill(VARIANTS[variant][0]())
    packed = pack(SENTENCES)
    words = torch.randn(len(packed.ids), E, dtype=torch.float64, requires_grad=True)
    start = torch.randn(len(SENTENCES), cell.state_size, dtype=torch.float64, requires_grad=True)
    context = torch.randn(len(packed.ids), cell.context.shape[0], dtype=torch.float64, requires_grad=True)  # type: ignore[union-attr]
    names = [name for name, _ in cell.named_parameters() if name != "context"]

    def run(words: Tensor, start: Tensor, context: Tensor, *parameters: Tensor) -> Tensor:
        return cell.unroll(words, packed.sizes, start, context)  # gradcheck changes the parameters in place

    parameters = [cell.get_parameter(name) for name in names]
    assert torch.autograd.gradcheck(run, (words, start, context, *parameters))


def test_custom_function_equals_plain_autograd() -> None:
    """The fast form and the form by steps of the same cell, reset before U."""
    cell = fill(GRU(E, H, C, bias=True))
    packed = pack(SENTENCES)
    x = torch.randn(len(packed.ids), E, dtype=torch.float64)
    start = torch.randn(len(SENTENCES), H, dtype=torch.float64)
    results = []
    for states in (
        cell.unroll(x, packed.sizes, start),
        cell.unroll_by_steps(cell.project(x), packed.sizes, start, None),
    ):
        cell.zero_grad()
        states.square().sum().backward()
        results.append([states.detach(), *(p.grad.clone() for p in cell.parameters() if p.grad is not None)])
    assert len(results[0]) == len(results[1]) == 5
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(*results, strict=True))


def test_repeat_is_indexing() -> None:
    packed = pack(SENTENCES)
    values = torch.randn(len(SENTENCES), H, dtype=torch.float64, requires_grad=True)
    assert torch.equal(repeat(values, packed.sizes), values[packed.rows])
    assert torch.autograd.gradcheck(lambda values: repeat(values, packed.sizes), (values,))


def set_gates(cell: GRU, z: float, r: float) -> None:
    """Biases so large that the gates are 0 or 1."""
    assert cell.bias is not None
    with torch.no_grad():
        cell.bias[:H], cell.bias[H : 2 * H], cell.bias[2 * H :] = z, r, 0


def test_update_gate_of_one_keeps_the_state() -> None:
    cell = fill(GRU(E, H, bias=True))
    set_gates(cell, z=1e9, r=0)
    start = torch.randn(1, H, dtype=torch.float64)
    assert torch.equal(cell.step(torch.randn(1, E, dtype=torch.float64), start), start)


def test_closed_gates_leave_the_input_alone() -> None:
    cell = fill(GRU(E, H, bias=True))
    set_gates(cell, z=-1e9, r=-1e9)
    x = torch.randn(1, E, dtype=torch.float64)
    expected = torch.tanh(x @ cell.inputs[2 * H :].t())
    assert torch.allclose(cell.step(x, torch.randn(1, H, dtype=torch.float64)), expected)


def test_it_is_not_the_gru_of_torch() -> None:
    """nn.GRU resets after the matrix: with the same weights it equals reset='after', not the document's
    cell."""
    ours = {reset: fill(GRU(E, H, reset=reset)) for reset in ("before", "after")}
    theirs: torch.nn.GRUCell = torch.nn.GRUCell(E, H, bias=False).double()
    cell = ours["after"]
    W_z, W_r, W = cell.inputs.chunk(3)
    U_z, U_r = cell.recurrent_gates.chunk(2)
    with torch.no_grad():
        theirs.get_parameter("weight_ih").copy_(torch.cat([W_r, W_z, W]))  # torch's order
        theirs.get_parameter("weight_hh").copy_(torch.cat([U_r, U_z, cell.recurrent]))
    x, h = torch.randn(2, E, dtype=torch.float64), torch.randn(2, H, dtype=torch.float64)
    assert torch.allclose(ours["after"].step(x, h), theirs(x, h), atol=1e-12)
    assert not torch.allclose(ours["before"].step(x, h), theirs(x, h), atol=1e-3)


@torch.no_grad()
def test_recurrent_matrices_are_orthogonal_and_others_small() -> None:
    torch.manual_seed(0)
    u = orthogonal(30)
    assert torch.allclose(u.t() @ u, torch.eye(30), atol=1e-5)
    cell = GRU(200, 30)
    initialize(cell, "paper", 0.01)
    for part in (cell.recurrent_gates[:30], cell.recurrent_gates[30:], cell.recurrent):
        assert torch.allclose(part.t() @ part, torch.eye(30), atol=1e-5)
    assert 0.0095 < float(cell.inputs.std()) < 0.0105 and abs(float(cell.inputs.mean())) < 0.001


def test_forget_gate_starts_open() -> None:
    cell = LSTM(E, H)
    initialize(cell, "paper", 0.01)
    assert cell.bias.reshape(4, H)[:, 0].tolist() == [0, 1, 0, 0]


# ---- hidden state ------------------------------------------------------------------------------------------
# Layers whose state is a hidden vector.


LAYERS: dict[str, Callable[[int], Cell]] = {
    "gru": lambda context: GRU(3, 4, context),
    "vcrnn": lambda context: VCRNN(3, 4, ComputationSettings(), context),
}


def made(kind: str, context: int = 0) -> Cell:
    torch.manual_seed(0)
    layer = LAYERS[kind](context)
    initialize(layer, "glorot", 0)
    return layer.double().eval()


@torch.no_grad()
@pytest.mark.parametrize("kind", LAYERS)
def test_the_state_is_the_last_hidden_vector(kind: str) -> None:
    """Of the rows that are still alive at the last step: two of three."""
    layer, sizes = made(kind), [3, 3, 2]
    inputs = torch.randn(8, 3, dtype=torch.float64)
    start = layer.start(torch.randn(3, layer.state_size, dtype=torch.float64))
    hidden, state = layer.unroll_state(inputs, sizes, start)
    assert torch.equal(hidden, layer.unroll(inputs, sizes, start))
    assert torch.equal(layer.output(state), hidden[6:]) and state.shape == (2, 4)


@pytest.mark.parametrize("kind", LAYERS)
def test_a_context_is_projected_by_its_matrix(kind: str) -> None:
    layer = made(kind, 2)
    assert layer.context is not None
    assert torch.equal(layer.project_context(torch.eye(2, dtype=torch.float64)), layer.context.t())
    with pytest.raises(AssertionError, match="without a context"):
        made(kind).project_context(torch.eye(2, dtype=torch.float64))


# ---- elman -------------------------------------------------------------------------------------------------
# The Elman layer: a loop over its equation, steps as the whole, gradients.


def make_elman() -> Elman:
    torch.manual_seed(0)
    layer = Elman(3, 4)
    initialize(layer, "uniform", 1.0)
    torch.nn.init.normal_(layer.bias)  # type: ignore[arg-type]
    return layer.double()


@torch.no_grad()
def test_equation_and_steps() -> None:
    layer, sizes = make_elman(), [3, 3, 1]
    x, h = torch.randn(7, 3).double(), torch.randn(3, 4).double()
    found, last = layer.unroll_state(x, sizes, h)
    parts = zip(x.split(sizes), found.split(sizes), strict=True)
    for inputs, states in parts:
        stepped = layer.step(inputs, h[: len(inputs)])
        h = torch.sigmoid(inputs @ layer.inputs.t() + h[: len(inputs)] @ layer.recurrent.t() + layer.bias)
        assert torch.allclose(states, h, atol=1e-14) and torch.allclose(stepped, h, atol=1e-14)
    assert torch.equal(last, found[-1:])


def test_elman_gradients() -> None:
    layer, sizes = make_elman(), [3, 2, 2, 1]
    x, h = torch.randn(8, 3).double(), torch.randn(3, 4).double()
    x.requires_grad_(), h.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *_: layer.unroll_state(x, sizes, h)[0], [x, h, *layer.parameters()]
    )


# ---- normalized --------------------------------------------------------------------------------------------
# The LSTM with layer normalization: its equations written out, steps = the whole, gradients.


NORMALIZED_E, NORMALIZED_H = 3, 4


def make_normalized() -> NormalizedLSTM:
    torch.manual_seed(0)
    cell = NormalizedLSTM(NORMALIZED_E, NORMALIZED_H).double()
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
    cell = make_normalized()
    x, h, c = (
        torch.randn(5, NORMALIZED_E).double(),
        torch.randn(5, NORMALIZED_H).double(),
        torch.randn(5, NORMALIZED_H).double(),
    )
    a = norm(x @ cell.inputs.T, cell.gain_inputs, cell.bias) + norm(h @ cell.recurrent.T, cell.gain_recurrent)
    i, f, o, g = a.split(NORMALIZED_H, 1)
    after = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    shown = torch.sigmoid(o) * torch.tanh(norm(after, cell.gain_cell, cell.cell_bias))
    found = cell.step(x, torch.cat([h, c], 1))
    assert torch.allclose(found, torch.cat([shown, after], 1), atol=1e-12)
    assert torch.equal(cell.output(found), found[:, :NORMALIZED_H]) and cell.state_size == found.shape[1]


@torch.no_grad()
@pytest.mark.parametrize("sizes", [[3, 2, 2, 1], [2], [1, 1, 1]])
def test_the_whole_is_its_steps(sizes: list[int]) -> None:
    """Rows end one after the other; the last state is that of the rows that are still alive."""
    cell = make_normalized()
    inputs, start = (
        torch.randn(sum(sizes), NORMALIZED_E).double(),
        torch.randn(sizes[0], 2 * NORMALIZED_H).double(),
    )
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


def test_normalized_gradients() -> None:
    cell = make_normalized()
    inputs, start = torch.randn(6, NORMALIZED_E).double(), torch.randn(3, 2 * NORMALIZED_H).double()
    parameters = list(cell.parameters())
    assert torch.autograd.gradcheck(
        lambda *_: cell.unroll_state(inputs, [3, 2, 1], start)[0], parameters, fast_mode=True
    )


def test_a_fresh_layer_forgets_little() -> None:
    cell = make_normalized()
    with torch.no_grad():
        cell.bias.zero_()
        cell.after_initialize()
    assert cell.bias.tolist() == [0.0] * NORMALIZED_H + [1.0] * NORMALIZED_H + [0.0] * (2 * NORMALIZED_H)
    assert all((gain == 1).all() for gain in (cell.gain_inputs, cell.gain_recurrent, cell.gain_cell))
