"""Multi-head attention (Vaswani et al. 2017): softmax(Q Kᵀ / √d) V in h heads of d = D / h columns each.

N words of a batch, R rows, S sentences with L words to look at, D width, h heads.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.layers.affine import Affine
from nmt.layers.attention import Memory
from nmt.layers.dropout import dropout
from nmt.layers.grids import Grid, WordGrid
from nmt.layers.past import Reading


def split(values: Tensor, heads: int) -> Tensor:
    """(S, W, D) -> (S, h, W, d)"""
    S, W, _ = values.shape
    return values.view(S, W, heads, -1).transpose(1, 2)


def merge(values: Tensor) -> Tensor:
    """(S, h, W, d) -> (S, W, D)"""
    return values.transpose(1, 2).flatten(2)


def weights(query: Tensor, keys: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
    """softmax(Q Kᵀ / √d): (S, h, W, d), (S, h, L, d) -> (S, h, W, L). `mask`: added before the softmax."""
    energies = query @ keys.transpose(2, 3) / math.sqrt(query.shape[3])
    if causal:
        later = torch.ones(energies.shape[2:], dtype=torch.bool, device=energies.device).triu(1)
        energies = energies.masked_fill(later, -torch.inf)
    return torch.softmax(energies if mask is None else energies + mask, 3)


def attend(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, share: float, causal: bool = False
) -> Tensor:
    """softmax(Q Kᵀ / √d) V: (S, h, W, d). `share` of the weights is dropped, on the CPU not by torch's
    kernel, which is slower then."""
    if share and query.device.type == "cpu":
        return dropout(weights(query, keys, mask, causal), share, True) @ values
    return F.scaled_dot_product_attention(query, keys, values, mask, share, is_causal=causal)


class SelfAttention(nn.Module):
    """Words look at the words of their own sentence."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.inputs = Affine(size, 3 * size)  # queries, keys, values
        self.outputs = Affine(size, size)

    def forward(self, x: Tensor, grid: WordGrid, causal: bool) -> Tensor:
        """(N, D) -> (N, D). `causal`: no word looks at a later one."""
        query, keys, values = (split(part, self.heads) for part in grid.spread(self.inputs(x)).chunk(3, 2))
        # Behind the end of a sentence there are only words that a causal mask hides anyway.
        mask = None if causal or grid.mask is None else grid.mask[:, None, None]
        share = self.dropout if self.training else 0.0
        seen = attend(query, keys, values, mask, share, causal)
        mixed: Tensor = self.outputs(grid.take(merge(seen)))
        return mixed

    def step(self, x: Tensor, reading: Reading, layer: int) -> Tensor:
        """One word for each of R hypotheses: (R, D) -> (R, D)"""
        R, D = x.shape
        query, pairs = self.inputs(x).split([D, 2 * D], 1)
        keys, values = reading.add(layer, pairs)
        mask = None if reading.mask is None else reading.mask.t()[:, None, None]
        seen = F.scaled_dot_product_attention(query.view(R, self.heads, 1, -1), keys, values, mask)
        mixed: Tensor = self.outputs(seen.reshape(R, D))
        return mixed


class SourceAttention(nn.Module):
    """Words look at the words of another sentence."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = Affine(size, size)
        self.pairs = Affine(size, 2 * size)  # keys, values
        self.outputs = Affine(size, size)

    def memory(self, states: Tensor, grid: WordGrid) -> Memory:
        """What there is to look at: packed words (N, D) as keys and values (S, L, D)"""
        keys, values = grid.spread(self.pairs(states)).chunk(2, 2)
        mask = keys.new_zeros(grid.shape) if grid.mask is None else grid.mask
        return Memory(keys=keys, values=values, mask=mask)

    def forward(self, x: Tensor, grid: Grid, memory: Memory) -> Tensor:
        """(rows, D) -> (rows, D): sentence i of the grid looks at sentence i of the memory."""
        query, keys, values = self.parts(x, grid, memory)
        share = self.dropout if self.training else 0.0
        seen = attend(query, keys, values, memory.mask[:, None, None], share)
        mixed: Tensor = self.outputs(grid.take(merge(seen)))
        return mixed

    def weights(self, x: Tensor, grid: Grid, memory: Memory, heads: int = 0) -> Tensor:
        """The attention weights before dropout, the mean over the first `heads`, 0: over all: (rows, D) ->
        (rows, L)"""
        query, keys, _ = self.parts(x, grid, memory)
        if heads:
            query, keys = query[:, :heads], keys[:, :heads]
        return grid.take(weights(query, keys, memory.mask[:, None, None]).mean(1))

    def parts(self, x: Tensor, grid: Grid, memory: Memory) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (S, h, W, d), keys and values (S, h, L, d)"""
        query = split(grid.spread(self.query(x)), self.heads)
        return query, split(memory.keys, self.heads), split(memory.values, self.heads)
