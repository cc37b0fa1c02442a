"""Draws from a fixed distribution in constant time: the alias method (Walker 1977; Vose 1991)."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def alias_table(probabilities: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each of V outcomes, the share of its column that is its own, and the outcome that has the rest:
    (V,) -> (V,), (V,)"""
    size = len(probabilities)
    share = probabilities * (size / probabilities.sum())
    other = np.arange(size)
    small = np.flatnonzero(share < 1).tolist()
    large = np.flatnonzero(share >= 1).tolist()
    while small and large:
        poor, rich = small.pop(), large[-1]
        other[poor] = rich
        share[rich] -= 1 - share[poor]
        if share[rich] < 1:
            small.append(large.pop())
    share[small + large] = 1  # but for rounding they are
    return share, other


def draw(share: Tensor, other: Tensor, count: int) -> Tensor:
    """Outcomes (count,) of a table, from torch's generator."""
    column = torch.randint(len(share), (count,), device=share.device)
    own = torch.rand(count, device=share.device, dtype=share.dtype) < share[column]
    return torch.where(own, column, other[column])
