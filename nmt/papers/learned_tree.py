"""The learned tree of Jernite 2018, chapter 3: a hierarchical softmax over a tree of equal depth. During
training, words move to the leaves to which their contexts already lead.

For each word, each node on its path keeps the mean probabilities of its children. Every `output_rebuild`
updates the tree is rebuilt from the root down: each word goes to the child that increases the objective J
most.

V words, M arity, D depth, N tokens.
"""

import logging
from collections.abc import Mapping
from typing import ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.layers.output.base import OutputSettings
from nmt.layers.output.hierarchy import Hierarchical, Ints, SeenNodes, row_indices
from nmt.layers.output.tree import complete_tree, spread_words, three_level_arity, tree_depth
from nmt.papers.settings import RebuildSettings
from nmt.training.protocols import Callback

# ---- assignment --------------------------------------------------------------------------------------------
# Which child of a node each word belongs to: the learning of trees of Jernite 2018, section 3.3 (algorithm
# 3.3, with the corrections of its equations).
#
# At a node that words i pass through with shares q_i, p_{j|i} is the mean probability of its child j when the
# word was i, and p_j = Σ_i q_i p_{j|i}. The node is good where
#
#     J = (2/M) Σ_i q_i Σ_j |p_j - p_{j|i}|        0 <= J <= J* = (4/M) (1 - 1/M)
#
# is great: J* where its children are equally likely (balanced) and each word goes to one of them (pure).
#
# V words, W words of a node, M children of a node.


Floats = NDArray[np.floating]
log = logging.getLogger(__name__)

ALIKE = 1.5  # probabilities of a smaller ratio are alike
RETAINED = 0.3  # share of the statistics that is kept when the tree is rebuilt


def objective(shares: Floats, conditional: Floats) -> float:
    """J of a node with W words: shares q (W,), which sum to 1, and child probabilities p_{j|i} (W, M)."""
    mean = shares @ conditional
    return float(2 / conditional.shape[1] * (shares @ np.abs(conditional - mean).sum(1)))


def best_objective(arity: int) -> float:
    """J* = (4/M) (1 - 1/M), the value of J for a balanced and pure node."""
    return 4 / arity * (1 - 1 / arity)


def affinities(node: Ints, sums: Floats, counts: Floats) -> Floats:
    """How much J of a word's node increases if the word goes to each child, q (1 - q) p_{j|i} sign(p_{j|i} -
    p_j): (V, M). `node` (V,): node of each word; `sums` (V, M): sums of its children's probabilities;
    `counts` (V,): number of visits, including a made-up one, so that none is 0.

    The sign is 0 if the two probabilities are about equal, and for words that have not visited the node: a
    node that cannot tell its words apart would otherwise move them at random for ever.
    """
    nodes = int(node.max()) + 1
    total = np.bincount(node, counts, minlength=nodes)
    order = np.argsort(node, kind="stable")
    used, first = np.unique(node[order], return_index=True)
    node_sums = np.zeros((nodes, sums.shape[1]), sums.dtype)
    node_sums[used] = np.add.reduceat(sums[order], first, axis=0)
    mean = node_sums / np.maximum(total, 1e-30)[:, None].astype(sums.dtype)
    share = (counts / total[node]).astype(sums.dtype)
    conditional = sums / counts[:, None].astype(sums.dtype)
    all_words = mean[node]  # p_j of the node of each word
    sign = (conditional > ALIKE * all_words) * 1.0 - (conditional * ALIKE < all_words)
    gains = conditional * sign.astype(sums.dtype)
    gains *= (share * (1 - share) * (counts > 1))[:, None]
    return np.asarray(gains)


def assign(node: Ints, gains: Floats, room: int, present: Ints) -> Ints:
    """Assign each word to a child of its node `node` (V,); returns the indices of the children, 0 to M - 1,
    (V,). Each child takes at most `room` words, and a node must have room for all of its words.

    Given the gain of each child, `gains` (V, M), the word and child of greatest gain are joined repeatedly,
    among words without a child and children that are not full. Ties go to the first word, then to its
    `present` child (V,), then to the first child.

    All nodes are filled in parallel. As long as no child is full, words take their favorite child in order of
    gain; once a word finds its child full, all words that want this child choose another.
    """
    V, M = gains.shape
    occupied = np.zeros((int(node.max()) + 1, M), np.int64)
    child = np.full(V, -1)
    waiting = np.arange(V)
    wanted, gain = favorites(gains, present)
    while len(waiting):
        order = np.lexsort((-gain[waiting], node[waiting]))
        words = waiting[order]
        slots = node[words] * M + wanted[words]
        late = ranks(slots) >= room - occupied.reshape(-1)[slots]
        blocked = after_first(late, node[words])
        assigned = words[~blocked]
        child[assigned] = wanted[assigned]
        np.add.at(occupied, (node[assigned], child[assigned]), 1)
        waiting = np.sort(words[blocked])
        full = occupied >= room
        again = waiting[full[node[waiting], wanted[waiting]]]
        choice = np.where(full[node[again]], -np.inf, gains[again])
        wanted[again], gain[again] = favorites(choice, present[again])
    return child


def favorites(gains: Floats, present: Ints) -> tuple[Ints, Floats]:
    """The child with the highest gain for each word, or its present child if none is better, and this gain:
    (V, M), (V,) -> (V,) twice"""
    rows = np.arange(len(gains))
    best = gains.argmax(1)
    best = np.where(gains[rows, present] >= gains[rows, best], present, best)
    return best, gains[rows, best]


def ranks(keys: Ints) -> Ints:
    """Number of equal entries before each entry: (n,) -> (n,)"""
    order = np.argsort(keys, kind="stable")
    positions = np.arange(len(keys))
    new = np.r_[True, keys[order][1:] != keys[order][:-1]] if len(keys) else np.zeros(0, bool)
    starts = np.maximum.accumulate(np.where(new, positions, 0))
    result = np.empty(len(keys), np.int64)
    result[order] = positions - starts
    return result


def after_first(marks: NDArray[np.bool_], groups: Ints) -> NDArray[np.bool_]:
    """Whether each entry is the first marked one of its group or comes after it: (n,). Groups are in
    increasing order."""
    so_far = np.cumsum(marks)
    new = np.r_[True, groups[1:] != groups[:-1]] if len(groups) else np.zeros(0, bool)
    marks_before_group = np.maximum.accumulate(np.where(new, so_far - marks, 0))
    return np.asarray(so_far > marks_before_group)


def rebuild_codes(codes: Ints, sums: Floats, counts: Floats) -> Ints:
    """Choose new leaves for the words of a tree of equal depth D. `codes` (V,): leaves, counted from the
    left; `sums` (V, D, M), `counts` (V, D): statistics of the nodes on each path, from the root down. Returns
    the new leaves (V,).

    A word stays with its child as long as J gains by it; other words look for the best child. Statistics
    belong to the old paths: for words that reach another node they are reset, in place, to one visit with
    equal probabilities; all others are decayed, so that they follow the model.
    """
    depth, arity = sums.shape[1:]
    reached = np.zeros(len(codes), np.int64)  # the node of each word, counted from the left of its level
    for level in range(depth):
        moved = reached != codes // arity ** (depth - level)
        sums[moved, level], counts[moved, level] = 1 / arity, 1
        _, node = np.unique(reached, return_inverse=True)
        gains = affinities(node, sums[:, level], counts[:, level])
        leaves = arity ** (depth - level - 1)  # of a child
        present = codes // leaves % arity
        stay = np.flatnonzero(gains[np.arange(len(codes)), present] > 0)
        gains[stay, present[stay]] = np.inf
        reached = reached * arity + assign(node, gains, leaves, present)
    sums[:] = 1 / arity + RETAINED * (sums - 1 / arity)
    counts[:] = 1 + RETAINED * (counts - 1)
    return reached


# ---- learned tree ------------------------------------------------------------------------------------------


FRESH = 0.01  # standard deviation of the weights of a node that was on no word's path before


class LearnedTree(Hierarchical, Callback):
    """A hierarchical softmax whose tree is learned in training, starting from random leaves.

    The statistics are part of the training state and saved with the weights: for each word and each node of
    its path, from the root down, the sum of the children's probabilities, and the number of visits.
    """

    learns_text: ClassVar[bool] = True
    reads: ClassVar[frozenset[str]] = frozenset({"output_arity", "output_rebuild", "output_rebuild_until"})
    refuses: ClassVar[Mapping[str, str]] = {
        **Hierarchical.refuses,
        "ema": "its tree is rebuilt during training",
    }
    one_process: ClassVar[str] = "a learned tree (output) can follow the updates of one process only"

    sums: Tensor  # (V, D, M)
    counts: Tensor  # (V, D)

    def __init__(
        self, inputs: int, vocab_size: int, bias: bool = True, settings: OutputSettings | None = None
    ) -> None:
        settings = settings or OutputSettings()
        self.arity = settings.output_arity or three_level_arity(vocab_size)
        rebuild = cast(RebuildSettings, settings)
        self.every, self.until = rebuild.output_rebuild, rebuild.output_rebuild_until
        self.depth = tree_depth(vocab_size, self.arity)
        super().__init__(
            inputs, complete_tree(spread_words(np.arange(vocab_size), self.arity), self.arity), bias
        )
        M, D = self.arity, self.depth
        self.register_buffer("sums", torch.full((vocab_size, D, M), 1 / M))
        self.register_buffer("counts", torch.ones(vocab_size, D))

    def learn(self, text: NDArray[np.integer]) -> None:
        """Start from a tree with words at random leaves, drawn by torch's generator; `text` is not read."""
        order = torch.randperm(self.vocab_size).numpy()
        self.set_hierarchy(complete_tree(spread_words(order, self.arity), self.arity))

    @property
    def codes(self) -> Ints:
        """The leaf of each word, counted from the left: (V,)"""
        leaf: Ints = self.leaf.cpu().numpy()
        return leaf - (len(self.above) - 1)

    def cross_entropy(
        self, features: Tensor, targets: Tensor, smoothing: float = 0.0, penalty: float = 0.0
    ) -> Tensor:
        """Σ -log p(target), natural: features (N, K), targets (N,) -> (). In training, also adds the
        probabilities at the nodes on each path to the statistics from which the tree is rebuilt.
        `smoothing` must be 0; `penalty` is not used, since log Z is 0."""
        if not self.training:
            return super().cross_entropy(features, targets, smoothing, penalty)
        seen: list[SeenNodes] = []
        log_probs = self.path_log_probs(features, row_indices(targets), targets, seen)
        self.count(targets, seen)
        return -log_probs.sum(dtype=torch.float64).to(features.dtype)

    @torch.no_grad()
    def count(self, targets: Tensor, seen: list[SeenNodes]) -> None:
        """Add the probabilities at the nodes on the paths of the words `targets` (N,) to the statistics.
        `seen`: from `path_log_probs` of these words."""
        words, heights, _ = self.steps(targets)
        positions = targets[words] * self.depth + (self.depth - 1 - heights)
        self.counts.view(-1).index_add_(0, positions, self.counts.new_ones(len(positions)))
        for part in seen:
            probabilities = part.log_probs.exp().to(self.sums.dtype)
            self.sums.view(-1, self.arity).index_add_(0, positions[part.pairs], probabilities)

    def on_update(self, step: int) -> None:
        """Rebuild the tree every `output_rebuild` updates until `output_rebuild_until`; log the moves."""
        if self.every and step % self.every == 0 and (not self.until or step <= self.until):
            moved = self.rebuild()
            root, mean = self.objectives()
            log.info(
                "tree rebuilt at update %d: %s of %s words moved; J %.4f at the root, %.4f on average (at "
                "most %.4f)",
                step, f"{moved:,}", f"{self.vocab_size:,}", root, mean, best_objective(self.arity),
            )  # fmt: skip

    @torch.no_grad()
    def rebuild(self) -> int:
        """Rebuild the tree from its statistics, which are decayed; returns how many words have moved. Words
        take the rows of their leaves with them. Nodes that were on no word's path before are initialized at
        random."""
        old_codes, used = self.codes, self.nodes_in_use()
        sums, counts = self.sums.cpu().numpy(), self.counts.cpu().numpy()
        codes = rebuild_codes(old_codes, sums, counts)
        self.sums.copy_(torch.from_numpy(sums))
        self.counts.copy_(torch.from_numpy(counts))
        leaf = self.leaf
        self.set_hierarchy(complete_tree(codes, self.arity))
        fresh = (self.nodes_in_use() & ~used)[self.node]
        old = self.rows[leaf]
        self.rows[fresh] = torch.randn_like(self.rows[fresh]) * FRESH
        self.rows[self.leaf] = old
        if self.rows_bias is not None:
            old = self.rows_bias[leaf]
            self.rows_bias[fresh] = 0
            self.rows_bias[self.leaf] = old
        return int((codes != old_codes).sum())

    def nodes_in_use(self) -> Tensor:
        """Whether each node is on the path of a word: (n,)"""
        used = torch.zeros(len(self.above), dtype=torch.bool, device=self.leaf.device)
        used[self.node[self.paths]] = True
        return used

    def objectives(self) -> tuple[float, float]:
        """J of the root, and the mean of J over all nodes, weighted by visits."""
        sums, counts = self.sums.cpu().numpy(), self.counts.cpu().numpy().astype(np.float64)
        values, weights = [], []
        for level in range(self.depth):
            node = self.codes // self.arity ** (self.depth - level)
            order = np.argsort(node, kind="stable")
            for words in np.split(order, np.flatnonzero(np.diff(node[order])) + 1):
                visits = counts[words, level]
                values.append(objective(visits / visits.sum(), sums[words, level] / visits[:, None]))
                weights.append(visits.sum())
        return values[0], float(np.average(values, weights=weights))
