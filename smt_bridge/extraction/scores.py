"""Numbers of the tables: phi both ways, with Moses' two ways of smoothing, and reordering probabilities."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
MOST = 10  # counts above are not discounted by Good-Turing


@dataclass
class Totals:
    """Over all pairs: what smoothing needs."""

    pairs: int = 0
    counts_of_counts: Any = None  # (MOST + 2,): how many pairs occur c times

    def add(self, count: Int64s) -> None:
        held = np.bincount(np.minimum(count, MOST + 2), minlength=MOST + 3)[: MOST + 2]
        self.counts_of_counts = held if self.counts_of_counts is None else self.counts_of_counts + held
        self.pairs += len(count)

    def good_turing(self) -> Floats:
        """Factor of each count up to MOST: (c + 1) n[c + 1] / (c n[c]), at most 1, and 1 where it cannot be
        told."""
        n = self.counts_of_counts.astype(np.float64)
        factor = np.ones(MOST + 1)
        for c in range(1, MOST + 1):
            if n[c] and n[c + 1]:
                factor[c] = min(1.0, (c + 1) * n[c + 1] / (c * n[c]))
        return factor

    def kneser_ney(self) -> Floats:
        """Discounts of counts 1, 2 and more (Chen and Goodman 1998), none where they cannot be told."""
        n = self.counts_of_counts.astype(np.float64)
        if not n[1:5].all():
            return np.zeros(4)
        y = n[1] / (n[1] + 2 * n[2])
        return np.clip([0.0, *(c - (c + 1) * y * n[c + 1] / n[c] for c in (1, 2, 3))], 0.0, [0, 1, 2, 3])


@dataclass
class Counts:
    """Of each pair: how often it, its target and its source were extracted, and how many different partners
    these two have."""

    joint: Int64s
    target: Int64s
    source: Int64s
    target_partners: Int64s
    source_partners: Int64s


def phi(counts: Counts, totals: Totals, smoothing: str) -> tuple[Floats, Floats]:
    """p(source | target) and p(target | source), as Moses' consolidate computes them."""
    joint = counts.joint.astype(np.float64)
    if smoothing == "good-turing":
        factor = np.append(totals.good_turing(), 1.0)
        adjusted = joint * factor[np.minimum(counts.joint, MOST + 1)]
        return adjusted / counts.target, adjusted / counts.source
    if smoothing == "kneser-ney":
        discount = np.minimum(totals.kneser_ney()[np.minimum(counts.joint, 3)], joint - 0.01)
        # What is taken off is given back in proportion to how many partners both sides have.
        adjusted = (
            joint - discount + discount * counts.target_partners * counts.source_partners / totals.pairs
        )
        return adjusted / counts.target, adjusted / counts.source
    return joint / counts.target, joint / counts.source


HALF = 0.5  # added to each orientation's count


def orientation_scores(ways: Int64s) -> Floats:
    """(c + 0.5) / (Σ c + 1.5) of monotone, swap and other, before and behind: (P, 6) -> (P, 6)"""
    parts = ways.reshape(-1, 2, 3)
    return np.asarray(((parts + HALF) / (parts.sum(2, keepdims=True) + 3 * HALF)).reshape(-1, 6))
