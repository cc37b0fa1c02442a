"""The cells against plain NumPy loops over the equations of the papers, one word of one sentence at a
time; and the initial values of their parameters."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.data.batches import pack
from nmt.layers.cells import GRU, LSTM, Cell, Elman, NormalizedLSTM, repeat
from nmt.layers.initialize import initialize, orthogonal

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


def elman_step(cell: Elman, x: Array, h: Array, c: Array) -> Array:
    V, U, b = (part.detach().numpy() for part in (cell.inputs, cell.recurrent, cell.bias))  # type: ignore[union-attr]
    return sigmoid(V @ x + U @ h + b)


def normalized_step(cell: NormalizedLSTM, x: Array, state: Array, c: Array) -> Array:
    def norm(values: Array, gain: Tensor) -> Array:
        """Mean 0 and variance 1, times the gain."""
        return np.asarray((values - values.mean()) / np.sqrt(values.var() + 1e-5) * gain.detach().numpy())

    W, U, b = (part.detach().numpy() for part in (cell.inputs, cell.recurrent, cell.bias))
    sums = norm(W @ x, cell.gain_inputs) + norm(U @ state[:H], cell.gain_recurrent) + b
    i, f, o, g = np.split(sums, 4)
    memory = sigmoid(f) * state[H:] + sigmoid(i) * np.tanh(g)
    shown = norm(memory, cell.gain_cell) + cell.cell_bias.detach().numpy()
    return np.concatenate([sigmoid(o) * np.tanh(shown), memory])


VARIANTS: dict[str, tuple[Callable[[], Cell], Callable[..., Array]]] = {
    "gru": (lambda: GRU(E, H, C, bias=True), gru_step),
    "gru take_new": (lambda: GRU(E, H, C, bias=True, gate="take_new"), gru_step),
    "gru reset after": (lambda: GRU(E, H, C, bias=True, reset="after"), gru_step),
    "gru reset after_with_context take_new": (
        lambda: GRU(E, H, C, bias=True, reset="after_with_context", gate="take_new"),
        gru_step,
    ),
    "lstm": (lambda: LSTM(E, H, C), lstm_step),
    "elman": (lambda: Elman(E, H), elman_step),
    "normalized": (lambda: NormalizedLSTM(E, H), normalized_step),
}


AnyCell = TypeVar("AnyCell", bound=Cell)


def fill(cell: AnyCell) -> AnyCell:
    torch.manual_seed(1)
    initialize(cell, "glorot", 0)
    with torch.no_grad():
        for parameter in cell.parameters():
            if parameter.dim() == 1:
                parameter.normal_()
    return cell.double()


@pytest.mark.parametrize("variant", VARIANTS)
def test_unroll_and_step_equal_the_loop(variant: str) -> None:
    """Of sentences that end one after the other, each alone."""
    make, loop_step = VARIANTS[variant]
    cell, packed = fill(make()), pack(SENTENCES)
    words = torch.randn(10, E, dtype=torch.float64)
    contexts = torch.randn(len(SENTENCES), C, dtype=torch.float64)
    starts = torch.randn(len(SENTENCES), cell.state_size, dtype=torch.float64)
    projected = None if cell.context is None else cell.project_context(contexts)
    inputs, start = words[packed.ids], starts[packed.order]
    if projected is None:
        states, last = cell.unroll_state(inputs, packed.sizes, start)
    else:
        states = cell.unroll(inputs, packed.sizes, start, projected[packed.order][packed.rows])
        last = starts[:0]
    for number, (sentence, found) in enumerate(zip(SENTENCES, packed.split(states), strict=True)):
        state, row = starts[number].numpy(), starts[number : number + 1]
        for word, vector in zip(sentence, found, strict=True):
            state = loop_step(cell, words[word].numpy(), state, contexts[number].numpy())
            seen = None if projected is None else projected[number : number + 1]
            row = cell.step(words[word][None], row, seen)
            assert np.allclose(vector.detach(), state[:H], atol=1e-12)
            assert np.allclose(row.detach()[0], state, atol=1e-12)
            assert np.allclose(cell.output(row).detach()[0], state[:H], atol=1e-12)
        if len(last) and len(sentence) == len(packed.sizes):
            assert np.allclose(last.detach()[0], state, atol=1e-12), "of the longest sentence"


@pytest.mark.parametrize("variant", VARIANTS)
def test_gradients(variant: str) -> None:
    cell, packed = fill(VARIANTS[variant][0]()), pack(SENTENCES)
    N, B = len(packed.ids), len(SENTENCES)
    shapes = [(N, E), (B, cell.state_size), *([] if cell.context is None else [(N, len(cell.context))])]
    given = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    parameters = [value for name, value in cell.named_parameters() if name != "context"]

    def run(*_: Tensor) -> Tensor:  # gradcheck changes the parameters in place
        if cell.context is None:
            return cell.unroll_state(given[0], packed.sizes, given[1])[0]
        return cell.unroll(given[0], packed.sizes, given[1], given[2])

    assert torch.autograd.gradcheck(run, (*given, *parameters))


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


def test_the_first_state_has_an_empty_memory_cell() -> None:
    """Both LSTMs begin with the hidden vector and a memory cell of zeros, and can step from there."""
    hidden = torch.randn(2, H)
    for cell in (LSTM(E, H), NormalizedLSTM(E, H)):
        start = cell.start(hidden)
        assert torch.equal(start, torch.cat([hidden, torch.zeros(2, H)], 1))
        assert cell.step(torch.randn(2, E), start).shape == (2, cell.state_size)


def test_a_fresh_layer_forgets_little() -> None:
    cell = NormalizedLSTM(E, H)
    initialize(cell, "uniform", 1.0)
    assert cell.bias.tolist() == [0.0] * H + [1.0] * H + [0.0] * (2 * H)
    assert all((gain == 1).all() for gain in (cell.gain_inputs, cell.gain_recurrent, cell.gain_cell))


# ---- initial values ----------------------------------------------------------------------------------------


def test_orthogonal_matrices_keep_lengths() -> None:
    torch.manual_seed(1)
    matrix = orthogonal(6).double()
    assert torch.allclose(matrix.t() @ matrix, torch.eye(6, dtype=torch.float64), atol=1e-5)


@pytest.mark.parametrize("kind", ["paper", "glorot", "uniform"])
def test_every_kind_of_parameter(kind: str) -> None:
    torch.manual_seed(0)
    layer = LSTM(40, 30)
    initialize(layer, kind, 0.5)
    for block in layer.recurrent.split(30):
        assert torch.allclose(block @ block.t(), torch.eye(30), atol=1e-4)
    assert layer.bias.tolist() == [0.0] * 30 + [1.0] * 30 + [0.0] * 60  # the forget gate
    deviation = {"paper": 0.5, "glorot": (2 / (120 + 40)) ** 0.5, "uniform": 0.5 / 3**0.5}[kind]
    assert float(layer.inputs.detach().std()) == pytest.approx(deviation, rel=0.05)


def test_the_row_of_no_word_stays_zero() -> None:
    table = nn.Embedding(5, 3, padding_idx=1)
    initialize(table, "paper", 1.0)
    assert table.weight[1].tolist() == [0.0] * 3 and bool((table.weight[0] != 0).all())
