"""Group sentences by a number and score each group: BLEU of sentences of like length, of like numbers of unknown words ..."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nmt.metrics import SentenceStatistics


@dataclass
class Bucket:
    """Sentences with first <= key <= last, drawn at `key`."""

    key: int
    first: int
    last: int
    sentences: int
    bleu: float
    ratio: float  # words of the hypotheses over words of the references, as BLEU counts them


def sliding(keys: Sequence[int], statistics: SentenceStatistics, window: int, least: int = 1) -> list[Bucket]:
    """One bucket for each key from the smallest to the largest: `window` neighbouring keys, key - window // 2 being the first.

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
        count = int(which.sum())
        if count < max(1, least):
            continue
        hypothesis, reference = statistics.rows[which][:, 8:].sum(0).tolist()
        buckets.append(Bucket(key, first, last, count, statistics.bleu(which).score, hypothesis / reference if reference else 0.0))
    return buckets
