"""Guided alignment: the attention that target words should have, by a word alignment (Chen et al. 2016; Liu
et al. 2016).

A target unit should attend to the units of the source words that its word is linked to: equally to these
words, and equally to the units of a word. For `le chi@@ en` - `the do@@ g`, aligned 0-0 1-1:

    the   le 1
    do@@  chi@@ 1/2  en 1/2
    g     chi@@ 1/2  en 1/2

The attention of words without links, and of the end symbol, is free."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.formats.pharaoh import Links

UnitLinks = NDArray[np.int64]  # (K, 3) target unit, source unit, n: the target unit's share of it is 1 / n


@dataclass
class Guidance:
    """The K links of a batch between target tokens and source words."""

    tokens: Tensor  # (K,) target tokens in packed order
    positions: Tensor  # (K,) positions of source units in their sentence, from 0
    shares: Tensor  # (K,) shares of a token's attention, times the weight of guidance in the cost

    def to(self, device: torch.device | str) -> "Guidance":
        """A copy on another device."""
        return Guidance(self.tokens.to(device), self.positions.to(device), self.shares.to(device))


def unit_links(links: Links, source: Sequence[int], target: Sequence[int]) -> UnitLinks:
    """Links between the units of a pair. `source`, `target`: for each unit the index of its word."""
    units: dict[int, list[int]] = {}
    for unit, word in enumerate(source):
        units.setdefault(word, []).append(unit)
    linked: dict[int, list[int]] = {}
    for word, target_word in sorted(links):
        linked.setdefault(target_word, []).append(word)
    rows = [
        (unit, source_unit, len(linked[target_unit]) * len(units[word]))
        for unit, target_unit in enumerate(target)
        for word in linked.get(target_unit, ())
        for source_unit in units[word]
    ]
    return np.array(rows, np.int64).reshape(-1, 3)


def guidance(
    pairs: Sequence[UnitLinks], sizes: Sequence[int], order: Sequence[int], weight: float
) -> Guidance:
    """Links of a batch. `pairs`: links of each sentence; `sizes`, `order`: the layout of its targets, as in
    nmt.data.batches.Packed."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    rows = np.argsort(np.asarray(order))  # of each sentence
    links = np.concatenate(
        [
            np.column_stack([starts[pair[:, 0]] + row, pair[:, 1:]])
            for row, pair in zip(rows, pairs, strict=True)
        ]
    )
    return Guidance(
        tokens=torch.from_numpy(links[:, 0].copy()),
        positions=torch.from_numpy(links[:, 1].copy()),
        shares=torch.from_numpy((weight / links[:, 2]).astype(np.float32)),
    )
