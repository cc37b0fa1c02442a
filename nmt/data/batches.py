"""Batches of real tokens only: sentences are laid step by step, the longest first, so that nothing is ever
padded.

Three sentences of a batch, `ab.`, `c.`, `def.` (`.` is the end symbol), become

    step      0   1   2   3
    row 0     d   e   f   .        ids   = d a c  e b .  f .  .
    row 1     a   b   .            sizes = 3 3 2 1       (rows alive at each step)
    row 2     c   .                order = 2 0 1         (row 0 is sentence 2 of the batch, ...)
                                   rows  = 0 1 2  0 1 2  0 1  0

so a recurrent layer works at step t on the first sizes[t] rows, a plain slice, and all other layers on one
matrix.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.data.corpus import Corpus
from nmt.data.vocab import BOS, EOS

Ids = Sequence[int] | NDArray[np.integer]
Cut = Callable[[Ids, Ids, str], tuple[Ids, Ids]]


@dataclass
class Packed:
    """N tokens of B sentences; see the picture above. `last[k]` is where row k ends: ids[last] are the end
    symbols."""

    ids: Tensor  # (N,)
    sizes: list[int]  # one entry a step; sums to N
    order: Tensor  # (B,)
    rows: Tensor  # (N,)
    last: Tensor  # (B,)

    def to(self, device: torch.device | str) -> "Packed":
        tensors = (tensor.to(device) for tensor in (self.ids, self.order, self.rows, self.last))
        ids, order, rows, last = tensors
        return Packed(ids, self.sizes, order, rows, last)

    @property
    def steps(self) -> Tensor:
        """The step at which each token stands: (N,)"""
        return torch.arange(len(self.sizes), device=self.ids.device).repeat_interleave(
            torch.tensor(self.sizes, device=self.ids.device)
        )

    @property
    def lengths(self) -> Tensor:
        """Tokens of each row, never rising: (B,)"""
        return torch.bincount(self.rows, minlength=len(self.order))

    def turned(self, fixed: int = 0) -> Tensor:
        """Where the token stands that takes each place when every sentence is read backwards, its last
        `fixed` tokens staying: (N,)"""
        steps, last = self.steps, (self.lengths - 1 - fixed)[self.rows]
        starts = torch.tensor([0, *self.sizes[:-1]], device=self.ids.device).cumsum(0)
        return starts[torch.where(steps <= last, last - steps, steps)] + self.rows

    def grid(self, values: Tensor, places: Tensor | None = None) -> Tensor:
        """Values of the tokens, (N, K), a sentence beside the other, zeros behind its end: (B, T, K)

        Row i is sentence i of the batch, or stands at places[i].
        """
        B, T = len(self.order), len(self.sizes)
        place = self.order if places is None else places[self.order]
        empty = values.new_zeros(B * T, values.shape[1])
        return empty.index_copy(0, place[self.rows] * T + self.steps, values).view(B, T, -1)

    def split(self, values: Tensor) -> list[Tensor]:
        """Values of the tokens, (N, ...), as one tensor a sentence, in the order of the batch."""
        count = len(self.order)
        by_row = torch.argsort(self.rows, stable=True)
        lengths = torch.bincount(self.rows, minlength=count).tolist()
        parts = values[by_row].split(lengths)
        result: list[Tensor] = [values[:0]] * count
        for part, sentence in zip(parts, self.order.tolist(), strict=True):
            result[sentence] = part
        return result


@dataclass
class Batch:
    """Pairs of sentences. `previous` are the words before those of `target`: <s>, then the sentence without
    its last word."""

    source: Packed
    target: Packed
    previous: Tensor  # (N_target,)

    def to(self, device: torch.device | str) -> "Batch":
        return Batch(self.source.to(device), self.target.to(device), self.previous.to(device))

    @property
    def sentences(self) -> int:
        return len(self.source.order)

    @property
    def target_tokens(self) -> int:
        return len(self.target.ids)


def pack(sentences: Sequence[Ids]) -> Packed:
    """Lay out non-empty id sequences, longest first; equal lengths keep their order."""
    lengths = np.array([len(sentence) for sentence in sentences])
    order = np.argsort(-lengths, kind="stable")
    lengths = lengths[order]
    grid = np.zeros((lengths[0], len(sentences)), np.int64)
    for row, sentence in enumerate(order):
        grid[: lengths[row], row] = sentences[sentence]
    alive = np.arange(lengths[0])[:, None] < lengths  # (T, B)
    sizes = alive.sum(1)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rows = np.broadcast_to(np.arange(len(sentences)), alive.shape)[alive]
    return Packed(
        torch.from_numpy(grid[alive]),
        sizes.tolist(),
        torch.from_numpy(order),
        torch.from_numpy(rows.copy()),
        torch.from_numpy(starts[lengths - 1] + np.arange(len(sentences))),
    )


def pack_source(sentences: Sequence[Ids]) -> Packed:
    """The encoder reads up to and including the end symbol; an empty sentence is the end symbol alone."""
    return pack([[*sentence, EOS] for sentence in sentences])


def make_batch(sources: Sequence[Ids], targets: Sequence[Ids]) -> Batch:
    """Pairs of id sequences without start and end symbols."""
    target = pack([[*sentence, EOS] for sentence in targets])
    previous = pack([[BOS, *sentence] for sentence in targets]).ids
    return Batch(pack_source(sources), target, previous)


class BatchStream:
    """The batches of each epoch, the same for the same seed: shuffle, sort pools of `pool` batches by length,
    re-cut, shuffle.

    Sorting within pools cuts ragged steps and padding work (GroundHog pools 10 to 20 batches); a pool is also
    the unit that is held in memory.
    """

    def __init__(self, corpus: Corpus, batch_size: int, pool: int, seed: int, cut: Cut | None = None) -> None:
        """`cut` makes new units of a pair each time it is seen: (source, target, key) -> (source, target)"""
        self.corpus = corpus
        self.cut = cut
        self.batch_size = batch_size
        self.pool = max(1, pool)
        self.seed = seed

    def __len__(self) -> int:
        """Batches an epoch."""
        return -(-len(self.corpus) // self.batch_size)

    def rows(self, epoch: int, start: int = 0) -> Iterator[NDArray[np.int64]]:
        """Indices of the pairs of each batch of an epoch, from batch `start` on."""
        rng = np.random.default_rng([self.seed, epoch])
        order = rng.permutation(np.arange(len(self.corpus), dtype=np.int32))
        span = self.batch_size * self.pool
        for first in range(0, len(order), span):
            shuffle = np.random.default_rng(
                [self.seed, epoch, first]
            )  # of its own, so that whole pools can be skipped
            done = first // self.batch_size
            rows = order[first : first + span].astype(np.int64)
            count = -(-len(rows) // self.batch_size)
            if done + count <= start:
                continue
            rows = rows[np.argsort(self.corpus.lengths(rows), kind="stable")]
            cuts = [rows[at : at + self.batch_size] for at in range(0, len(rows), self.batch_size)]
            for number, place in enumerate(shuffle.permutation(count)):
                if done + number >= start:
                    yield cuts[place]

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        for rows in self.rows(epoch, start):
            pairs: list[tuple[Ids, Ids]] = [self.corpus.pair(int(row)) for row in rows]
            if self.cut:
                pairs = [
                    self.cut(*pair, f"{self.seed} {epoch} {row}")
                    for pair, row in zip(pairs, rows.tolist(), strict=True)
                ]
            yield make_batch([source for source, _ in pairs], [target for _, target in pairs])
