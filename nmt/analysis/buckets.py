"""Group sentences by a number and score each group: BLEU of sentences of like length, of like numbers of
unknown words ..."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.systems import System


@dataclass
class Bucket:
    """Sentences with first <= key <= last, drawn at `key`."""

    key: int
    first: int
    last: int
    sentences: int
    bleu: float
    chrf: float
    ratio: float  # words of the hypotheses over words of the references, as BLEU counts them


def bucket(system: System, which: NDArray[np.bool_], key: int, first: int, last: int) -> Bucket:
    return Bucket(
        key,
        first,
        last,
        int(which.sum()),
        system.bleu(which).score,
        system.chrf(which).score,
        system.ratio(which),
    )


def sliding(keys: Sequence[int], system: System, window: int, least: int = 1) -> list[Bucket]:
    """One bucket for each key from the smallest to the largest: `window` neighbouring keys, key - window // 2
    being the first.

    Buckets of fewer than `least` sentences are left out; with window 1 each key stands alone.
    """
    values = np.asarray(keys)
    buckets: list[Bucket] = []
    if not len(values):
        return buckets
    for key in range(int(values.min()), int(values.max()) + 1):
        first = key - window // 2
        last = first + window - 1
        which = (values >= first) & (values <= last)
        if int(which.sum()) >= max(1, least):
            buckets.append(bucket(system, which, key, first, last))
    return buckets


def at_most(keys: Sequence[int], system: System, least: int = 1) -> list[Bucket]:
    """One bucket for each key from 0 to the largest: all sentences up to it (cumulative, as in Fig. 6.4c)."""
    values = np.asarray(keys)
    buckets = []
    for key in range(int(values.max(initial=-1)) + 1):
        which = values <= key
        if int(which.sum()) >= max(1, least):
            buckets.append(bucket(system, which, key, 0, key))
    return buckets
