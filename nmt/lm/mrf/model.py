"""A chain-structured Markov random field over words (000, chapter 4).

A text is one ring of N symbols: the words of each line, then K separators, so that lines are independent.
Potentials join each symbol to the K symbols after it:

    log p(t) = Σ_i (θ0(t_i) + Σ_l θ^l(t_i, t_{i+l})) - A(θ),    θ^l(s, t) = U_s · W^l_t

A(θ), the log of the sum over all texts, is intractable; lifted.py bounds it. Given all others, a symbol
depends on its 2K neighbors only, and its probability is a softmax over the vocabulary.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.lm.mrf.config import MRFConfig
from nmt.text.vocab import EOS

Ids = Sequence[int]
NONE = -1  # in place of a neighbor: no potential
ROWS = 2048  # symbols whose probabilities are computed at a time


class ChainMRF(nn.Module):
    """The potentials. V words, K distances, D dimensions."""

    def __init__(self, config: MRFConfig, vocab_size: int) -> None:
        super().__init__()
        self.config, self.order = config, config.order
        width = config.dimension
        self.unary = nn.Parameter(torch.zeros(vocab_size))  # θ0, (V,)
        self.left = nn.Parameter(torch.empty(vocab_size, width))  # U, (V, D)
        self.right = nn.Parameter(torch.empty(config.order, vocab_size, width))  # W, (K, V, D)
        generator = torch.Generator().manual_seed(config.seed)
        for part in (self.left, self.right):
            nn.init.normal_(part, std=width**-0.5 / 4, generator=generator)

    def edges(self) -> Tensor:
        """θ^l(s, t): (K, V, V)"""
        return self.left @ self.right.transpose(1, 2)

    def conditional(self, before: Tensor, after: Tensor) -> Tensor:
        """log p of every word given its neighbors: (N, K), (N, K) -> (N, V). Neighbor l of `before` is l
        places before the word, and so for `after`; NONE where there is none."""
        left = self.left[before.clamp(min=0)] * (before >= 0)[..., None]  # (N, K, D)
        places = torch.arange(self.order, device=before.device)
        right = (self.right[places, after.clamp(min=0)] * (after >= 0)[..., None]).sum(1)  # (N, D)
        known = torch.cat([left.flatten(1), right], 1)  # (N, (K + 1) D)
        weights = torch.cat([*self.right, self.left], 1)  # (V, (K + 1) D)
        return torch.log_softmax(known @ weights.T + self.unary, -1)

    @torch.no_grad()
    def score_sentences(self, texts: Sequence[Ids], ends: bool = True) -> NDArray[np.float64]:
        """The pseudo-log-likelihood, Σ log p(t_i | its neighbors), natural, of each text: (texts,). A text is
        a ring of its own with K separators, which count; without `ends`, its words alone, with nothing around
        them."""
        found = [windows(ring([text], self.order) if ends else text, self.order, ends) for text in texts]
        sizes = [len(words) for words, _, _ in found]
        if not sum(sizes):
            return np.zeros(len(texts))
        words, before, after = (np.concatenate(part) for part in zip(*found, strict=True))
        # Lists repeat themselves: each distinct window is computed once.
        distinct, place = np.unique(np.column_stack([words, before, after]), axis=0, return_inverse=True)
        values = []
        for rows in torch.from_numpy(distinct).split(ROWS):
            log_probs = self.conditional(rows[:, 1 : 1 + self.order], rows[:, 1 + self.order :])
            values.append(log_probs.gather(1, rows[:, :1])[:, 0].double())
        owner = np.repeat(np.arange(len(texts)), sizes)
        return np.asarray(
            np.bincount(owner, torch.cat(values).numpy()[place.ravel()], len(texts)), np.float64
        )


def ring(lines: Sequence[Ids], order: int) -> list[int]:
    """The symbols of a text: each line, then K separators."""
    return [symbol for line in lines for symbol in [*line, *[EOS] * order]]


def windows(
    symbols: Ids, order: int, closed: bool = True
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The symbols, (N,), and the K before and after each, nearest first, (N, K). `closed`: the last is
    followed by the first; otherwise NONE is beyond both ends."""
    row = np.array(symbols, np.int64)
    places = np.arange(len(row))[:, None]
    steps = np.arange(1, order + 1)

    def at(places: NDArray[np.int64]) -> NDArray[np.int64]:
        if closed:
            return row[places % len(row)]
        inside = (places >= 0) & (places < len(row))
        return np.where(inside, row[np.clip(places, 0, max(0, len(row) - 1))], NONE) if len(row) else places

    return row, at(places - steps), at(places + steps)
