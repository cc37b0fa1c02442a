"""Additive attention against its equation word by word; the fused unit against attention and cell called in
turn."""

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.data.batches import pack
from nmt.layers.attention import AdditiveAttention, Memory, attend
from nmt.layers.cells import GRU
from nmt.layers.grids import DENSE
from nmt.layers.initialize import initialize

D, H, A, E = 4, 5, 3, 2
LENGTHS = [3, 1, 4]


def make() -> tuple[AdditiveAttention, Tensor, Memory]:
    torch.manual_seed(0)
    attention = AdditiveAttention(D, H, A).double()
    initialize(attention, "glorot", 0)
    values = torch.randn(3, 4, D, dtype=torch.float64)
    for row, length in enumerate(LENGTHS):
        values[row, length:] = 0
    return attention, values, attention.memory(values, torch.tensor(LENGTHS))


def test_weights_and_mean_by_the_equation() -> None:
    """e_j = v · tanh(K h_j + Q s), a = softmax over the words of the sentence, mean = Σ a_j h_j"""
    attention, values, memory = make()
    hidden = torch.randn(3, H, dtype=torch.float64)
    mean, weights = attention(hidden, memory)
    K, Q, v = (
        parameter.detach().numpy() for parameter in (attention.keys, attention.query, attention.energy)
    )
    for row, length in enumerate(LENGTHS):
        energies = np.array(
            [
                float(v[0] @ np.tanh(K @ values[row, j].numpy() + Q @ hidden[row].numpy()))
                for j in range(length)
            ]
        )
        a = np.exp(energies) / np.exp(energies).sum()
        assert np.allclose(weights[row, :length].detach(), a, atol=1e-12) and not weights[row, length:].any()
        assert np.allclose(
            mean[row].detach(), sum(a[j] * values[row, j].numpy() for j in range(length)), atol=1e-12
        )


@pytest.mark.parametrize(
    "sentence", [[0, 0, 1, 1, 2, 2], [2, 0, 0, 0, 0, 1, 2], [1, 1], [0, 1, 1, 1, 1, 1, 1, 1, 2]], ids=str
)
def test_rows_of_sentences_in_any_order(sentence: list[int]) -> None:
    """Side by side, or a copy for each row where that would waste places: the same."""
    attention, _, memory = make()
    index = torch.tensor(sentence)
    hidden = torch.randn(len(sentence), H, dtype=torch.float64)
    expected, expected_weights = attention(hidden, memory.rows(index))
    mean, weights = attention(hidden, memory, index)
    assert torch.allclose(mean, expected, atol=1e-12) and torch.allclose(
        weights, expected_weights, atol=1e-12
    )
    counts = np.unique(sentence, return_counts=True)[1]
    assert (len(counts) * counts.max() > DENSE * len(sentence)) == (
        len(sentence) == 9 or len(sentence) == 7
    )  # both ways are taken


def test_memories_side_by_side() -> None:
    attention, _, memory = make()
    short = attention.memory(torch.randn(2, 2, D, dtype=torch.float64), torch.tensor([2, 1]))
    joined = Memory.join([short, memory])
    hidden = torch.randn(5, H, dtype=torch.float64)
    together = attention(hidden, joined)[0]
    assert torch.allclose(together[:2], attention(hidden[:2], short)[0]) and torch.allclose(
        together[2:], attention(hidden[2:], memory)[0]
    )


def test_the_fused_unit_equals_attention_and_cell_in_turn() -> None:
    torch.manual_seed(2)
    attention, values, _ = make()
    cell = GRU(E, H, D, bias=True).double()
    initialize(cell, "glorot", 0)
    layout = pack([[1] * 3, [1] * 5, [1] * 2])
    x = torch.randn(10, 3 * H, dtype=torch.float64, requires_grad=True)
    start = torch.randn(3, H, dtype=torch.float64, requires_grad=True)
    values.requires_grad_()
    weights = torch.randn(10, H + D + 4, dtype=torch.float64)  # of states, contexts and attention weights
    assert cell.context is not None
    parameters: list[Tensor] = [*attention.parameters(), cell.recurrent, cell.recurrent_gates, cell.context]
    parameters += [x, start, values]

    def in_turn() -> Tensor:
        memory, h, end, rows_of = attention.memory(values, torch.tensor(LENGTHS)), start, 0, []
        for rows in layout.sizes:
            mean, looks = attention(
                h[:rows], Memory(memory.keys[:rows], memory.values[:rows], memory.mask[:rows])
            )
            h = cell.advance(x[end : end + rows], h[:rows], cell.project_context(mean))
            rows_of.append(torch.cat([h, mean, looks], 1))
            end += rows
        return torch.cat(rows_of)

    def fused() -> Tensor:
        return torch.cat(
            attend(attention, cell, x, start, attention.memory(values, torch.tensor(LENGTHS)), layout.sizes),
            1,
        )

    assert torch.allclose(in_turn(), fused(), atol=1e-12)
    for used in (slice(None), slice(0, H + D), slice(0, H), slice(H + D, None)):  # some outputs may go unused
        found, expected = (
            torch.autograd.grad(
                (made()[:, used] * weights[:, used]).sum(),
                parameters,
                allow_unused=True,
                materialize_grads=True,
            )
            for made in (fused, in_turn)
        )
        assert all(torch.allclose(one, other, atol=1e-11) for one, other in zip(found, expected, strict=True))
