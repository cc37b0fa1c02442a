"""Batches that say what their attention should be; see nmt/data/guidance.py."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nmt.data.batches import Batch, BatchStream
from nmt.data.corpus import Corpus
from nmt.data.guidance import UnitLinks, guidance
from nmt.data.shares import WHOLE, Share


def links_of(corpus: Corpus, row: int) -> UnitLinks:
    """The links of a pair, from a corpus whose targets are links, three numbers each."""
    found = corpus.target[corpus.target_offsets[row] : corpus.target_offsets[row + 1]]
    return found.astype(np.int64).reshape(-1, 3)


class GuidedStream:
    """The batches of another stream, with the links of their pairs."""

    def __init__(self, stream: BatchStream, links: Corpus, weight: float) -> None:
        """`links`: of the pairs of the stream's corpus, row by row; `weight`: of their cost."""
        self.stream, self.links, self.weight = stream, links, weight

    def count(self, epoch: int) -> int:
        """Batches of an epoch."""
        return self.stream.count(epoch)

    def batches(self, epoch: int, start: int = 0, share: Share = WHOLE) -> Iterator[Batch]:
        """The batches of an epoch, from batch `start` on, of a share."""
        place = epoch, start, share
        for rows, batch in zip(self.stream.rows(*place), self.stream.batches(*place), strict=True):
            pairs = [links_of(self.links, int(row)) for row in rows]
            target = batch.target
            yield replace(batch, guidance=guidance(pairs, target.sizes, target.order.tolist(), self.weight))
