"""Rows in a grid and back."""

import pytest
import torch

from nmt.data.batches import pack
from nmt.layers import grids
from nmt.layers.grids import WordGrid, by_size, join_sentences, side_by_side

SENTENCES = [[3, 4], [5], [6, 7, 8]]


def test_words_lie_in_the_order_of_the_batch() -> None:
    packed = pack(SENTENCES)
    grid = WordGrid.of(packed, torch.zeros(0))
    spread = grid.spread(packed.ids[:, None].float())
    assert spread[:, :, 0].tolist() == [[3, 4, 0], [5, 0, 0], [6, 7, 8]]
    assert torch.equal(grid.take(spread)[:, 0], packed.ids.float())
    assert grid.mask is not None
    assert (grid.mask == 0).tolist() == [[True, True, False], [True, False, False], [True, True, True]]
    assert torch.equal(packed.grid(packed.ids[:, None]).float(), spread)
    assert WordGrid.of(pack([[3, 4], [5, 6]]), torch.zeros(0)).mask is None


def test_gradients_go_back_to_where_they_came_from() -> None:
    grid = WordGrid.of(pack(SENTENCES), torch.zeros(0))
    values = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: grid.take(grid.spread(x) ** 2), [values])
    assert torch.equal(grid.take(grid.spread(values)), values)


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
    rows = side_by_side(torch.tensor(sentence), 2 if max(sentence) == 1 else 3)
    assert (None if rows.used is None else rows.used.tolist()) == used and rows.shape == shape
    assert shape[0] * shape[1] <= max(len(sentence), grids.DENSE * len(sentence))
    values = torch.tensor(sentence)[:, None] * 10 + torch.arange(len(sentence))[:, None]
    spread = rows.spread(values)
    of_row = torch.arange(shape[0]) if rows.used is None else rows.used
    there = spread[:, :, 0] > 0
    assert torch.equal((spread[:, :, 0] // 10)[there], of_row[:, None].expand(shape)[there])
    assert torch.equal(rows.take(spread), values)


def test_sentences_of_about_as_many_hypotheses_share_a_layout() -> None:
    sentence = torch.tensor([0] * 9 + [3, 2, 2, 3, 3, 5, 4, 4, 4, 4])
    parts = by_size(sentence, 7)
    assert sorted(torch.cat([rows for rows, _ in parts]).tolist()) == list(range(len(sentence)))
    assert [layout.shape for _, layout in parts] == [(1, 1), (2, 3), (1, 4), (1, 9)]
    for rows, layout in parts:
        values = sentence[rows][:, None] * 100 + rows[:, None]
        assert torch.equal(layout.take(layout.spread(values)), values)
        assert layout.shape[0] * layout.shape[1] <= 2 * len(rows)


def test_sentences_without_rows_are_left_out() -> None:
    sentence, used = join_sentences([torch.tensor([2, 0, 2]), torch.tensor([1])])
    assert sentence.tolist() == [1, 0, 1, 2] and [part.tolist() for part in used] == [[0, 2], [1]]
