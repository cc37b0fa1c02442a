"""The most likely words of a hierarchy without the probabilities of all: branch and bound. A node is looked
into only where the path to it is more likely than the best words found so far, so the result is exact (000,
section 3.5). With a width it is a beam search over the tree, which is not.

R rows of features, M children of a node at most, b nodes of a row looked into at a time, F open nodes of a
row.
"""

import torch
from torch import Tensor

from nmt.layers.output.nodes import CLOSED, Nodes, blocks

ROUNDS = (
    30  # after which a row is given up: where all words are about equally likely, no node can be ruled out
)
AT_A_TIME = 2  # nodes of a row; more is fewer rounds, but nodes that one more round would have ruled out


class Found:
    """The best words of each row so far."""

    def __init__(self, rows: int, count: int, like: Tensor) -> None:
        self.values = like.new_full((rows, count), -torch.inf)
        self.words = torch.full((rows, count), -1, device=like.device)

    def add(self, rows: Tensor, values: Tensor, words: Tensor) -> None:
        """Words (r, m) of some rows (r,) with their log p, -inf for none."""
        count = self.values.shape[1]
        both = torch.cat([self.values[rows], values], 1)
        best, place = both.topk(count, 1)
        self.values[rows] = best
        self.words[rows] = torch.cat([self.words[rows], words], 1).gather(1, place)


@torch.no_grad()
def best_words(
    features: Tensor, at: Nodes, below: Tensor, word: Tensor, count: int, width: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """The `count` most likely words of each row of features, the best first: log p (R, count) and words
    (R, count), -1 where there are not so many. Of each row of the matrix the node `below` it or -1, and its
    `word` or -1. `width`: a beam search that keeps this many nodes of each level; 0: exact. And the rows that
    were given up, (r,)."""
    M = int((at.starts[1:] - at.starts[:-1]).max())
    found = Found(len(features), count, features)
    rows = torch.arange(len(features), device=features.device)
    value = features.new_zeros(len(features), 1)  # (r, F) log p of the way to open nodes
    node = torch.zeros_like(value, dtype=torch.long)
    for _ in range(ROUNDS):
        if not len(rows):
            break
        chosen, place = value.topk(min(width or AT_A_TIME, value.shape[1]), 1)
        use = chosen > found.values[rows, -1:]
        total, row = children(features, at, rows, chosen, node.gather(1, place), use, M)
        found.add(rows, total.masked_fill(word[row] < 0, -torch.inf), word[row])
        inner = total.masked_fill(below[row] < 0, -torch.inf)
        if not width:
            inner = torch.cat([value.scatter(1, place, -torch.inf), inner], 1)
            node = torch.cat([node, below[row]], 1)
        else:
            node = below[row]
        hope = inner > found.values[rows, -1:]
        left = hope.sum(1)
        live = left > 0
        rows = rows[live]
        if len(rows):
            inner = inner.masked_fill(~hope, -torch.inf)[live]
            value, place = inner.topk(int(left.max()), 1)
            node = node[live].gather(1, place)
    return found.values, found.words, rows


def children(
    features: Tensor, at: Nodes, rows: Tensor, value: Tensor, node: Tensor, use: Tensor, M: int
) -> tuple[Tensor, Tensor]:
    """log p of the way to each child of some open nodes, and its row in the matrix: value, node and whether
    to use it (r, b) -> (r, b M) twice; -inf and 0 where there is none"""
    where, column = use.nonzero(as_tuple=True)
    nodes = node[where, column]
    total = value.new_full((*value.shape, M), -torch.inf)
    for block in blocks(features, rows[where], nodes, at):
        size = block.log_probs.shape[1]
        way = value[where[block.pairs], column[block.pairs], None] + block.log_probs
        total[where[block.pairs], column[block.pairs], :size] = way
    row = at.starts[node][:, :, None] + torch.arange(M, device=node.device)
    there = total > CLOSED / 2
    return total.masked_fill(~there, -torch.inf).flatten(1), row.masked_fill(~there, 0).flatten(1)
