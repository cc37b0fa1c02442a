"""Additive attention against its equation word by word; the fused unit against attention and cell called in
turn."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.data.batches import Guidance, pack
from nmt.layers import attention
from nmt.layers.attention import (
    DENSE_GRID,
    AdditiveAttention,
    AttentionMemory,
    WordGrid,
    alignment_cost,
    attend,
    grids_by_size,
    hypothesis_grid,
    join_sentences,
)
from nmt.layers.cells import GRU
from nmt.layers.initialize import initialize

# ---- attention ---------------------------------------------------------------------------------------------


D, H, A, E = 4, 5, 3, 2
LENGTHS = [3, 1, 4]


def make() -> tuple[AdditiveAttention, Tensor, AttentionMemory]:
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
    assert (len(counts) * counts.max() > DENSE_GRID * len(sentence)) == (
        len(sentence) == 9 or len(sentence) == 7
    )  # both ways are taken


def test_memories_side_by_side() -> None:
    attention, _, memory = make()
    short = attention.memory(torch.randn(2, 2, D, dtype=torch.float64), torch.tensor([2, 1]))
    joined = AttentionMemory.join([short, memory])
    hidden = torch.randn(5, H, dtype=torch.float64)
    together = attention(hidden, joined)[0]
    assert torch.allclose(together[:2], attention(hidden[:2], short)[0]) and torch.allclose(
        together[2:], attention(hidden[2:], memory)[0]
    )


def test_padding_of_a_long_sentence_leaves_with_it() -> None:
    """Else a search that is never idle pays for the longest sentence that it ever read."""
    attention, _, _ = make()
    memory = attention.memory(torch.randn(3, 9, D, dtype=torch.float64), torch.tensor([2, 9, 4]))
    rest = memory.rows(torch.tensor([0, 2]))
    hidden = torch.randn(2, H, dtype=torch.float64)
    joined = AttentionMemory.join([rest])
    assert joined.keys.shape[1] == 4
    assert torch.allclose(attention(hidden, joined)[0], attention(hidden, rest)[0])


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
                h[:rows], AttentionMemory(memory.keys[:rows], memory.values[:rows], memory.mask[:rows])
            )
            h = cell.advance(x[end : end + rows], h[:rows], cell.project_context(mean))
            rows_of.append(torch.cat([h, mean, looks], 1))
            end += rows
        return torch.cat(rows_of)

    def fused() -> Tensor:
        return torch.cat(
            attend(attention, cell, x, start, attention.memory(values, torch.tensor(LENGTHS)), layout), 1
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


# ---- grids -------------------------------------------------------------------------------------------------
# Rows in a grid and back.


SENTENCES = [[3, 4], [5], [6, 7, 8]]


def test_words_lie_in_the_order_of_the_batch() -> None:
    packed = pack(SENTENCES)
    grid = WordGrid.of(packed, torch.zeros(0))
    padded = grid.pad(packed.ids[:, None].float())
    assert padded[:, :, 0].tolist() == [[3, 4, 0], [5, 0, 0], [6, 7, 8]]
    assert torch.equal(grid.unpad(padded)[:, 0], packed.ids.float())
    assert grid.mask is not None
    assert (grid.mask == 0).tolist() == [[True, True, False], [True, False, False], [True, True, True]]
    assert torch.equal(packed.grid(packed.ids[:, None]).float(), padded)
    assert WordGrid.of(pack([[3, 4], [5, 6]]), torch.zeros(0)).mask is None


def test_gradients_go_back_to_where_they_came_from() -> None:
    grid = WordGrid.of(pack(SENTENCES), torch.zeros(0))
    values = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: grid.unpad(grid.pad(x) ** 2), [values])
    assert torch.equal(grid.unpad(grid.pad(values)), values)


@pytest.mark.parametrize(
    ("sentence", "used", "shape"),
    [
        ([0, 0, 1, 1], None, (2, 2)),
        ([2, 0, 2, 0], [0, 2], (2, 2)),
        ([0, 0, 0, 1, 2], [0, 0, 0, 1, 2], (5, 1)),  # a grid of three by three would be half empty
        ([1, 0], None, (2, 1)),
    ],
)
def test_hypotheses_lie_beside_those_of_their_sentence(
    sentence: list[int], used: list[int] | None, shape: tuple[int, int]
) -> None:
    rows = hypothesis_grid(torch.tensor(sentence), 2 if max(sentence) == 1 else 3)
    assert (None if rows.used is None else rows.used.tolist()) == used and rows.shape == shape
    assert shape[0] * shape[1] <= max(len(sentence), attention.DENSE_GRID * len(sentence))
    values = torch.tensor(sentence)[:, None] * 10 + torch.arange(len(sentence))[:, None]
    padded = rows.pad(values)
    of_row = torch.arange(shape[0]) if rows.used is None else rows.used
    there = padded[:, :, 0] > 0
    assert torch.equal((padded[:, :, 0] // 10)[there], of_row[:, None].expand(shape)[there])
    assert torch.equal(rows.unpad(padded), values)


def test_sentences_of_about_as_many_hypotheses_share_a_layout() -> None:
    sentence = torch.tensor([0] * 9 + [3, 2, 2, 3, 3, 5, 4, 4, 4, 4])
    parts = grids_by_size(sentence, 7)
    assert sorted(torch.cat([rows for rows, _ in parts]).tolist()) == list(range(len(sentence)))
    assert [layout.shape for _, layout in parts] == [(1, 1), (2, 3), (1, 4), (1, 9)]
    for rows, layout in parts:
        values = sentence[rows][:, None] * 100 + rows[:, None]
        assert torch.equal(layout.unpad(layout.pad(values)), values)
        assert layout.shape[0] * layout.shape[1] <= 2 * len(rows)


def test_sentences_without_rows_are_left_out() -> None:
    sentence, used = join_sentences([torch.tensor([2, 0, 2]), torch.tensor([1])])
    assert sentence.tolist() == [1, 0, 1, 2] and [part.tolist() for part in used] == [[0, 2], [1]]


# ---- guided ------------------------------------------------------------------------------------------------
# The cost of guided alignment is the cross-entropy between links and attention.


def test_cross_entropy_of_tokens_that_have_links() -> None:
    torch.manual_seed(0)
    weights = torch.softmax(torch.randn(4, 3, dtype=torch.float64), 1)
    wanted = Guidance(torch.tensor([0, 0, 3]), torch.tensor([1, 2, 0]), torch.tensor([0.5, 0.5, 1.0]) * 2)
    expected = -(0.5 * math.log(weights[0, 1]) + 0.5 * math.log(weights[0, 2]) + math.log(weights[3, 0]))
    assert float(alignment_cost(weights, wanted).detach()) == pytest.approx(2 * expected, rel=1e-12)
    assert torch.autograd.gradcheck(lambda w: alignment_cost(w, wanted), weights.requires_grad_())


def test_no_links_cost_nothing_and_no_weight_is_no_infinity() -> None:
    weights = torch.tensor([[1.0, 0.0]], requires_grad=True)
    none = torch.zeros(0, dtype=torch.long)
    assert float(alignment_cost(weights, Guidance(none, none, torch.zeros(0))).detach()) == 0
    cost = alignment_cost(weights, Guidance(torch.tensor([0]), torch.tensor([1]), torch.tensor([1.0])))
    cost.backward()
    assert weights.grad is not None and weights.grad.isfinite().all() and 69 < float(cost.detach()) < 70
