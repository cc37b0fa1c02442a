"""Softmaxes along the path to a word in a tree of arity M: a Huffman tree, in which frequent words are near
the root, or words at random in a tree of equal depth.

V words, M arity, n nodes, D depth.
"""

import logging
import math
from collections import deque
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.layers.output.base import OutputSettings
from nmt.layers.output.hierarchy import Hierarchical, Hierarchy, Ints

log = logging.getLogger(__name__)

SPARE = 1.05  # leaves of a tree of three levels for each word
LEVELS = 3


class TreeSoftmax(Hierarchical):
    """Hierarchical softmax over a tree that is built once, for the training text. Before `learn`, all words
    count as equally frequent."""

    learns_text: ClassVar[bool] = True
    reads: ClassVar[frozenset[str]] = frozenset({"output_tree", "output_arity"})

    def __init__(
        self, inputs: int, vocab_size: int, bias: bool = True, settings: OutputSettings | None = None
    ) -> None:
        settings = settings or OutputSettings()
        self.huffman = settings.output_tree == "huffman"
        self.arity = settings.output_arity or (2 if self.huffman else three_level_arity(vocab_size))
        super().__init__(inputs, self.tree(np.ones(vocab_size, np.int64)), bias)

    def tree(self, counts: Ints) -> Hierarchy:
        """Build the tree for words with these frequencies (V,), or at random, drawn by torch's generator."""
        if self.huffman:
            return huffman(counts, self.arity)
        order = torch.randperm(len(counts)).numpy()
        return complete_tree(spread_words(order, self.arity), self.arity)

    def learn(self, text: NDArray[np.integer]) -> None:
        counts = np.bincount(text, minlength=self.vocab_size)
        self.set_hierarchy(self.tree(counts))
        depths = (self.paths >= 0).sum(1).cpu().numpy()
        log.info(
            "tree of arity %d: a word of the training text is %.2f steps deep, the deepest word %d",
            self.arity, (depths * counts).sum() / counts.sum(), depths.max(),
        )  # fmt: skip


def three_level_arity(vocab_size: int) -> int:
    """The smallest arity for which a tree of three levels has a leaf for each word, and 5% more."""
    return max(2, math.ceil(math.pow(SPARE * vocab_size, 1 / LEVELS)))


def tree_depth(vocab_size: int, arity: int) -> int:
    """The number of levels of the smallest tree of equal depth with a leaf for each word."""
    depth, leaves = 1, arity
    while leaves < vocab_size:
        depth, leaves = depth + 1, leaves * arity
    return depth


def spread_words(order: Ints, arity: int) -> Ints:
    """Spread words, in the given order (V,), evenly over the leaves of a tree of equal depth; returns the
    leaf of each word (V,)."""
    leaves = arity ** tree_depth(len(order), arity)
    codes = np.empty(len(order), np.int64)
    codes[order] = np.arange(len(order)) * leaves // len(order)
    return codes


def complete_tree(codes: Ints, arity: int) -> Hierarchy:
    """Build the tree of equal depth in which word w has leaf codes[w], counted from the left. `codes` (V,).
    Row r of the matrix leads to node r + 1, or to a leaf on the last level."""
    depth = tree_depth(len(codes), arity)
    nodes = sum(int(arity**level) for level in range(depth))
    return Hierarchy(codes + nodes - 1, np.arange(nodes) - 1, np.arange(nodes + 1) * arity)


def huffman(counts: Ints, arity: int) -> Hierarchy:
    """Build the Huffman tree of this arity, which has the least mean depth for words that occur `counts` (V,)
    times (Huffman 1952). Only one node, among the deepest, may have fewer children."""
    order = np.argsort(counts, kind="stable")
    weights = counts[order].tolist()
    first = (len(counts) - 2) % (arity - 1) + 2  # children of the first node
    leaves, merged = deque(zip(weights, order.tolist(), strict=True)), deque[tuple[int, int]]()
    children: list[list[int]] = []  # of each node: a word, or -1 - a node
    while len(leaves) + len(merged) > 1 or not children:
        node, weight = list[int](), 0
        for _ in range(min(first if not children else arity, len(leaves) + len(merged))):
            least = leaves if leaves and (not merged or leaves[0][0] <= merged[0][0]) else merged
            child = least.popleft()
            weight += child[0]
            node.append(child[1])
        merged.append((weight, -1 - len(children)))
        children.append(node)
    return number_levels(children, len(counts), arity)


def number_levels(children: list[list[int]], words: int, arity: int) -> Hierarchy:
    """Renumber the nodes of a tree level by level. `children`: for each node, the last of which is the root,
    its children: a word, or -1 - a node. Each node gets `arity` rows."""
    leaf, above = np.empty(words, np.int64), np.full(len(children), -1)
    order = [len(children) - 1]
    for number, node in enumerate(order):
        for row, child in enumerate(children[node], number * arity):
            if child >= 0:
                leaf[child] = row
            else:
                above[len(order)] = row
                order.append(-1 - child)
    return Hierarchy(leaf, above, np.arange(len(children) + 1) * arity)
