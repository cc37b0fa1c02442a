"""What the attention of target words should be, from a word alignment: guided alignment (Chen et al. 2016;
Liu et al. 2016).

A target unit should look at the units of the source words that its word is linked to: these words equally,
and the units of a word equally. For `le chi@@ en` - `the do@@ g`, aligned 0-0 1-1:

    the   le 1
    do@@  chi@@ 1/2  en 1/2
    g     chi@@ 1/2  en 1/2

Words without links, and the end symbol, may look anywhere.
"""

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
    places: Tensor  # (K,) places of source units in their sentence, from 0
    shares: Tensor  # (K,) of a token's attention, times the weight of the whole in the cost

    def to(self, device: torch.device | str) -> "Guidance":
        """A copy on another device."""
        return Guidance(self.tokens.to(device), self.places.to(device), self.shares.to(device))


def unit_links(links: Links, source: Sequence[int], target: Sequence[int]) -> UnitLinks:
    """The links between the units of a pair. `source`, `target`: the number of the word of each unit."""
    units: dict[int, list[int]] = {}
    for unit, word in enumerate(source):
        units.setdefault(word, []).append(unit)
    linked: dict[int, list[int]] = {}
    for word, other in sorted(links):
        linked.setdefault(other, []).append(word)
    found = [
        (unit, place, len(linked[other]) * len(units[word]))
        for unit, other in enumerate(target)
        for word in linked.get(other, ())
        for place in units[word]
    ]
    return np.array(found, np.int64).reshape(-1, 3)


def guidance(
    pairs: Sequence[UnitLinks], sizes: Sequence[int], order: Sequence[int], weight: float
) -> Guidance:
    """The links of a batch. `pairs`: of its sentences; `sizes`, `order`: the layout of its targets, see
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
        places=torch.from_numpy(links[:, 1].copy()),
        shares=torch.from_numpy((weight / links[:, 2]).astype(np.float32)),
    )
