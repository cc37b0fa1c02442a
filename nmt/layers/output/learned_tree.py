"""The learned tree of 000, chapter 3: a tree of equal depth whose words move, while it is trained, to where
their contexts lead already.

Each node keeps for each word that passes through it the mean probability of its children. Every
`output_rebuild` updates the tree is built anew from the root down: each word goes to the child that raises
the objective J most (nmt/layers/output/assignment.py).

V words, M arity, D depth, N tokens.
"""

import logging
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.layers.output.assignment import best_objective, objective, rebuild
from nmt.layers.output.hierarchy import Hierarchical, Ints, everyone
from nmt.layers.output.nodes import Seen
from nmt.layers.output.settings import OutputSettings
from nmt.layers.output.tree import complete, levels_of, spread, wide_enough

log = logging.getLogger(__name__)

FRESH = 0.01  # standard deviation of the weights of a node that no word came to before


class LearnedTree(Hierarchical):
    """A softmax along the path to a word, in a tree that training builds: an `OutputLayer`. It starts with
    words at random.

    The statistics are state of the training, and saved with the weights: for each word and each node of its
    path, from the root down, the sum of the children's probabilities, and of how many visits.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"output_arity", "output_rebuild", "output_rebuild_until"})

    sums: Tensor  # (V, D, M)
    counts: Tensor  # (V, D)

    def __init__(
        self, inputs: int, vocab_size: int, bias: bool = True, settings: OutputSettings | None = None
    ) -> None:
        settings = settings or OutputSettings()
        self.arity = settings.output_arity or wide_enough(vocab_size)
        self.every, self.until = settings.output_rebuild, settings.output_rebuild_until
        self.depth = levels_of(vocab_size, self.arity)
        super().__init__(inputs, complete(spread(np.arange(vocab_size), self.arity), self.arity), bias)
        M, D = self.arity, self.depth
        self.register_buffer("sums", torch.full((vocab_size, D, M), 1 / M))
        self.register_buffer("counts", torch.ones(vocab_size, D))

    def learn(self, text: NDArray[np.integer]) -> None:
        """Begin with words at random places."""
        order = torch.randperm(self.vocab_size).numpy()
        self.place(complete(spread(order, self.arity), self.arity))

    @property
    def codes(self) -> Ints:
        """The leaf of each word, counted from the left: (V,)"""
        leaf: Ints = self.leaf.cpu().numpy()
        return leaf - (len(self.above) - 1)

    def cross_entropy(
        self, features: Tensor, targets: Tensor, smoothing: float = 0.0, penalty: float = 0.0
    ) -> Tensor:
        """Σ -log p(target), (N, K), (N,) -> (); in training the statistics of the nodes on the way are
        kept."""
        if not self.training:
            return super().cross_entropy(features, targets, smoothing, penalty)
        seen: list[Seen] = []
        found = self.along(features, everyone(targets), targets, seen)
        self.count(targets, seen)
        return -found.sum(dtype=torch.float64).to(features.dtype)

    @torch.no_grad()
    def count(self, targets: Tensor, seen: list[Seen]) -> None:
        """Add what was computed on the way to some words (N,) to the statistics."""
        words, heights, _ = self.steps(targets)
        place = targets[words] * self.depth + (self.depth - 1 - heights)
        self.counts.view(-1).index_add_(0, place, self.counts.new_ones(len(place)))
        for part in seen:
            probabilities = part.log_probs.exp().to(self.sums.dtype)
            self.sums.view(-1, self.arity).index_add_(0, place[part.pairs], probabilities)

    def updated(self, step: int) -> None:
        """After each update of a training, with its number: build the tree anew when it is time."""
        if self.every and step % self.every == 0 and (not self.until or step <= self.until):
            moved = self.rebuild()
            root, mean = self.objectives()
            log.info(
                "tree built anew at update %d: %s of %s words moved; J %.4f at the root, %.4f on average (at "
                "most %.4f)",
                step, f"{moved:,}", f"{self.vocab_size:,}", root, mean, best_objective(self.arity),
            )  # fmt: skip

    @torch.no_grad()
    def rebuild(self) -> int:
        """Build the tree anew from its statistics; returns how many words have moved. They take the rows of
        their leaves with them. A node that no word came to before starts afresh."""
        before, used = self.codes, self.nodes_in_use()
        sums, counts = self.sums.cpu().numpy(), self.counts.cpu().numpy()
        codes = rebuild(before, sums, counts)
        self.sums.copy_(torch.from_numpy(sums))
        self.counts.copy_(torch.from_numpy(counts))
        leaf = self.leaf
        self.place(complete(codes, self.arity))
        fresh = (self.nodes_in_use() & ~used)[self.node]
        old = self.rows[leaf]
        self.rows[fresh] = torch.randn_like(self.rows[fresh]) * FRESH
        self.rows[self.leaf] = old
        if self.rows_bias is not None:
            old = self.rows_bias[leaf]
            self.rows_bias[fresh] = 0
            self.rows_bias[self.leaf] = old
        return int((codes != before).sum())

    def nodes_in_use(self) -> Tensor:
        """Which nodes are on the path of a word: (n,)"""
        used = torch.zeros(len(self.above), dtype=torch.bool, device=self.leaf.device)
        used[self.node[self.paths]] = True
        return used

    def objectives(self) -> tuple[float, float]:
        """J of the root, and of all nodes on average, each as often as it was visited."""
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
