"""BLEU as Moses' tuners compute it: words are split at blanks and keep their case; closest reference length,
no smoothing.

A row of statistics has 9 numbers, as `extractor` writes them: matches and totals of 1- to 4-grams in turn,
then the reference length.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ORDER = 4
COLUMNS = 2 * ORDER + 1
Stats = NDArray[np.float64]


class BleuReferences:
    """The references of one sentence."""

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        self.lengths = [len(reference) for reference in references]
        self.most: Counter[tuple[str, ...]] = Counter()  # largest count of each n-gram in any reference
        for reference in references:
            self.most |= grams(reference)

    def statistics(self, words: Sequence[str]) -> list[int]:
        """The 9 BLEU statistics of a hypothesis: matches and totals of 1- to 4-grams, reference length."""
        matches = [0] * ORDER
        for gram, count in grams(words).items():
            matches[len(gram) - 1] += min(count, self.most.get(gram, 0))
        row = []
        for order, match in enumerate(matches):
            row += [match, max(0, len(words) - order)]
        return [*row, min(self.lengths, key=lambda length: (abs(length - len(words)), length))]


def grams(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    """Count all 1- to 4-grams."""
    return Counter(
        tuple(words[at : at + order]) for order in range(1, ORDER + 1) for at in range(len(words) - order + 1)
    )


def bleu(sums: Stats) -> Stats:
    """BLEU, 0 to 1, of summed statistics: (..., 9) -> (...); 0 if an order has no match."""
    matches, totals = sums[..., 0 : 2 * ORDER : 2], sums[..., 1 : 2 * ORDER : 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(matches / totals).mean(-1) + np.minimum(0.0, 1 - sums[..., -1] / sums[..., 1])
        return np.where((matches > 0).all(-1), np.exp(logs), 0.0)
