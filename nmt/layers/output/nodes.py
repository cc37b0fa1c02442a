"""Softmaxes over parts of the rows of a matrix: the nodes of a hierarchy, each of them computed only for the
features that pass through it.

A pair is a row of features and a node that it passes through. Pairs of the same node are one matrix product;
small ones, each too small to be worth a call, are computed together from a copy of their rows.

R rows of features, K features, E rows of the matrix, P pairs, T words asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.compute.autograd import apply
from nmt.compute.mixed import in_mode

LARGE = 1 << 12  # multiplications that are worth a product of their own
COPIED = 1 << 20  # floats of copied rows at a time: they stay in the cache
CLOSED = -1e30  # added to the score of a row that leads nowhere: its probability is 0


class Nodes(NamedTuple):
    """Where the nodes are in the matrix: node i has the rows starts[i] to starts[i + 1]."""

    matrix: Tensor  # (E, K)
    bias: Tensor  # (E,) with CLOSED for rows that lead nowhere
    starts: Tensor  # (nodes + 1,)


@dataclass
class Block:
    """Pairs whose softmaxes were computed together: b pairs, at most m children."""

    pairs: Tensor  # (b,) which of the pairs
    features: Tensor  # (b, K)
    log_probs: Tensor  # (b, m) of the children; a probability of 0 beyond a node's last
    parts: list[tuple[int, int, int]]  # of large nodes: its pairs are from .. to, and its first row
    rows: Tensor | None  # (b, m) the rows of small nodes


def blocks(features: Tensor, where: Tensor, nodes: Tensor, at: Nodes) -> Iterator[Block]:
    """The softmaxes of pairs: features (R, K), rows of them (P,), nodes (P,). Without gradient."""
    order = torch.argsort(nodes, stable=True)
    found, counts = torch.unique_consecutive(nodes.index_select(0, order), return_counts=True)
    first = at.starts.index_select(0, found)
    sizes = at.starts.index_select(0, found + 1) - first
    large = counts * sizes >= -(-LARGE // features.shape[1])
    if bool(large.all()):
        yield from large_blocks(features, where, order, first, sizes, counts, at)
        return
    chosen = large.repeat_interleave(counts)
    yield from large_blocks(features, where, order[chosen], first[large], sizes[large], counts[large], at)
    yield from small_blocks(features, where, nodes, order[~chosen], at)


def large_blocks(
    features: Tensor, where: Tensor, pairs: Tensor, first: Tensor, sizes: Tensor, counts: Tensor, at: Nodes
) -> Iterator[Block]:
    """As `blocks`, for some of the pairs (b,), those of a node side by side, and for these nodes: first row,
    number of rows, number of pairs. One product a node; a block is of nodes of the same size."""
    given = features.index_select(0, where.index_select(0, pairs))
    begin = 0
    for size, group in groupby(
        zip(first.tolist(), sizes.tolist(), counts.tolist(), strict=True), itemgetter(1)
    ):
        parts, end = [], 0
        for row, _, count in group:
            parts.append((end, end + count, row))
            end += count
        mine = given[begin : begin + end]
        scores = given.new_empty(end, size)
        for start, stop, row in parts:
            rows = slice(row, row + size)
            torch.addmm(at.bias[rows], mine[start:stop], at.matrix[rows].t(), out=scores[start:stop])
        yield Block(pairs[begin : begin + end], mine, torch.log_softmax(scores, 1), parts, None)
        begin += end


def small_blocks(features: Tensor, where: Tensor, nodes: Tensor, pairs: Tensor, at: Nodes) -> Iterator[Block]:
    """As `blocks`, for some of the pairs (b,): from copies of the rows of their nodes."""
    first = at.starts[nodes[pairs]]
    sizes = at.starts[nodes[pairs] + 1] - first
    child = torch.arange(int(sizes.max()), device=nodes.device)
    many = max(1, COPIED // (len(child) * features.shape[1]))
    for cut in torch.arange(len(pairs), device=nodes.device).split(many):
        beyond = child >= sizes[cut, None]
        rows = (first[cut, None] + child).masked_fill(beyond, 0)
        given = features.index_select(0, where[pairs[cut]])
        copied = at.matrix[rows]  # (b, m, K)
        scores = torch.bmm(copied, given[:, :, None])[:, :, 0] + at.bias[rows]
        yield Block(pairs[cut], given, torch.log_softmax(scores.masked_fill(beyond, CLOSED), 1), [], rows)


class Seen(NamedTuple):
    """What a training saw at nodes: b pairs."""

    pairs: Tensor  # (b,)
    log_probs: Tensor  # (b, m)


class PathContext(Protocol):
    """What the forward pass leaves for the backward pass."""

    saved_tensors: tuple[Tensor, ...]
    blocks: list[Block]

    def save_for_backward(self, *tensors: Tensor | None) -> None: ...


class _PathLogProbs(torch.autograd.Function):
    """Σ log p of the children that the paths of some words take, (T,); only the nodes on their paths are
    computed, and only they get a gradient."""

    @staticmethod
    def forward(
        ctx: PathContext,
        features: Tensor,
        matrix: Tensor,
        bias: Tensor | None,
        whole_bias: Tensor,
        starts: Tensor,
        where: Tensor,
        nodes: Tensor,
        children: Tensor,
        words: Tensor,
        count: int,
        seen: list[Seen] | None,
    ) -> Tensor:
        """whole_bias (E,): of `Nodes`; only `bias` gets a gradient. Pairs: where (P,) of the features, nodes
        (P,), the child that is taken (P,), and which of `count` words the pair belongs to (P,). `seen`: gets
        the probabilities of all children."""
        at = Nodes(matrix, whole_bias, starts)
        total = features.new_zeros(count)
        ctx.blocks = []
        for block in blocks(features, where, nodes, at):
            taken = block.log_probs.gather(1, children[block.pairs, None])[:, 0]
            total.index_add_(0, words[block.pairs], taken)
            if seen is not None:
                seen.append(Seen(block.pairs, block.log_probs))
            ctx.blocks.append(block)
        ctx.save_for_backward(matrix, bias, where, children, words, features)
        return total

    @staticmethod
    @once_differentiable
    @in_mode
    def backward(ctx: PathContext, grad: Tensor) -> tuple[Tensor | None, ...]:
        matrix, bias, where, children, words, features = ctx.saved_tensors
        d_features, d_matrix = torch.zeros_like(features), torch.zeros_like(matrix)
        d_bias = None if bias is None else torch.zeros_like(bias)
        for block in ctx.blocks:
            weight = grad[words[block.pairs]]
            d = block.log_probs.exp().mul_(-weight[:, None])
            d.scatter_add_(1, children[block.pairs, None], weight[:, None])
            if block.rows is None:
                back = torch.empty_like(block.features)
                for start, stop, row in block.parts:
                    rows, mine = slice(row, row + d.shape[1]), d[start:stop]
                    torch.mm(mine, matrix[rows], out=back[start:stop])
                    torch.mm(mine.t(), block.features[start:stop], out=d_matrix[rows])
                    if d_bias is not None:
                        torch.sum(mine, 0, out=d_bias[rows])
            else:
                copied = matrix[block.rows]
                back = torch.bmm(d[:, None, :], copied)[:, 0]
                outer = d[:, :, None] * block.features[:, None, :]
                d_matrix.index_add_(0, block.rows.flatten(), outer.flatten(0, 1))
                if d_bias is not None:
                    d_bias.index_add_(0, block.rows.flatten(), d.flatten())
            d_features.index_add_(0, where[block.pairs], back)
        return d_features, d_matrix, d_bias, *[None] * 8


def path_log_probs(
    features: Tensor,
    at: tuple[Tensor, Tensor | None, Tensor, Tensor],
    pairs: tuple[Tensor, Tensor, Tensor, Tensor],
    count: int,
    seen: list[Seen] | None = None,
) -> Tensor:
    """log p of `count` words from the steps of their paths, (count,), with gradient. `at`: matrix (E, K),
    bias (E,), the bias of `Nodes` (E,), starts. `pairs`: row of the features, node, child, and word of each
    step, (P,) each."""
    return apply(_PathLogProbs, features, *at, *pairs, count, seen)
