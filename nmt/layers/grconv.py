"""Gated recursive convolution (Cho et al. 2014b; van Merriënboer 2018, section 6.2.2, with
corrections).

    h_j^0 = U x_j
    ĥ_j^t = φ(W_l h_j^{t-1} + W_r h_{j+1}^{t-1}),   φ the rectifier
    (ω_c, ω_l, ω_r) = softmax(G_l h_j^{t-1} + G_r h_{j+1}^{t-1})       three scalars a node
    h_j^t = ω_c ĥ_j^t + ω_l h_j^{t-1} + ω_r h_{j+1}^{t-1}

A sentence of T words has T - 1 levels above its leaves; the root represents the sentence. Only real nodes are
stored: a level has, for each position j, the sentences (longest first) that still have a node there. Then the
right children of a level are the level below without its first position, a plain slice, and the root of a
sentence is at position 0 of its last level.

B sentences, N words, D units, n nodes of a level.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.compute.autograd import Context, apply
from nmt.compute.precision import in_mode

RECURRENT_SCALE = 0.4  # spectral radius of W_l and W_r (van Merriënboer 2018, section 6.3.2)


@dataclass
class MergeLevel:
    """For each node of a level, the two nodes of the level below that are merged into it."""

    left: Tensor  # (n,) rows of the left children in the level below
    right: slice  # of the right children
    done: slice  # rows of the level below that are roots: of sentences with no node in this level


def levels(sizes: list[int], device: torch.device) -> Iterator[MergeLevel]:
    """Yield the levels above the leaves, from the lowest. `sizes`: sizes[j] sentences have a word at step j.
    The last level has no nodes and only identifies the remaining roots."""
    while sizes:
        above, starts = sizes[1:], [0, *accumulate(sizes)]
        parts = [
            torch.arange(start, start + size, device=device)
            for start, size in zip(starts, above, strict=False)
        ]
        left = torch.cat(parts) if parts else torch.zeros(0, dtype=torch.long, device=device)
        yield MergeLevel(left, slice(sizes[0], starts[-1]), slice(above[0] if above else 0, sizes[0]))
        sizes = above


class _GatedConvolutionFunction(torch.autograd.Function):
    """Leaves (N, D) -> roots (B, D), the longest sentence first."""

    @staticmethod
    def forward(
        ctx: Context,
        leaves: Tensor,
        W_l: Tensor,
        W_r: Tensor,
        G_l: Tensor,
        G_r: Tensor,
        bias: Tensor,
        gate_bias: Tensor,
        sizes: list[int],
    ) -> Tensor:
        roots = leaves.new_empty(sizes[0], leaves.shape[1])
        h, tree, saved = leaves, list(levels(sizes, leaves.device)), []
        for level in tree:
            roots[level.done] = h[level.done]
            if not len(level.left):
                break
            left, right = h.index_select(0, level.left), h[level.right]
            candidate = merge(left, right, W_l, W_r, bias).relu_()
            gates = torch.softmax(merge(left, right, G_l, G_r, gate_bias), 1)
            saved += [h, candidate, gates]
            h = mix(gates, candidate, left, right)
        ctx.save_for_backward(W_l, W_r, G_l, G_r, *saved)
        ctx.values = tree
        return roots

    @staticmethod
    @once_differentiable
    @in_mode
    def backward(ctx: Context, d_roots: Tensor) -> tuple[Tensor | None, ...]:
        W_l, W_r, G_l, G_r, *saved = ctx.saved_tensors
        dW_l, dW_r, dG_l, dG_r = (torch.zeros_like(matrix) for matrix in (W_l, W_r, G_l, G_r))
        d_bias, d_gate_bias = d_roots.new_zeros(len(W_l)), d_roots.new_zeros(3)
        d_above = d_roots.new_zeros(0, d_roots.shape[1])
        tree: list[MergeLevel] = ctx.values
        for number in range(len(tree) - 1, -1, -1):
            level = tree[number]
            if len(level.left):
                h, candidate, gates = saved[3 * number : 3 * number + 3]
                left, right = h.index_select(0, level.left), h[level.right]
                d = d_above
                d_gates = torch.stack([(d * candidate).sum(1), (d * left).sum(1), (d * right).sum(1)], 1)
                d_sums = gates * (d_gates - (gates * d_gates).sum(1, keepdim=True))
                d_new = torch.mul(d, gates[:, :1]).mul_(candidate > 0)
                dW_l.addmm_(d_new.t(), left)
                dW_r.addmm_(d_new.t(), right)
                dG_l.addmm_(d_sums.t(), left)
                dG_r.addmm_(d_sums.t(), right)
                d_bias += d_new.sum(0)
                d_gate_bias += d_sums.sum(0)
                below = torch.zeros_like(h)
                d_left = torch.addmm(d_sums @ G_l, d_new, W_l).addcmul_(d, gates[:, 1:2])
                below[level.right] = torch.addmm(d_sums @ G_r, d_new, W_r).addcmul_(d, gates[:, 2:])
                below.index_add_(0, level.left, d_left)  # each row occurs at most once
            else:
                # One root for each sentence so far.
                below = d_roots.new_zeros(level.done.stop, d_roots.shape[1])
            below[level.done] += d_roots[level.done]
            d_above = below
        return d_above, dW_l, dW_r, dG_l, dG_r, d_bias, d_gate_bias, None


def merge(left: Tensor, right: Tensor, W_l: Tensor, W_r: Tensor, bias: Tensor) -> Tensor:
    """W_l left + W_r right + bias, for candidates and for gates: (n, D) twice -> (n, D or 3)"""
    return torch.addmm(torch.addmm(bias, right, W_r.t()), left, W_l.t())


def mix(gates: Tensor, candidate: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Combine gates (n, 3), candidates, left and right children (n, D) into the nodes of a level: (n, D)"""
    return torch.mul(candidate, gates[:, :1]).addcmul_(left, gates[:, 1:2]).addcmul_(right, gates[:, 2:])


class GatedConvolution(nn.Module):
    """Computes the root vector of each sentence from its word vectors."""

    def __init__(self, inputs: int, hidden: int, bias: bool = False) -> None:
        super().__init__()
        self.leaf = nn.Parameter(torch.empty(hidden, inputs))  # U
        self.recurrent_left = nn.Parameter(torch.empty(hidden, hidden))  # W_l
        self.recurrent_right = nn.Parameter(torch.empty(hidden, hidden))  # W_r
        self.gates_left = nn.Parameter(torch.empty(3, hidden))  # G_l: new, left, right
        self.gates_right = nn.Parameter(torch.empty(3, hidden))  # G_r
        self.bias = nn.Parameter(torch.zeros(hidden)) if bias else None
        self.gates_bias = nn.Parameter(torch.zeros(3)) if bias else None

    def after_initialize(self) -> None:
        """Scale the recurrent matrices, which `initialize` made orthogonal, as Cho et al. 2014b do."""
        self.recurrent_left.mul_(RECURRENT_SCALE)
        self.recurrent_right.mul_(RECURRENT_SCALE)

    def forward(self, inputs: Tensor, sizes: list[int]) -> Tensor:
        """Word vectors (N, E) in packed order, sizes[j] sentences have a word at step j -> roots (B, D), the
        longest sentence first"""
        return apply(_GatedConvolutionFunction, F.linear(inputs, self.leaf), *self.matrices(), sizes)

    def matrices(self) -> tuple[Tensor, ...]:
        """W_l, W_r, G_l, G_r and the biases, which are 0 if the layer has none."""
        bias = self.leaf.new_zeros(len(self.leaf)) if self.bias is None else self.bias
        gates_bias = self.leaf.new_zeros(3) if self.gates_bias is None else self.gates_bias
        return self.recurrent_left, self.recurrent_right, self.gates_left, self.gates_right, bias, gates_bias

    def node_gates(self, inputs: Tensor, sizes: list[int]) -> list[Tensor]:
        """The gates of every node, for each sentence level by level from the leaves up, positions from the
        left: B tensors (nodes, 3), the longest sentence first. Arguments as in `forward`."""
        W_l, W_r, G_l, G_r, bias, gates_bias = self.matrices()
        h = F.linear(inputs, self.leaf)
        result: list[list[Tensor]] = [[] for _ in range(sizes[0])]
        for number, level in enumerate(levels(sizes, inputs.device), 1):
            if not len(level.left):
                break
            left, right = h.index_select(0, level.left), h[level.right]
            gates = torch.softmax(merge(left, right, G_l, G_r, gates_bias), 1)
            h = mix(gates, merge(left, right, W_l, W_r, bias).relu_(), left, right)
            end = 0
            for rows in sizes[number:]:
                for row, values in enumerate(gates[end : end + rows]):
                    result[row].append(values)
                end += rows
        return [torch.stack(rows) if rows else inputs.new_zeros(0, 3) for rows in result]
