"""Rows of a matrix laid out in a grid for attention, and back: the packed words of sentences, or hypotheses
beside the others of their sentence.

N packed words of B sentences of at most T words, R hypotheses of S sentences, at most W of each, K columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.compute.autograd import Context, apply
from nmt.data.batches import Packed

# Hypotheses lie side by side where the grid has at most this many places for each of them; else each gets a
# copy of what it attends to.
DENSE = 1.5


class Grid(Protocol):
    """A layout in which attention works on whole sentences."""

    def spread(self, values: Tensor) -> Tensor:
        """(rows, K) -> (sentences, places, K)"""
        ...

    def take(self, grid: Tensor) -> Tensor:
        """The rows of a grid: the inverse of `spread`."""
        ...


class _Take(torch.autograd.Function):
    """Rows of a matrix, each at most once: the gradient is put where they were, not added."""

    @staticmethod
    def forward(ctx: Context, values: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.sizes = list(values.shape)
        return values.index_select(0, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Context, grad: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return grad.new_zeros(ctx.sizes).index_copy_(0, rows, grad), None


@dataclass
class WordGrid:
    """Packed words as a grid with a row for each sentence, in the order of the batch."""

    cells: Tensor  # (N,) the cell of each word
    steps: Tensor  # (N,) its place in its sentence
    shape: tuple[int, int]  # B, T
    mask: Tensor | None  # (B, T) 0 at words, -inf behind the end of a sentence; None: no sentence is shorter

    @staticmethod
    def of(packed: Packed, like: Tensor) -> "WordGrid":
        """The grid of a batch; its mask has the type of `like`."""
        B, T = len(packed.order), len(packed.sizes)
        steps = packed.steps
        cells = packed.order[packed.rows] * T + steps
        mask = None
        if len(cells) < B * T:
            mask = like.new_full((B * T,), -torch.inf)
            mask = mask.index_fill_(0, cells, 0).view(B, T)
        return WordGrid(cells=cells, steps=steps, shape=(B, T), mask=mask)

    def spread(self, values: Tensor) -> Tensor:
        """(N, K) -> (B, T, K), zeros behind the ends of sentences"""
        B, T = self.shape
        return values.new_zeros(B * T, values.shape[1]).index_copy(0, self.cells, values).view(B, T, -1)

    def take(self, grid: Tensor) -> Tensor:
        """(B, T, K) -> (N, K)"""
        return apply(_Take, grid.flatten(0, 1), self.cells)


@dataclass
class SideBySide:
    """Hypotheses as a grid with a row for each sentence that has any."""

    used: Tensor | None  # (S,) which sentences; None: all of them, in their order
    cells: Tensor | None  # (R,) the cell of each hypothesis; None: R rows of one cell
    shape: tuple[int, int]  # S, W

    def spread(self, values: Tensor) -> Tensor:
        """(R, K) -> (S, W, K)"""
        S, W = self.shape
        if self.cells is None:
            return values[:, None]
        return values.new_zeros(S * W, values.shape[1]).index_copy_(0, self.cells, values).view(S, W, -1)

    def take(self, grid: Tensor) -> Tensor:
        """(S, W, K) -> (R, K)"""
        rows = grid.flatten(0, 1)
        return rows if self.cells is None else rows.index_select(0, self.cells)


def side_by_side(sentence: Tensor, count: int, dense: float = DENSE) -> SideBySide:
    """A layout of hypotheses, given the sentence of each, (R,), of `count` sentences. Each is by itself where
    a grid would have more than `dense` places for each of them."""
    used, index, counts = sentence.unique(return_inverse=True, return_counts=True)
    W = int(counts.max()) if len(counts) else 1
    if len(used) * W > dense * len(sentence):
        return SideBySide(used=sentence, cells=None, shape=(len(sentence), 1))
    order = index.argsort(stable=True)
    slot = torch.empty_like(index)
    slot[order] = torch.arange(len(index), device=index.device) - (counts.cumsum(0) - counts)[index[order]]
    return SideBySide(used=None if len(used) == count else used, cells=index * W + slot, shape=(len(used), W))


def by_size(sentence: Tensor, count: int) -> list[tuple[Tensor, SideBySide]]:
    """Layouts that waste at most half of their places, each with the hypotheses that it is of: sentences with
    1, 2 to 3, 4 to 7 ... hypotheses share one."""
    sizes = torch.bincount(sentence, minlength=count)[sentence].log2().long()
    parts = [torch.nonzero(sizes == size)[:, 0] for size in sizes.unique().tolist()]
    return [(rows, side_by_side(sentence[rows], count, dense=2.0)) for rows in parts]


def join_sentences(parts: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """The sentence of each hypothesis of all parts, numbered anew, and which sentences of each part have any:
    the others are left out."""
    sentences, used, count = [], [], 0
    for sentence in parts:
        there, index = sentence.unique(return_inverse=True)
        sentences.append(index + count)
        used.append(there)
        count += len(there)
    return torch.cat(sentences), used
