"""Batches by tokens: how pairs that are sorted by length are cut into batches of at most so many units."""

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from nmt.data.corpus import Corpus

Ints = NDArray[np.int64]


def mean_pairs(corpus: Corpus, tokens: int) -> int:
    """Pairs of an average batch, 1 or more: what the size of pools follows. It takes no look at the pairs."""
    pairs = len(corpus)
    units = max(int(offsets[-1]) for offsets in (corpus.source_offsets, corpus.target_offsets)) + pairs
    return max(1, tokens * pairs // max(1, units))


def ends(sizes: Ints, tokens: int) -> list[int]:
    """Where the batches of pairs end: as few batches as there can be of at most `tokens` units of either
    side, and these about alike, so that the last is no mere rest.

    sizes (2, n): units of each pair's source and target, end symbols included. A pair that is longer than
    `tokens` is a batch of its own.
    """
    totals = sizes.cumsum(1)
    most = full_ends(totals, tokens)
    if len(most) < 2:
        return most
    limits = range(-(-int(totals[:, -1].max()) // len(most)), tokens)
    alike = bisect_left(limits, True, key=lambda limit: len(full_ends(totals, limit)) <= len(most))
    return full_ends(totals, limits[alike]) if alike < len(limits) else most


def full_ends(totals: Ints, tokens: int) -> list[int]:
    """Where the batches end if each takes as many pairs as it can. totals (2, n): cumulated units."""
    found: list[int] = []
    done, count = [0, 0], totals.shape[1]
    end = 0
    while end < count:
        full = (
            int(total.searchsorted(before + tokens, "right"))
            for total, before in zip(totals, done, strict=True)
        )
        end = max(end + 1, min(full))
        done = totals[:, end - 1].tolist()
        found.append(end)
    return found
