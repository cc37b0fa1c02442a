"""Output layers that reach a word by a path through a hierarchy: p(w) is the product of the probabilities of
the steps, each a softmax over the children of a node.

A layer is a matrix with a row for each child of each node. Where the paths lead is kept in three buffers,
which the weights of a run contain:

    leaf (V,)        the row of each word
    above (n,)       the row that leads to each node; -1 for the root, node 0
    starts (n + 1,)  node i has the rows starts[i] to starts[i + 1]

Nodes are numbered level by level, so that the rows of a level are neighbors.

V words, n nodes, E rows, K features, D steps of the longest path; N tokens, R rows of features, T words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.errors import ConfigError
from nmt.layers.output.best_words import best_words
from nmt.layers.output.nodes import CLOSED, Nodes, Seen, path_log_probs

Ints = NDArray[np.int64]
PLAIN = 64  # rows of all words at a time
# From so many words on, up to so many levels, branch and bound is faster where no node has more than so many
# times the children of one in an even tree.
LARGE, SHALLOW, UNEVEN = 100_000, 4, 2
NO_TYING = "its matrix has rows of nodes, not one for each word"
NO_SMOOTHING = "spreading probability over all words computes all of them, which it is there to avoid"


@dataclass
class Hierarchy:
    """Where the paths of words lead; see above."""

    leaf: Ints
    above: Ints
    starts: Ints

    def paths(self) -> Ints:
        """The rows of each path, from the leaf up, -1 after the root: (V, D)"""
        node = np.repeat(np.arange(len(self.above)), np.diff(self.starts))
        columns = [self.leaf]
        while bool((columns[-1] >= 0).any()):
            last = columns[-1]
            columns.append(np.where(last >= 0, self.above[node[np.maximum(last, 0)]], -1))
        return np.stack(columns[:-1], 1)

    def levels(self) -> Ints:
        """The first row of each level, and the number of rows: (levels + 1,)"""
        edges, end = [0], int(self.starts[1])
        while edges[-1] < self.starts[-1]:
            edges.append(end)
            below = np.searchsorted(self.above[1:], end) + 1  # nodes that rows of the levels so far lead to
            end = int(self.starts[below])
        return np.array(edges, np.int64)


class Hierarchical(nn.Module):
    """An `OutputLayer` over a hierarchy. A class of its own says how it is made: it gives `__init__` a first
    hierarchy, whose numbers of nodes and rows are those of all that `place` is given later."""

    reads: ClassVar[frozenset[str]] = frozenset()
    self_normalized = True
    refuses: ClassVar[Mapping[str, str]] = {"tied": NO_TYING, "label_smoothing": NO_SMOOTHING}

    leaf: Tensor
    above: Tensor
    starts: Tensor
    paths: Tensor  # (V, D) rows from the leaf up, -1 after the root
    node: Tensor  # (E,) whose row it is
    closed: Tensor  # (E,) CLOSED for rows that lead to no word, else 0

    def __init__(self, inputs: int, hierarchy: Hierarchy, bias: bool) -> None:
        super().__init__()
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
        self.place(hierarchy)
        self.register_load_state_dict_post_hook(loaded)  # type: ignore[no-untyped-call]

    def place(self, hierarchy: Hierarchy) -> None:
        """Let the paths of words lead as the hierarchy says."""
        device = self.rows.device
        self.leaf, self.above, self.starts = (
            torch.from_numpy(part).to(device) for part in (hierarchy.leaf, hierarchy.above, hierarchy.starts)
        )
        paths = torch.from_numpy(hierarchy.paths())
        open_rows = torch.zeros(len(self.rows) + 1, dtype=torch.bool)
        open_rows[paths.flatten()] = True  # -1: the one too many
        self.paths = paths.to(device)
        self.closed = self.rows.new_zeros(len(self.rows)).masked_fill(~open_rows[:-1].to(device), CLOSED)
        sizes = self.starts[1:] - self.starts[:-1]
        self.node = torch.arange(len(sizes), device=device).repeat_interleave(sizes)
        self.edges = hierarchy.levels().tolist()

    def train(self, mode: bool = True) -> Self:
        self._bias = None  # torch's fused optimizers change weights without changing their version
        return super().train(mode)

    def whole_bias(self) -> Tensor:
        """The bias of each row, CLOSED where it leads nowhere: (E,); kept while it does not change."""
        if self.rows_bias is None:
            return self.closed
        if self.training or torch.is_grad_enabled():
            return self.closed + self.rows_bias
        version = (self.rows_bias.data_ptr(), self.rows_bias._version, id(self.closed))
        kept = self._bias  # read once: another thread may replace it
        if kept is None or kept[0] != version:
            kept = self._bias = (version, self.closed + self.rows_bias.detach())
        return kept[1]

    @property
    def hierarchy(self) -> Hierarchy:
        """Where the paths lead."""
        leaf, above, starts = (part.cpu().numpy() for part in (self.leaf, self.above, self.starts))
        return Hierarchy(leaf, above, starts)

    @property
    def vocab_size(self) -> int:
        return len(self.leaf)

    # ---- words by their paths ------------------------------------------------------------------------------

    def along(
        self, features: Tensor, rows: Tensor, targets: Tensor, seen: list[Seen] | None = None
    ) -> Tensor:
        """log p of words, any number of them for a row of features, with gradient: (R, K), (T,), (T,) ->
        (T,). `seen`: gets what was computed at the steps, in the order of `steps`."""
        words, _, taken = self.steps(targets)
        nodes = self.node[taken]
        pairs = (rows[words], nodes, taken - self.starts[nodes], words)
        at = (self.rows, self.rows_bias, self.whole_bias(), self.starts)
        return path_log_probs(features, at, pairs, len(targets), seen)

    def steps(self, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The steps of the paths of words (T,): which of the words, how far above its leaf, the row: (P,)
        each"""
        paths = self.paths[targets]
        words, heights = (paths >= 0).nonzero(as_tuple=True)
        return words, heights, paths[words, heights]

    def cross_entropy(
        self, features: Tensor, targets: Tensor, smoothing: float = 0.0, penalty: float = 0.0
    ) -> Tensor:
        """Σ -log p(target), natural logarithm: (N, K), (N,) -> (). log Z is 0, so there is no penalty."""
        assert not smoothing, NO_SMOOTHING
        found = self.along(features, everyone(targets), targets)
        return -found.sum(dtype=torch.float64).to(features.dtype)

    def log_probs_of(self, features: Tensor, targets: Tensor) -> Tensor:
        """log p of the given words, without gradient: (N, K), (N,) -> (N,)"""
        return self.log_probs_of_words(features, everyone(targets), targets)

    def log_probs_of_words(self, features: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
        """log p of words, in any order, without gradient: (R, K), rows (T,), (T,) -> (T,)"""
        with torch.no_grad():
            return self.along(features, rows, targets)

    def log_probs_at(self, features: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
        """log p of words, any number of them for a row, with gradient: (R, K), (T,), (T,) -> (T,)"""
        return self.along(features, rows, targets)

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
        """Of the children of each node: (R, E) -> (R, E)"""
        sizes = (self.starts[1:] - self.starts[:-1]).tolist()
        if len(set(sizes)) == 1:
            return torch.log_softmax(scores.view(len(scores), len(sizes), sizes[0]), 2).flatten(1)
        return torch.cat([part.log_softmax(1) for part in scores.split(sizes, 1)], 1)

    @property
    def finds_best_sooner(self) -> bool:
        """See BestWords. Measured: random features, 100,000 words in three levels: a tenth of the time
        of all words, binary trees as long; a translator with 27,593 words takes 1.2 to 1.3 times as long in
        all, one with classes of which the largest has a third of the words 14 times."""
        levels = self.paths.shape[1]
        largest = int((self.starts[1:] - self.starts[:-1]).max())
        even = largest <= UNEVEN * self.vocab_size ** (1 / levels)
        return self.vocab_size >= LARGE and levels <= SHALLOW and even

    @torch.no_grad()
    def best_words(self, features: Tensor, count: int, width: int = 0) -> tuple[Tensor, Tensor]:
        """The `count` most likely words, the best first, and their log p: (R, K) -> (R, count) twice, without
        gradient. `width`: by a beam search over the tree; 0: exact."""
        below, word = torch.full_like(self.node, -1), torch.full_like(self.node, -1)
        below[self.above[1:]] = torch.arange(1, len(self.above), device=below.device)
        word[self.leaf] = torch.arange(len(self.leaf), device=word.device)
        at = Nodes(self.rows, self.whole_bias(), self.starts)
        values, words, rest = best_words(features, at, below, word, count, width)
        for rows in rest.split(PLAIN) if len(rest) else ():
            found, which = self.log_probs(features[rows]).topk(min(count, self.vocab_size), 1)
            values[rows, : found.shape[1]], words[rows, : found.shape[1]] = found, which
        return values, words

    def room(self, rows: int) -> Tensor:
        """No memory is prepared."""
        return self.rows.new_empty(rows, 0)

    def scores(self, features: Tensor) -> Tensor:
        """As `log_probs`: log Z is 0."""
        return self.log_probs(features)

    def scores_of(self, features: Tensor, targets: Tensor) -> Tensor:
        """As `log_probs_of`: log Z is 0."""
        return self.log_probs_of(features, targets)

    def log_z(self, features: Tensor) -> Tensor:
        """(R, K) -> zeros (R,)"""
        return features.new_zeros(len(features))

    def restrict(self, token_ids: Tensor) -> "Part":
        """The distribution over these words (T,) alone; it follows later changes."""
        return Part(self, token_ids)

    def tie(self, embedding: nn.Embedding) -> NoReturn:
        """ConfigError: there is no row for each word."""
        raise ConfigError(f"tied: goes with output: softmax only; of this layer {NO_TYING}")

    def word_parameters(self) -> Sequence[str]:
        """None: rows belong to nodes."""
        return ()


class Part(Hierarchical):
    """The distribution over some of the words of a layer alone, with copies of the nodes on their paths. Its
    scores are log p among all words."""

    def __init__(self, whole: Hierarchical, token_ids: Tensor) -> None:
        """token_ids: (T,)"""
        words = token_ids.cpu().numpy()
        paths = whole.paths[token_ids]
        used = whole.node[paths[paths >= 0]].unique().cpu().numpy()  # in increasing order
        given = whole.hierarchy
        sizes = np.diff(given.starts)[used]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        kept = np.repeat(given.starts[used] - starts[:-1], sizes) + np.arange(starts[-1])
        now = np.full(given.starts[-1] + 1, -1)  # -1 stays -1
        now[kept] = np.arange(len(kept))
        part = Hierarchy(now[given.leaf[words]], now[given.above[used]], starts)
        super().__init__(whole.rows.shape[1], part, whole.rows_bias is not None)
        rows = torch.from_numpy(kept).to(whole.rows.device)
        self.to(whole.rows.device)
        self.rows = nn.Parameter(whole.rows.detach()[rows])
        if whole.rows_bias is not None:
            self.rows_bias = nn.Parameter(whole.rows_bias.detach()[rows])
        self.closed = whole.closed[rows]
        self.eval()

    def along(
        self, features: Tensor, rows: Tensor, targets: Tensor, seen: list[Seen] | None = None
    ) -> Tensor:
        return super().along(features, rows, targets, seen) - self.log_z(features)[rows]

    def log_probs(self, features: Tensor, out: Tensor | None = None) -> Tensor:
        return torch.log_softmax(self.scores(features), 1)

    def scores(self, features: Tensor) -> Tensor:
        """log p among all words: (R, K) -> (R, T)"""
        return super().log_probs(features)

    def scores_of(self, features: Tensor, targets: Tensor) -> Tensor:
        """log p among all words: (N, K), (N,) -> (N,)"""
        with torch.no_grad():
            return super().along(features, everyone(targets), targets)

    def log_z(self, features: Tensor) -> Tensor:
        """log p of these words together: (R, K) -> (R,)"""
        return self.scores(features).logsumexp(1)


def everyone(targets: Tensor) -> Tensor:
    """The row of each target where each has its own: 0, 1, 2 ..."""
    return torch.arange(len(targets), device=targets.device)


def loaded(layer: Hierarchical, incompatible: object) -> None:
    """The buffers were read from a file: what is computed from them follows."""
    layer.place(layer.hierarchy)
