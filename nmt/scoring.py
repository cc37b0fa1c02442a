"""log p(target | source) of given pairs: natural logarithm, the end symbol included, many pairs at a time."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from nmt.data.batches import Batch, Ids, make_batch

BATCH = 128  # pairs in a batch


class PairModel(Protocol):
    @property
    def device(self) -> torch.device: ...

    def score(self, batch: Batch) -> Tensor:
        """log p of each target word, in packed order: (N,)"""
        ...


def word_scores(model: PairModel, pairs: Sequence[tuple[Ids, Ids]], batch_size: int = BATCH) -> list[list[float]]:
    """log p of each word of each target and of its end symbol, in the order of the pairs. A sum is the log p of a pair."""
    results: list[list[float]] = [[] for _ in pairs]
    for rows in batches(pairs, batch_size):
        batch = make_batch([pairs[row][0] for row in rows], [pairs[row][1] for row in rows]).to(model.device)
        for row, scores in zip(rows, batch.target.split(model.score(batch).double()), strict=True):
            results[row] = scores.tolist()
    return results


def batches(pairs: Sequence[tuple[Ids, Ids]], size: int) -> Iterator[list[int]]:
    """Indices of pairs of like length, the longest first, so that too little memory shows at once."""
    order = sorted(range(len(pairs)), key=lambda row: (-len(pairs[row][1]), -len(pairs[row][0])))
    for start in range(0, len(order), size):
        yield order[start : start + size]
