"""Output layers that reach a word by a path through a hierarchy: p(w) is the product of the probabilities of
the steps, each a softmax over the children of a node.

A layer is a matrix with a row for each child of each node. Three buffers, saved with the weights of a run,
describe the paths:

    leaf (V,)        the row of each word
    above (n,)       the row that leads to each node; -1 for the root, node 0
    starts (n + 1,)  node i has the rows starts[i] to starts[i + 1]

Nodes are numbered level by level, so that the rows of a level are neighbors.

V words, n nodes, E rows, K features, D steps of the longest path; N tokens, R rows of features, T words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import ClassVar, NamedTuple, NoReturn, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.compute.autograd import Context, apply
from nmt.compute.precision import in_mode
from nmt.errors import ConfigError
from nmt.layers.output.base import OutputLayer

# ---- softmaxes at nodes ------------------------------------------------------------------------------------
# Each node has a softmax over its children, which are adjacent rows of the matrix. A row of features is
# combined only with the nodes on the paths of its words: each such combination is a pair.
#
# All pairs of a node take one matrix product. If that is too small to be worth a call, the pairs of many
# nodes are computed together, each from its own copy of its node's rows.
#
# R rows of features, K features, E rows of the matrix, P pairs, b pairs of a block, T words.


LARGE_PRODUCT = 1 << 12  # a node with at least this many multiplications gets its own matrix product
COPIED = 1 << 20  # floats copied at a time: few enough to stay in the processor's cache
CLOSED = -1e30  # added to the scores of rows that are on no word's path: their probability is 0


class NodeWeights(NamedTuple):
    """The weights of all softmaxes: the children of node i are the rows starts[i] to starts[i + 1]."""

    matrix: Tensor  # (E, K)
    bias: Tensor  # (E,) with CLOSED for rows on no word's path
    starts: Tensor  # (nodes + 1,)


@dataclass
class SoftmaxBlock:
    """Softmaxes of b pairs of a feature row and a node, computed together, with at most m children each."""

    pairs: Tensor  # (b,) indices of the pairs
    features: Tensor  # (b, K)
    log_probs: Tensor  # (b, m) of the children; padded with probability 0 beyond the last child of a node
    parts: list[tuple[int, int, int]]  # for large nodes: first pair, end of the pairs, first row
    rows: Tensor | None  # (b, m) rows of the children, for small nodes; None for large ones


def softmax_blocks(
    features: Tensor, feature_rows: Tensor, nodes: Tensor, weights: NodeWeights
) -> Iterator[SoftmaxBlock]:
    """Compute the softmaxes of all pairs, block by block and without gradient. Pair p applies node nodes[p]
    to the features (R, K) of row feature_rows[p]: (P,) each."""
    order = torch.argsort(nodes, stable=True)
    distinct, counts = torch.unique_consecutive(nodes.index_select(0, order), return_counts=True)
    first = weights.starts.index_select(0, distinct)
    sizes = weights.starts.index_select(0, distinct + 1) - first
    large = counts * sizes >= -(-LARGE_PRODUCT // features.shape[1])
    if bool(large.all()):
        yield from large_blocks(features, feature_rows, order, first, sizes, counts, weights)
        return
    chosen = large.repeat_interleave(counts)
    yield from large_blocks(
        features, feature_rows, order[chosen], first[large], sizes[large], counts[large], weights
    )
    yield from small_blocks(features, feature_rows, nodes, order[~chosen], weights)


def large_blocks(
    features: Tensor,
    feature_rows: Tensor,
    pairs: Tensor,
    first: Tensor,
    sizes: Tensor,
    counts: Tensor,
    weights: NodeWeights,
) -> Iterator[SoftmaxBlock]:
    """Softmaxes of nodes with many pairs: one matrix product per node; the nodes of a block have equally many
    children. `pairs` (b,): indices of the pairs, sorted by node. `first`, `sizes`, `counts`: first row,
    number of rows and number of pairs of each node."""
    pair_features = features.index_select(0, feature_rows.index_select(0, pairs))
    offset = 0
    for size, group in groupby(
        zip(first.tolist(), sizes.tolist(), counts.tolist(), strict=True), itemgetter(1)
    ):
        parts, end = [], 0
        for row, _, count in group:
            parts.append((end, end + count, row))
            end += count
        mine = pair_features[offset : offset + end]
        scores = pair_features.new_empty(end, size)
        for start, stop, row in parts:
            rows = slice(row, row + size)
            torch.addmm(
                weights.bias[rows], mine[start:stop], weights.matrix[rows].t(), out=scores[start:stop]
            )
        yield SoftmaxBlock(pairs[offset : offset + end], mine, torch.log_softmax(scores, 1), parts, None)
        offset += end


def small_blocks(
    features: Tensor, feature_rows: Tensor, nodes: Tensor, pairs: Tensor, weights: NodeWeights
) -> Iterator[SoftmaxBlock]:
    """Softmaxes of nodes with few pairs, each from its own copy of its node's rows. `pairs` (b,): indices."""
    first = weights.starts[nodes[pairs]]
    sizes = weights.starts[nodes[pairs] + 1] - first
    child = torch.arange(int(sizes.max()), device=nodes.device)
    many = max(1, COPIED // (len(child) * features.shape[1]))
    for chunk in torch.arange(len(pairs), device=nodes.device).split(many):
        missing = child >= sizes[chunk, None]
        rows = (first[chunk, None] + child).masked_fill(missing, 0)
        pair_features = features.index_select(0, feature_rows[pairs[chunk]])
        copied = weights.matrix[rows]  # (b, m, K)
        scores = torch.bmm(copied, pair_features[:, :, None])[:, :, 0] + weights.bias[rows]
        yield SoftmaxBlock(
            pairs[chunk], pair_features, torch.log_softmax(scores.masked_fill(missing, CLOSED), 1), [], rows
        )


class SeenNodes(NamedTuple):
    """log p of the m children of the node of each of b pairs, kept from the forward pass."""

    pairs: Tensor  # (b,)
    log_probs: Tensor  # (b, m)


class _PathLogProbs(torch.autograd.Function):
    """Σ log p of the children on the paths of some words, (T,). Only the nodes on these paths are computed
    and receive a gradient."""

    @staticmethod
    def forward(
        ctx: Context,
        features: Tensor,
        matrix: Tensor,
        bias: Tensor | None,
        whole_bias: Tensor,
        starts: Tensor,
        feature_rows: Tensor,
        nodes: Tensor,
        children: Tensor,
        words: Tensor,
        count: int,
        seen: list[SeenNodes] | None,
    ) -> Tensor:
        """`whole_bias` (E,): see `NodeWeights`; its gradient goes to `bias`. Each pair (P,) is given by its
        row of the features, its node, the index of its child on the path, and the index of its word, below
        `count`. `seen`: a list that collects log p of all children."""
        weights = NodeWeights(matrix, whole_bias, starts)
        total = features.new_zeros(count)
        ctx.values = blocks = list[SoftmaxBlock]()
        for block in softmax_blocks(features, feature_rows, nodes, weights):
            taken = block.log_probs.gather(1, children[block.pairs, None])[:, 0]
            total.index_add_(0, words[block.pairs], taken)
            if seen is not None:
                seen.append(SeenNodes(block.pairs, block.log_probs))
            blocks.append(block)
        ctx.save_for_backward(matrix, bias, feature_rows, children, words, features)
        return total

    @staticmethod
    @once_differentiable
    @in_mode
    def backward(ctx: Context, grad: Tensor) -> tuple[Tensor | None, ...]:
        matrix, bias, feature_rows, children, words, features = ctx.saved_tensors
        d_features, d_matrix = torch.zeros_like(features), torch.zeros_like(matrix)
        d_bias = None if bias is None else torch.zeros_like(bias)
        blocks: list[SoftmaxBlock] = ctx.values
        for block in blocks:
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
            d_features.index_add_(0, feature_rows[block.pairs], back)
        return d_features, d_matrix, d_bias, *[None] * 8


# ---- best words --------------------------------------------------------------------------------------------
# Finds the most likely words without computing all probabilities, by branch and bound: a node is opened only
# if the path to it is more likely than the best words so far, so the result is exact (Jernite 2018, section
# 3.5).
#
# R rows of features, r of them still being searched; a node has at most M children; b nodes of a row are
# opened at a time, and F are waiting to be opened.


# After this many rounds the search of a row is given up: if all words are about equally likely, no node can
# be ruled out.
BOUND_ROUNDS = 30
# Nodes of a row that are opened at a time. More nodes mean fewer rounds, but also opening nodes that the next
# round would have ruled out.
NODES_AT_A_TIME = 2


class BestSoFar:
    """The best words found so far for each row of features."""

    def __init__(self, rows: int, count: int, like: Tensor) -> None:
        self.values = like.new_full((rows, count), -torch.inf)
        self.words = torch.full((rows, count), -1, device=like.device)

    def add(self, rows: Tensor, values: Tensor, words: Tensor) -> None:
        """Offer words (r, m) to the rows `rows` (r,), with their log p, -inf where there is no word."""
        count = self.values.shape[1]
        both = torch.cat([self.values[rows], values], 1)
        best, index = both.topk(count, 1)
        self.values[rows] = best
        self.words[rows] = torch.cat([self.words[rows], words], 1).gather(1, index)


@torch.no_grad()
def search_tree(
    features: Tensor, weights: NodeWeights, below: Tensor, word: Tensor, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Find the `count` most likely words of each row of features, best first. Returns log p and words, (R,
    count) each, padded with -inf and -1, and the indices (r,) of rows whose search exceeded the limit; score
    these exhaustively.

    `below`, `word` (E,): the node, or else the word, that each row of the matrix leads to; -1 for none.
    """
    M = int((weights.starts[1:] - weights.starts[:-1]).max())
    best = BestSoFar(len(features), count, features)
    rows = torch.arange(len(features), device=features.device)
    value = features.new_zeros(len(features), 1)  # (r, F) log p of the path to each node to be opened
    node = torch.zeros_like(value, dtype=torch.long)
    for _ in range(BOUND_ROUNDS):
        if not len(rows):
            break
        chosen, index = value.topk(min(NODES_AT_A_TIME, value.shape[1]), 1)
        use = chosen > best.values[rows, -1:]
        total, row = open_children(features, weights, rows, chosen, node.gather(1, index), use, M)
        best.add(rows, total.masked_fill(word[row] < 0, -torch.inf), word[row])
        inner = total.masked_fill(below[row] < 0, -torch.inf)
        inner = torch.cat([value.scatter(1, index, -torch.inf), inner], 1)
        node = torch.cat([node, below[row]], 1)
        promising = inner > best.values[rows, -1:]
        counts = promising.sum(1)
        live = counts > 0
        rows = rows[live]
        if len(rows):
            inner = inner.masked_fill(~promising, -torch.inf)[live]
            value, index = inner.topk(int(counts.max()), 1)
            node = node[live].gather(1, index)
    return best.values, best.words, rows


def open_children(
    features: Tensor, weights: NodeWeights, rows: Tensor, value: Tensor, node: Tensor, use: Tensor, M: int
) -> tuple[Tensor, Tensor]:
    """Compute log p of the paths to all children of some nodes, and their rows in the matrix: (r, b M) each,
    with -inf and 0 in place of missing children. `value`, `node`, `use` (r, b): log p of the path to each
    node, the node, and whether to open it; `rows` (r,): its row of features."""
    position, column = use.nonzero(as_tuple=True)
    nodes = node[position, column]
    total = value.new_full((*value.shape, M), -torch.inf)
    for block in softmax_blocks(features, rows[position], nodes, weights):
        size = block.log_probs.shape[1]
        path = value[position[block.pairs], column[block.pairs], None] + block.log_probs
        total[position[block.pairs], column[block.pairs], :size] = path
    row = weights.starts[node][:, :, None] + torch.arange(M, device=node.device)
    reachable = total > CLOSED / 2
    return total.masked_fill(~reachable, -torch.inf).flatten(1), row.masked_fill(~reachable, 0).flatten(1)


# ---- hierarchy ---------------------------------------------------------------------------------------------


Ints = NDArray[np.int64]
PLAIN = 64  # rows of features at a time for which log p of all words is computed
# Branch and bound is faster for at least LARGE_VOCABULARY words in at most SHALLOW levels, if no node has
# more than UNEVEN times as many children as it would have in an even tree.
LARGE_VOCABULARY, SHALLOW, UNEVEN = 100_000, 4, 2
NO_TYING = "its matrix has rows of nodes, not one for each word"
NO_SMOOTHING = "label smoothing needs the probabilities of all words, which this layer is there to avoid"


@dataclass
class Hierarchy:
    """The paths of all words through the hierarchy: the three buffers, as numpy arrays."""

    leaf: Ints
    above: Ints
    starts: Ints

    def paths(self) -> Ints:
        """The rows on the path of each word, from the leaf up, padded with -1: (V, D)"""
        node = np.repeat(np.arange(len(self.above)), np.diff(self.starts))
        columns = [self.leaf]
        while bool((columns[-1] >= 0).any()):
            last = columns[-1]
            columns.append(np.where(last >= 0, self.above[node[np.maximum(last, 0)]], -1))
        return np.stack(columns[:-1], 1)

    def levels(self) -> Ints:
        """The first row of each level, followed by the number of rows: (levels + 1,)"""
        edges, end = [0], int(self.starts[1])
        while edges[-1] < self.starts[-1]:
            edges.append(end)
            below = np.searchsorted(self.above[1:], end) + 1  # nodes that rows of the levels so far lead to
            end = int(self.starts[below])
        return np.array(edges, np.int64)


class Hierarchical(OutputLayer):
    """An output layer over a hierarchy. Subclasses build the hierarchy and pass it to `__init__`; another one
    set later by `set_hierarchy` must have equally many nodes and rows."""

    word_by_word: ClassVar[bool] = True
    self_normalized: ClassVar[bool] = True
    refuses: ClassVar[Mapping[str, str]] = {"tied": NO_TYING, "label_smoothing": NO_SMOOTHING}

    leaf: Tensor
    above: Tensor
    starts: Tensor
    paths: Tensor  # (V, D) rows from the leaf up, -1 after the root
    node: Tensor  # (E,) the node of each row
    closed: Tensor  # (E,) CLOSED for rows that lead to no word, else 0

    def __init__(self, inputs: int, hierarchy: Hierarchy, bias: bool) -> None:
        super().__init__(inputs, len(hierarchy.leaf), bias)
        rows = int(hierarchy.starts[-1])
        self.rows = nn.Parameter(torch.empty(rows, inputs))
        self.rows_bias = nn.Parameter(torch.zeros(rows)) if bias else None
        for name in ("leaf", "above", "starts"):
            self.register_buffer(name, torch.empty(0, dtype=torch.long))
        for name in ("paths", "node"):
            self.register_buffer(name, torch.empty(0, dtype=torch.long), persistent=False)
        self.register_buffer("closed", torch.zeros(rows), persistent=False)
        self._bias: tuple[object, Tensor] | None = None
        self.edges: list[int] = []  # the first row of each level, and E
        self.set_hierarchy(hierarchy)
        self.register_load_state_dict_post_hook(restore_hierarchy)  # type: ignore[no-untyped-call]

    def set_hierarchy(self, hierarchy: Hierarchy) -> None:
        """Set the hierarchy and the buffers derived from it; the weights do not change."""
        device = self.rows.device
        self.leaf, self.above, self.starts = (
            torch.from_numpy(part).to(device) for part in (hierarchy.leaf, hierarchy.above, hierarchy.starts)
        )
        paths = torch.from_numpy(hierarchy.paths())
        open_rows = torch.zeros(len(self.rows) + 1, dtype=torch.bool)
        open_rows[paths.flatten()] = True  # the padding, -1, sets the additional last entry
        self.paths = paths.to(device)
        self.closed = self.rows.new_zeros(len(self.rows)).masked_fill(~open_rows[:-1].to(device), CLOSED)
        sizes = self.starts[1:] - self.starts[:-1]
        self.node = torch.arange(len(sizes), device=device).repeat_interleave(sizes)
        self.edges = hierarchy.levels().tolist()

    def train(self, mode: bool = True) -> Self:
        self._bias = None  # torch's fused optimizers change weights without changing their version
        return super().train(mode)

    def whole_bias(self) -> Tensor:
        """Bias of each row of the matrix, (E,), with CLOSED added for rows on no word's path. The sum is
        cached until the weights change."""
        if self.rows_bias is None:
            return self.closed
        if self.training or torch.is_grad_enabled():
            return self.closed + self.rows_bias
        version = (self.rows_bias.data_ptr(), self.rows_bias._version, id(self.closed))
        cached = self._bias  # read once: another thread may replace it
        if cached is None or cached[0] != version:
            cached = self._bias = (version, self.closed + self.rows_bias.detach())
        return cached[1]

    @property
    def hierarchy(self) -> Hierarchy:
        """The current hierarchy, as numpy arrays."""
        leaf, above, starts = (part.cpu().numpy() for part in (self.leaf, self.above, self.starts))
        return Hierarchy(leaf, above, starts)

    @property
    def vocab_size(self) -> int:
        return len(self.leaf)

    # ---- words by their paths ------------------------------------------------------------------------------

    def path_log_probs(
        self, features: Tensor, rows: Tensor, targets: Tensor, seen: list[SeenNodes] | None = None
    ) -> Tensor:
        """log p of words, any number of them per row of features, with gradient: (R, K), (T,), (T,) -> (T,).
        `seen`: a list that collects log p of all children of the nodes on the paths, whose pairs are indices
        into `steps`."""
        words, _, taken = self.steps(targets)
        nodes = self.node[taken]
        return apply(
            _PathLogProbs, features, self.rows, self.rows_bias, self.whole_bias(), self.starts,
            rows[words], nodes, taken - self.starts[nodes], words, len(targets), seen,
        )  # fmt: skip

    def steps(self, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """List the steps on the paths of words (T,): the index of the word, the height above its leaf, and
        the row, (P,) each."""
        paths = self.paths[targets]
        words, heights = (paths >= 0).nonzero(as_tuple=True)
        return words, heights, paths[words, heights]

    def cross_entropy(
        self, features: Tensor, targets: Tensor, smoothing: float = 0.0, penalty: float = 0.0
    ) -> Tensor:
        """Σ -log p(target), natural logarithm: (N, K), (N,) -> (). log Z is 0, so there is no penalty."""
        assert not smoothing, NO_SMOOTHING
        log_probs = self.path_log_probs(features, row_indices(targets), targets)
        return -log_probs.sum(dtype=torch.float64).to(features.dtype)

    def target_log_probs(self, features: Tensor, targets: Tensor) -> Tensor:
        return self.log_probs_of_words(features, row_indices(targets), targets)

    def log_probs_of_words(self, features: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
        with torch.no_grad():
            return self.path_log_probs(features, rows, targets)

    def selected_log_probs(self, features: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
        return self.path_log_probs(features, rows, targets)

    # ---- all words -----------------------------------------------------------------------------------------

    def log_probs(self, features: Tensor, out: Tensor | None = None) -> Tensor:
        """log p of every word: (R, K) -> (R, V). `out` is not used."""
        steps = self.log_softmax(F.linear(features, self.rows, self.whole_bias()))
        above = self.above[self.node]  # of each row
        totals = [steps[:, : self.edges[1]]]
        for first, start, end in zip(self.edges, self.edges[1:], self.edges[2:], strict=False):
            so_far = totals[-1].index_select(1, above[start:end] - first)
            totals.append(steps[:, start:end] + so_far)
        return torch.cat(totals, 1).index_select(1, self.leaf)

    def log_softmax(self, scores: Tensor) -> Tensor:
        """Log softmax over the children of each node: (R, E) -> (R, E)"""
        sizes = (self.starts[1:] - self.starts[:-1]).tolist()
        if len(set(sizes)) == 1:
            return torch.log_softmax(scores.view(len(scores), len(sizes), sizes[0]), 2).flatten(1)
        return torch.cat([part.log_softmax(1) for part in scores.split(sizes, 1)], 1)

    @property
    def finds_best_sooner(self) -> bool:
        """Whether branch and bound is faster than computing all words. Measured with random features: a tenth
        of the time for 100,000 words in three levels, but no gain in binary trees. A translator with 27,593
        words took 1.2 to 1.3 times as long, and 14 times where the largest class had a third of the words."""
        levels = self.paths.shape[1]
        largest = int((self.starts[1:] - self.starts[:-1]).max())
        even = largest <= UNEVEN * self.vocab_size ** (1 / levels)
        return self.vocab_size >= LARGE_VOCABULARY and levels <= SHALLOW and even

    @torch.no_grad()
    def best_words(self, features: Tensor, count: int) -> tuple[Tensor, Tensor]:
        below, word = torch.full_like(self.node, -1), torch.full_like(self.node, -1)
        below[self.above[1:]] = torch.arange(1, len(self.above), device=below.device)
        word[self.leaf] = torch.arange(len(self.leaf), device=word.device)
        weights = NodeWeights(self.rows, self.whole_bias(), self.starts)
        values, words, unfinished = search_tree(features, weights, below, word, count)
        for rows in unfinished.split(PLAIN) if len(unfinished) else ():
            top, which = self.log_probs(features[rows]).topk(min(count, self.vocab_size), 1)
            values[rows, : top.shape[1]], words[rows, : top.shape[1]] = top, which
        return values, words

    def room(self, rows: int) -> Tensor:
        """An empty tensor: `log_probs` needs no memory prepared for it."""
        return self.rows.new_empty(rows, 0)

    def scores(self, features: Tensor) -> Tensor:
        return self.log_probs(features)

    def target_scores(self, features: Tensor, targets: Tensor) -> Tensor:
        return self.target_log_probs(features, targets)

    def log_z(self, features: Tensor) -> Tensor:
        return features.new_zeros(len(features))

    def restrict(self, token_ids: Tensor) -> "RestrictedHierarchy":
        return RestrictedHierarchy(self, token_ids)

    def tie(self, embedding: nn.Embedding) -> NoReturn:
        """Raise ConfigError, since the matrix does not have a row for each word."""
        raise ConfigError(f"tied: requires output: softmax; in this layer {NO_TYING}")

    def word_parameters(self) -> Sequence[str]:
        """Return no names, since rows belong to nodes rather than words."""
        return ()


class RestrictedHierarchy(Hierarchical):
    """Output layer restricted to some words, with copies of the nodes on their paths. Its scores are log p
    among all words of the original layer."""

    def __init__(self, layer: Hierarchical, token_ids: Tensor) -> None:
        """Copy from `layer` the nodes on the paths of `token_ids` (T,)."""
        words = token_ids.cpu().numpy()
        paths = layer.paths[token_ids]
        used = layer.node[paths[paths >= 0]].unique().cpu().numpy()  # in increasing order
        original = layer.hierarchy
        sizes = np.diff(original.starts)[used]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        copied = np.repeat(original.starts[used] - starts[:-1], sizes) + np.arange(starts[-1])
        new_row = np.full(original.starts[-1] + 1, -1)  # -1 stays -1
        new_row[copied] = np.arange(len(copied))
        part = Hierarchy(new_row[original.leaf[words]], new_row[original.above[used]], starts)
        super().__init__(layer.rows.shape[1], part, layer.rows_bias is not None)
        rows = torch.from_numpy(copied).to(layer.rows.device)
        self.to(layer.rows.device)
        self.rows = nn.Parameter(layer.rows.detach()[rows])
        if layer.rows_bias is not None:
            self.rows_bias = nn.Parameter(layer.rows_bias.detach()[rows])
        self.closed = layer.closed[rows]
        self.eval()

    def path_log_probs(
        self, features: Tensor, rows: Tensor, targets: Tensor, seen: list[SeenNodes] | None = None
    ) -> Tensor:
        return super().path_log_probs(features, rows, targets, seen) - self.log_z(features)[rows]

    def log_probs(self, features: Tensor, out: Tensor | None = None) -> Tensor:
        return torch.log_softmax(self.scores(features), 1)

    def scores(self, features: Tensor) -> Tensor:
        """log p among all words: (R, K) -> (R, T)"""
        return super().log_probs(features)

    def target_scores(self, features: Tensor, targets: Tensor) -> Tensor:
        """log p among all words: (N, K), (N,) -> (N,)"""
        with torch.no_grad():
            return super().path_log_probs(features, row_indices(targets), targets)

    def log_z(self, features: Tensor) -> Tensor:
        """log of the total probability of these words among all words: (R, K) -> (R,)"""
        return self.scores(features).logsumexp(1)


def row_indices(targets: Tensor) -> Tensor:
    """Row indices 0, 1, 2 ... for targets with one row of features each."""
    return torch.arange(len(targets), device=targets.device)


def restore_hierarchy(layer: Hierarchical, incompatible: object) -> None:
    """Recompute the buffers that are derived from the hierarchy; a hook of load_state_dict."""
    layer.set_hierarchy(layer.hierarchy)
