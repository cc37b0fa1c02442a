"""Live hypotheses: their best continuations, and the words that they have so far."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.text.vocab import EOS

FOLD = 16  # most values of a column when `topk` folds rows of scores
PARTLY = 64  # least columns for each of the k best: torch's topk sorts all values when there are fewer


def topk(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of each row and their indices, best first, as by `torch.topk` in a third of its
    time: (R, V) -> (R, k) twice. When each row is folded into columns of up to 16 values, the k best are
    among the k columns with the largest maxima."""
    R, V = scores.shape
    fold = min(FOLD, V // (PARTLY * k))
    if fold < 2:
        return torch.topk(scores, k)
    columns = V // fold
    folded = scores[:, : columns * fold].unflatten(1, (fold, columns))
    best = folded.amax(1).topk(k).indices
    remainder = torch.arange(columns * fold, V, device=scores.device)
    indices = torch.cat(
        [
            (best[:, :, None] + columns * torch.arange(fold, device=scores.device)).flatten(1),
            remainder.expand(R, -1),
        ],
        1,
    )
    values, chosen = scores.gather(1, indices).topk(k)
    return values, indices.gather(1, chosen)


@dataclass
class Expansion:
    """The K best continuations of all sentences, by sentence, the best first. Each field is (K,)."""

    parent: Tensor  # row that it continues
    word: Tensor  # id
    total: Tensor  # natural log p of the hypothesis with this word
    ends: Tensor  # whether the word is the end symbol

    def select(self, rows: Tensor) -> "Expansion":
        """The continuations for which `rows` (K,) is true."""
        return Expansion(self.parent[rows], self.word[rows], self.total[rows], self.ends[rows])


def expand(log_probs: Tensor, totals: Tensor, sentence: Tensor, widths: Tensor) -> Expansion:
    """Choose the widths[i] best continuations of each sentence i, or all of probability above 0 if there are
    fewer. `log_probs` (R, V): natural log p of the next words; `totals` (R,): log p of the rows; `sentence`
    (R,): index of each row's sentence, whose rows are adjacent; `widths` (S,)."""
    per_row = min(int(widths[sentence].max()), log_probs.shape[1])  # no sentence can need more from one row
    return choose_expansion(*topk(log_probs, per_row), totals, sentence, widths)


def choose_expansion(
    values: Tensor, words: Tensor, totals: Tensor, sentence: Tensor, widths: Tensor
) -> Expansion:
    """Choose continuations as `expand` does, from the k best next words of each row, best first: `values` (R,
    k), their natural log p, and `words` (R, k), their ids."""
    R, per_row = values.shape
    _, group, sizes = sentence.unique_consecutive(return_inverse=True, return_counts=True)
    starts = sizes.cumsum(0) - sizes
    allowed = widths[sentence[starts]]
    width = int(allowed.max())
    slot = torch.arange(R, device=sentence.device) - starts[group]
    rows = int(sizes.max())
    grid = totals.new_full((len(sizes), rows, per_row), -math.inf)
    grid[group, slot] = totals[:, None] + values
    total, flat = grid.view(len(sizes), -1).topk(min(width, rows * per_row))
    chosen = (torch.arange(total.shape[1], device=total.device) < allowed[:, None]) & (total > -math.inf)
    parent = (starts[:, None] + flat // per_row).clamp_(max=R - 1)[chosen]
    word = words[parent, (flat % per_row)[chosen]]
    return Expansion(parent=parent, word=word, total=total[chosen], ends=word == EOS)


def refill_mask(best: Expansion, sentence: Tensor, widths: Tensor) -> Tensor:
    """Which continuations a beam that stays full takes, (K,): of sentence i those that end, if they are among
    its widths[i] best, and the widths[i] best others. `sentence` (R,): of each row; `widths` (S,)."""
    owner = sentence[best.parent]
    rank = rank_within(owner)  # among all continuations of the sentence; of those that go on, among these
    rank[~best.ends] = rank_within(owner[~best.ends])
    return rank < widths[owner]


def rank_within(groups: Tensor) -> Tensor:
    """The position of each entry among those of its group, whose entries are adjacent: (K,) -> (K,)"""
    _, group, sizes = groups.unique_consecutive(return_inverse=True, return_counts=True)
    first: Tensor = (sizes.cumsum(0) - sizes)[group]
    return torch.arange(len(groups), device=groups.device) - first


class History:
    """The words of all hypotheses as a tree: a row knows its last node; a node its word, its parent and the
    source position that it attended to most."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.parents: list[int] = []
        self.attended: list[int] = []

    def append(self, words: Tensor, parents: Tensor, attended: Tensor | None) -> Tensor:
        """Add nodes for new words (K,) below their parents (K,), -1 for none; returns the new nodes (K,).
        `attended` (K,): the source position of each, None without attention."""
        first = len(self.words)
        self.words += words.tolist()
        self.parents += parents.tolist()
        self.attended += [-1] * len(words) if attended is None else attended.tolist()
        return torch.arange(first, len(self.words), device=words.device)

    def read(self, node: int) -> tuple[list[int], list[int]]:
        """Words and attended source positions, -1 without attention, from the first node to this one."""
        words, attended = [], []
        while node >= 0:
            words.append(self.words[node])
            attended.append(self.attended[node])
            node = self.parents[node]
        return words[::-1], attended[::-1]

    def __len__(self) -> int:
        return len(self.words)

    def forget(self, nodes: Tensor) -> Tensor:
        """Drop all nodes that lead to none of `nodes` (K,). Returns the new numbers of these (K,)."""
        ancestors: set[int] = set()
        for node in nodes.tolist():
            while node >= 0 and node not in ancestors:
                ancestors.add(node)
                node = self.parents[node]
        order = sorted(ancestors)  # parents come before their children
        new = {old: number for number, old in enumerate(order)} | {-1: -1}
        self.words = [self.words[old] for old in order]
        self.attended = [self.attended[old] for old in order]
        self.parents = [new[self.parents[old]] for old in order]
        return torch.tensor([new[node] for node in nodes.tolist()], dtype=torch.long, device=nodes.device)
