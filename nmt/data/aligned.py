"""Batches of word-aligned sentence pairs as windows (nmt/data/affiliation.py), which joint models read.

N: target words, end symbols included; n: order of the model, which reads n - 1 target words before each word;
w: width of the source window."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nmt.data.affiliation import AlignedPair, Shape, mirror_pair, source_windows, target_contexts
from nmt.data.batches import ALL_BATCHES, BatchStream, Share
from nmt.data.binarized import Corpus
from nmt.text.vocab import EOS


@dataclass
class AlignedBatch:
    """Contexts, windows and words of several pairs, word by word."""

    contexts: Tensor  # (N, n - 1) target words before
    windows: Tensor  # (N, w) source words around the one that is affiliated with the target word
    words: Tensor  # (N,)
    lengths: list[int]  # of each target, end symbol included

    def to(self, device: torch.device | str) -> "AlignedBatch":
        return AlignedBatch(
            self.contexts.to(device), self.windows.to(device), self.words.to(device), self.lengths
        )

    @property
    def sentences(self) -> int:
        return len(self.lengths)

    @property
    def target_tokens(self) -> int:
        return len(self.words)

    @property
    def tokens(self) -> int:
        """Tokens that count towards the size of a batch: target tokens alone."""
        return len(self.words)

    @property
    def longest(self) -> int:
        """Length of the longest target, including its end symbol."""
        return max(self.lengths)


def make_aligned_batch(pairs: Sequence[AlignedPair], shape: Shape) -> AlignedBatch:
    """Build a batch of one pair or more. `shape`: size and direction of the contexts. The target's end symbol
    is affiliated with the source's."""
    pairs = list(map(mirror_pair, pairs)) if shape.backward else pairs
    windows = [
        source_windows(pair.source, shape.window)[[*pair.affiliation, len(pair.source)]] for pair in pairs
    ]
    words: list[int] = [word for pair in pairs for word in (*pair.target, EOS)]
    return AlignedBatch(
        contexts=torch.from_numpy(np.concatenate([target_contexts(p.target, shape.order) for p in pairs])),
        windows=torch.from_numpy(np.concatenate(windows)),
        words=torch.tensor(words, dtype=torch.long),
        lengths=[len(pair.target) + 1 for pair in pairs],
    )


class AlignedStream(BatchStream):
    """The batches of each epoch: the pairs of `BatchStream`, whose arguments it has, but as windows. `corpus`
    must have affiliations; `shape`: size and direction of the contexts."""

    def __init__(
        self, corpus: Corpus, batch_size: int, pool: int, seed: int, shape: Shape, tokens: int = 0
    ) -> None:
        super().__init__(corpus, batch_size, pool, seed, tokens=tokens)
        self.shape = shape

    def batches(  # type: ignore[override]
        self, epoch: int, start: int = 0, share: Share = ALL_BATCHES
    ) -> Iterator[AlignedBatch]:
        for rows in self.rows(epoch, start, share):
            yield make_aligned_batch([aligned_pair(self.corpus, int(row)) for row in rows], self.shape)


def aligned_pair(corpus: Corpus, index: int) -> AlignedPair:
    """Pair number `index` of a corpus that has affiliations."""
    assert corpus.affiliation is not None
    source, target = corpus.pair(index)
    affiliation = corpus.affiliation[corpus.target_offsets[index] : corpus.target_offsets[index + 1]]
    return AlignedPair(source, target, affiliation.astype(np.int64))
