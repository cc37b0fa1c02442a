"""What the live hypotheses of a search have written so far."""

import torch
from torch import Tensor


class History:
    """The words of all hypotheses as a tree: each row has its last node, each node its word, its parent and
    the source position it attended to most."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.parents: list[int] = []
        self.looks: list[int] = []

    def append(self, words: Tensor, parents: Tensor, looks: Tensor | None) -> Tensor:
        """Nodes for new words (K,) below their parents (K,), -1 for none -> their numbers (K,)"""
        first = len(self.words)
        self.words += words.tolist()
        self.parents += parents.tolist()
        self.looks += [-1] * len(words) if looks is None else looks.tolist()
        return torch.arange(first, len(self.words), device=words.device)

    def read(self, node: int) -> tuple[list[int], list[int]]:
        """Words and source positions from the first to this node."""
        words, looks = [], []
        while node >= 0:
            words.append(self.words[node])
            looks.append(self.looks[node])
            node = self.parents[node]
        return words[::-1], looks[::-1]

    def __len__(self) -> int:
        return len(self.words)

    def forget(self, nodes: Tensor) -> Tensor:
        """Keep only what leads to these nodes (K,) -> their new numbers (K,)"""
        kept: set[int] = set()
        for node in nodes.tolist():
            while node >= 0 and node not in kept:
                kept.add(node)
                node = self.parents[node]
        order = sorted(kept)  # parents come before their children
        new = {old: number for number, old in enumerate(order)} | {-1: -1}
        self.words = [self.words[old] for old in order]
        self.looks = [self.looks[old] for old in order]
        self.parents = [new[self.parents[old]] for old in order]
        return torch.tensor([new[node] for node in nodes.tolist()], dtype=torch.long, device=nodes.device)
