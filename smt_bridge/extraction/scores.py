"""The scores of the tables: phi in both directions, with Moses' two kinds of smoothing, and reordering
probabilities."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
MOST = 10  # larger counts are not discounted by Good-Turing


@dataclass
class Totals:
    """What smoothing needs to know of all pairs."""

    pairs: int = 0
    # How many pairs occur c times: (MOST + 2,)
    counts_of_counts: Int64s = field(default_factory=lambda: np.zeros(MOST + 2, np.int64))

    def add(self, count: Int64s) -> None:
        """Add pairs by their counts: (P,)"""
        held = np.bincount(np.minimum(count, MOST + 2), minlength=MOST + 3)[: MOST + 2]
        self.counts_of_counts = self.counts_of_counts + held
        self.pairs += len(count)

    def good_turing(self) -> Floats:
        """The factor of each count up to MOST: (c + 1) n[c + 1] / (c n[c]), at most 1, and 1 where a count of
        counts is 0."""
        n = self.counts_of_counts.astype(np.float64)
        factor = np.ones(MOST + 1)
        for c in range(1, MOST + 1):
            if n[c] and n[c + 1]:
                factor[c] = min(1.0, (c + 1) * n[c + 1] / (c * n[c]))
        return factor

    def kneser_ney(self) -> Floats:
        """The discounts of counts 1, 2 and more (Chen and Goodman 1998), 0 where a count of counts is 0."""
        n = self.counts_of_counts.astype(np.float64)
        if not n[1:5].all():
            return np.zeros(4)
        y = n[1] / (n[1] + 2 * n[2])
        discounts = [0.0, *(c - (c + 1) * y * n[c + 1] / n[c] for c in (1, 2, 3))]
        return np.asarray(np.clip(discounts, 0.0, [0, 1, 2, 3]))


@dataclass
class Counts:
    """How often each pair, its target and its source were extracted, and how many different partners these
    two have: (P,) each."""

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
        # The discounted mass is redistributed in proportion to the numbers of partners of both sides.
        adjusted = (
            joint - discount + discount * counts.target_partners * counts.source_partners / totals.pairs
        )
        return adjusted / counts.target, adjusted / counts.source
    return joint / counts.target, joint / counts.source


HALF = 0.5  # added to each orientation's count


def orientation_scores(ways: Int64s) -> Floats:
    """(c + 0.5) / (Σ c + 1.5) of monotone, swap and other, to both sides: (P, 6) -> (P, 6)"""
    parts = ways.reshape(-1, 2, 3)
    return np.asarray(((parts + HALF) / (parts.sum(2, keepdims=True) + 3 * HALF)).reshape(-1, 6))
