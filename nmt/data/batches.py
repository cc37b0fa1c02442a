"""Packed batches: the tokens of all sentences step by step, the longest sentence first, without padding.

Three sentences of a batch, `ab.`, `c.`, `def.` (`.` is the end symbol), become

    step      0   1   2   3
    row 0     d   e   f   .        ids   = d a c  e b .  f .  .
    row 1     a   b   .            sizes = 3 3 2 1       (rows of each step)
    row 2     c   .                order = 2 0 1         (row 0 is sentence 2 of the batch, ...)
                                   rows  = 0 1 2  0 1 2  0 1  0

so that a recurrent layer works at step t on the first sizes[t] rows, a plain slice, and all other layers on
one matrix.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.data.binarized import Corpus
from nmt.data.binarized import Ids as Ids
from nmt.formats.pharaoh import Links
from nmt.text.vocab import BOS, EOS

# ---- shares of processes -----------------------------------------------------------------------------------
# The batches of an epoch that a process computes when several train together.
#
# An update consists of consecutive batches, which are dealt to the processes in turn. Updates of 4
# batches, by 3 processes:
#
#     batch      0  1  2  3   4  5  6  7   8  9
#     process    0  1  2  0   0  1  2  0   0  1


@dataclass(frozen=True)
class Share:
    """The batches that one of several processes computes."""

    start: int = 0  # number of the batch with which the first update begins
    update: int = 1  # number of batches of an update
    rank: int = 0  # number of this process, from 0
    size: int = 1  # number of processes

    def has(self, number: int) -> bool:
        """Whether this process computes batch `number` of the epoch, which must be `start` or more."""
        return (number - self.start) % self.update % self.size == self.rank


ALL_BATCHES = Share()  # all batches, for a process that trains alone


# ---- epochs ------------------------------------------------------------------------------------------------
# The pairs of an epoch when training corpora are over- or undersampled.
#
# An epoch takes c of the n pairs of a corpus: all of them ⌊c / n⌋ times, and c mod n of them, drawn anew in
# each epoch without replacement, once more. Two corpora, `abc` with c = 5 and `wxyz` with c = 2:
#
#     position   0  1  2  3  4  5  6
#     pair       a  b  c  c  a  z  x
#
# The pairs of an epoch depend on seed and epoch alone. They take 4 bytes of memory for each position, and for
# each pair drawn.

DRAWN_PAIRS = 1  # distinguishes the random generators of draws from those of the shuffling of pools


class EpochPairs:
    """The pairs of one epoch. `sizes`: pairs of each corpus; `counts`: how many an epoch takes from each."""

    def __init__(self, sizes: Sequence[int], counts: Sequence[int], seed: int, epoch: int) -> None:
        self.plain = list(sizes) == list(counts)
        self.sizes = np.array(sizes, np.int64)
        self.starts = np.cumsum([0, *sizes])
        self.corpus_starts = np.cumsum([0, *counts])
        self.drawn = [
            draw_pairs(size, count % size, [seed, epoch, index, DRAWN_PAIRS])
            for index, (size, count) in enumerate(zip(sizes, counts, strict=True))
        ]

    def rows(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Corpus rows of the pairs at these positions of the epoch: (n,) -> (n,)"""
        if self.plain:
            return positions
        corpus = np.searchsorted(self.corpus_starts, positions, side="right") - 1
        rows: NDArray[np.int64] = positions - self.corpus_starts[corpus]
        for number in np.unique(corpus):
            here = corpus == number
            size, drawn = self.sizes[number], self.drawn[number]
            inside = rows[here]
            beyond = inside - (self.corpus_starts[number + 1] - self.corpus_starts[number] - len(drawn))
            inside = np.where(beyond < 0, inside % size, inside)
            inside[beyond >= 0] = drawn[beyond[beyond >= 0]]
            rows[here] = self.starts[number] + inside
        return rows


def draw_pairs(size: int, count: int, seed: Sequence[int]) -> NDArray[np.integer]:
    """Draw `count` distinct numbers below `size`, in random order: (count,)"""
    if not count:
        return np.zeros(0, np.int32)
    numbers = shuffled_pairs(size, np.random.default_rng(seed))
    return numbers[:count].copy()


def shuffled_pairs(size: int, random: np.random.Generator) -> NDArray[np.integer]:
    """The numbers below `size` in random order, (size,): int32 if they fit, otherwise int64."""
    kind: type[np.integer] = np.int32 if size <= np.iinfo(np.int32).max else np.int64
    numbers: NDArray[np.integer] = np.arange(size, dtype=kind)
    random.shuffle(numbers)
    return numbers


# ---- token batches -----------------------------------------------------------------------------------------
# Batches by tokens: sorted pairs are cut into batches of a maximum number of units.

Ints = NDArray[np.int64]


def mean_pairs(corpus: Corpus, tokens: int) -> int:
    """Mean number of pairs, at least 1, in a batch of `tokens` units, from the size of the corpus alone.
    Determines the size of pools."""
    pairs = len(corpus)
    units = max(int(offsets[-1]) for offsets in (corpus.source_offsets, corpus.target_offsets)) + pairs
    return max(1, tokens * pairs // max(1, units))


def batch_ends(sizes: Ints, tokens: int) -> list[int]:
    """Cut sorted pairs into the fewest batches of at most `tokens` units on either side; returns the end of
    each batch, exclusive. Batches are of about equal size, so that the last one is not a small remainder.

    sizes (2, n): units of each pair's source and target, including end symbols. A pair longer than `tokens`
    is a batch of its own.
    """
    totals = sizes.cumsum(1)
    ends = full_batch_ends(totals, tokens)
    if len(ends) < 2:
        return ends
    limits = range(-(-int(totals[:, -1].max()) // len(ends)), tokens)
    index = bisect_left(limits, True, key=lambda limit: len(full_batch_ends(totals, limit)) <= len(ends))
    return full_batch_ends(totals, limits[index]) if index < len(limits) else ends


def full_batch_ends(totals: Ints, tokens: int) -> list[int]:
    """The end of each batch, exclusive, if each batch takes as many pairs as fit into `tokens` units on
    either side. totals (2, n): cumulative sums of units."""
    ends: list[int] = []
    done, count = [0, 0], totals.shape[1]
    end = 0
    while end < count:
        full = (
            int(total.searchsorted(used + tokens, "right")) for total, used in zip(totals, done, strict=True)
        )
        end = max(end + 1, min(full))
        done = totals[:, end - 1].tolist()
        ends.append(end)
    return ends


# ---- batches -----------------------------------------------------------------------------------------------

Cut = Callable[[Ids, Ids, str], tuple[Ids, Ids]]  # see BatchStream


@dataclass
class TensorFields:
    """Base class of a batch, whose fields are vectors of 64-bit integers, batches, and what has no device."""

    def parts(self) -> "list[tuple[str, Tensor | TensorFields]]":
        """Names and values of the fields that are tensors or batches."""
        named = [(item.name, getattr(self, item.name)) for item in fields(self)]
        return [(name, part) for name, part in named if isinstance(part, Tensor | TensorFields)]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the fields, in their order, those of batches among them."""
        groups = [[part] if isinstance(part, Tensor) else part.tensors for _, part in self.parts()]
        return tuple(chain.from_iterable(groups))

    def of_tensors(self, tensors: Iterable[Tensor]) -> Self:
        """A batch of the same shape with other `tensors`."""
        rest = iter(tensors)
        changed = {
            name: next(rest) if isinstance(part, Tensor) else part.of_tensors(rest)
            for name, part in self.parts()
        }
        return replace(self, **changed)

    def to(self, device: torch.device | str) -> Self:
        """A copy on another device."""
        return self.of_tensors(copy_tensors(self.tensors, device))


@dataclass
class Packed(TensorFields):
    """N tokens of B sentences as in the module's docstring. ids[last] are the end symbols, row by row."""

    ids: Tensor  # (N,) token ids
    sizes: list[int]  # number of rows of each step; sums to N
    order: Tensor  # (B,) sentence of each row
    rows: Tensor  # (N,) row of each token
    last: Tensor  # (B,) index of the last token of each row
    steps: Tensor  # (N,) step of each token
    starts: Tensor  # (T,) index of the first token of each step
    padded: bool = False  # whether sentences are followed by tokens that do not belong to them, see `pad`

    @property
    def lengths(self) -> Tensor:
        """Tokens of each row, non-increasing, those of padding not counted: (B,)"""
        return self.steps[self.last] + 1

    def reversed_order(self, fixed: int = 0) -> Tensor:
        """Indices (N,) that reverse each sentence except its last `fixed` tokens: ids[reversed_order()] are
        the tokens in that order."""
        steps, last = self.steps, (self.lengths - 1 - fixed)[self.rows]
        return self.starts[torch.where(steps <= last, last - steps, steps)] + self.rows

    def pad(self, steps: int, sentences: int) -> "Packed":
        """A batch on the CPU in a shape that other batches share: as many `sentences`, the added ones of a
        single end symbol, all of them followed by end symbols to as many `steps`. Only `lengths`, `last` and
        what follows from them tell the sentences from the padding."""
        T, B = steps, sentences
        ids = self.ids.new_full((T, B), EOS)
        ids[self.steps, self.rows] = self.ids
        added = torch.arange(len(self.order), B)
        lengths = torch.cat([self.lengths, torch.ones_like(added)])
        rows = torch.arange(B)
        return Packed(
            ids=ids.flatten(),
            sizes=[B] * T,
            order=torch.cat([self.order, added]),
            rows=rows.repeat(T),
            last=(lengths - 1) * B + rows,
            steps=torch.arange(T).repeat_interleave(B),
            starts=torch.arange(T) * B,
            padded=True,
        )

    def grid(self, values: Tensor, rows: Tensor | None = None) -> Tensor:
        """Lay out values of the tokens, (N, K), as a grid padded with zeros: (B, T, K). Sentence i of the
        batch is row i of the grid, or with `rows` (B,) row rows[i]."""
        B, T = len(self.order), len(self.sizes)
        row = self.order if rows is None else rows[self.order]
        empty = values.new_zeros(B * T, values.shape[1])
        return empty.index_copy(0, row[self.rows] * T + self.steps, values).view(B, T, -1)

    def split(self, values: Tensor) -> list[Tensor]:
        """Values of the tokens, (N, ...), as one tensor per sentence, in the order of the batch."""
        parts = torch.split(values[torch.argsort(self.rows, stable=True)], self.lengths.tolist())
        result: list[Tensor] = [values[:0]] * len(self.order)
        for part, sentence in zip(parts, self.order.tolist(), strict=True):
            result[sentence] = part
        return result


def copy_tensors(tensors: Sequence[Tensor], device: torch.device | str) -> list[Tensor]:
    """Copy vectors of 64-bit integers to a device; to a GPU all at once, without waiting for it."""
    if torch.device(device).type == "cpu" or tensors[0].device.type != "cpu":
        return [tensor.to(device) for tensor in tensors]
    return list(pinned(tensors).to(device, non_blocking=True).split(list(map(len, tensors))))


def pinned(tensors: Sequence[Tensor]) -> Tensor:
    """Vectors on the CPU one after the other, in memory that a GPU reads by itself."""
    return torch.cat(list(tensors)).pin_memory()


@dataclass
class Guidance:
    """The K links of a batch between target tokens and source units."""

    tokens: Tensor  # (K,) target tokens in packed order
    positions: Tensor  # (K,) positions of source units in their sentence, from 0
    shares: Tensor  # (K,) shares of a token's attention, times the weight of guidance in the cost

    def to(self, device: torch.device | str) -> "Guidance":
        return Guidance(self.tokens.to(device), self.positions.to(device), self.shares.to(device))


@dataclass
class Batch(TensorFields):
    """Pairs of sentences. `previous`: for each token of `target` the token before it; <s> before the first.
    `guidance`: the attention to train towards, for guided alignment."""

    source: Packed
    target: Packed
    previous: Tensor  # (N_target,)
    guidance: Guidance | None = None
    counted: Tensor | None = None  # (N_target,) 1 for a token of the target, 0 for padding; None: all count

    def to(self, device: torch.device | str) -> "Batch":
        return replace(super().to(device), guidance=self.guidance and self.guidance.to(device))

    def pad(self, source_steps: int, target_steps: int, sentences: int) -> "Batch":
        """A batch on the CPU in a shape that other batches share, see `Packed.pad`. Its cost is that of this
        batch for a model that leaves out what is not `counted`. Without guidance."""
        target = self.target.pad(target_steps, sentences)
        previous = torch.full_like(target.ids, EOS).view(target_steps, sentences)
        counted = torch.zeros_like(previous)
        previous[0] = BOS
        previous[self.target.steps, self.target.rows] = self.previous
        counted[self.target.steps, self.target.rows] = 1
        return Batch(
            source=self.source.pad(source_steps, sentences),
            target=target,
            previous=previous.flatten(),
            counted=counted.flatten(),
        )

    @property
    def sentences(self) -> int:
        return len(self.source.order)

    @property
    def target_tokens(self) -> int:
        return len(self.target.ids)

    @property
    def tokens(self) -> int:
        """Tokens of the side that has more of them, end symbols included."""
        return max(len(self.source.ids), len(self.target.ids))

    @property
    def longest(self) -> int:
        """Tokens of the longest sentence of either side."""
        return max(len(self.source.sizes), len(self.target.sizes))


def pack(sentences: Sequence[Ids]) -> Packed:
    """Pack one or more non-empty sentences of ids, longest first; those of equal length keep their order."""
    lengths = np.array([len(sentence) for sentence in sentences])
    order = np.argsort(-lengths, kind="stable")
    lengths = lengths[order]
    grid = np.zeros((lengths[0], len(sentences)), np.int64)
    for row, sentence in enumerate(order):
        grid[: lengths[row], row] = sentences[sentence]
    filled = np.arange(lengths[0])[:, None] < lengths  # (T, B)
    sizes = filled.sum(1)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    steps, rows = filled.nonzero()
    return Packed(
        ids=torch.from_numpy(grid[filled]),
        sizes=sizes.tolist(),
        order=torch.from_numpy(order),
        rows=torch.from_numpy(rows),
        last=torch.from_numpy(starts[lengths - 1] + np.arange(len(sentences))),
        steps=torch.from_numpy(steps),
        starts=torch.from_numpy(starts),
    )


def pack_source(sentences: Sequence[Ids]) -> Packed:
    """Pack sentences for an encoder, each with its end symbol. An empty sentence is the end symbol alone."""
    return pack([[*sentence, EOS] for sentence in sentences])


def make_batch(sources: Sequence[Ids], targets: Sequence[Ids]) -> Batch:
    """Build a batch of one pair or more from id sequences without start and end symbols."""
    target = pack([[*sentence, EOS] for sentence in targets])
    previous = pack([[BOS, *sentence] for sentence in targets]).ids
    return Batch(pack_source(sources), target, previous)


class BatchStream:
    """The batches of each epoch, determined by the seed.

    An epoch has each pair once, or as often as `counts` says. The pairs are shuffled; the pairs of every
    `pool` batches are sorted by length and cut into batches, and these are shuffled. Sorting gives the
    sentences of a batch similar lengths, so that steps have more rows.
    Memory holds one pool at a time, and four bytes per pair of an epoch.
    """

    def __init__(
        self,
        corpus: Corpus,
        batch_size: int,
        pool: int,
        seed: int,
        cut: Cut | None = None,
        counts: Sequence[int] = (),
        tokens: int = 0,
    ) -> None:
        """`cut` segments a pair anew each time it is read: (source ids, target ids, key) -> (source ids,
        target ids), where the key determines the random numbers. `pool`: batches whose pairs are sorted
        together. `counts`: number of pairs per epoch from each of `corpus.parts`. `tokens`: instead of
        `batch_size` pairs, a batch holds at most this many units on either side, including end symbols,
        counted before `cut`, or a single longer pair; 0: `batch_size` pairs."""
        self.corpus = corpus
        self.sizes = corpus.parts or (len(corpus),)
        self.counts = counts or self.sizes
        self.total = sum(self.counts)  # pairs of an epoch
        self.cut = cut
        self.tokens = tokens
        self.batch_size = mean_pairs(corpus, tokens) if tokens else batch_size
        self.pool = max(1, pool)
        self.seed = seed

    def count(self, epoch: int) -> int:
        if not self.tokens:
            return -(-self.total // self.batch_size)
        pairs = self.pairs(epoch)
        return sum(self.count_pool(pairs, positions) for _, positions in self.pools(epoch))

    def pairs(self, epoch: int) -> EpochPairs:
        """The pairs of an epoch, in the order of their corpora."""
        return EpochPairs(self.sizes, self.counts, self.seed, epoch)

    def pools(self, epoch: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield for each pool the number of pairs before it, and its positions (n,) in the epoch's pairs."""
        order = shuffled_pairs(self.total, np.random.default_rng([self.seed, epoch]))
        span = self.batch_size * self.pool
        for first in range(0, len(order), span):
            yield first, order[first : first + span].astype(np.int64)

    def count_pool(self, pairs: EpochPairs, positions: NDArray[np.int64]) -> int:
        """The number of batches of a pool, given the positions (n,) of its pairs in the epoch."""
        if not self.tokens:
            return -(-len(positions) // self.batch_size)
        rows = pairs.rows(positions)
        return len(
            full_batch_ends(self.corpus.sizes(rows[self.order_by_length(rows)]).cumsum(1), self.tokens)
        )

    def order_by_length(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Indices (n,) that sort pairs by the length of their longer side; ties keep their order. `rows`
        (n,): of the pairs in the corpus."""
        return np.argsort(self.corpus.sizes(rows).max(0), kind="stable")

    def cut_pool(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Split a pool into batches, shortest pairs first. `rows` (n,): of its pairs in the corpus. Returns
        for each batch the indices of its pairs in `rows`."""
        order = self.order_by_length(rows)
        if self.tokens:
            return np.split(order, batch_ends(self.corpus.sizes(rows[order]), self.tokens)[:-1])
        return [order[first : first + self.batch_size] for first in range(0, len(rows), self.batch_size)]

    def rows(self, epoch: int, start: int = 0, share: Share = ALL_BATCHES) -> Iterator[NDArray[np.int64]]:
        """Yield corpus rows of the pairs of each batch of an epoch from batch `start` on, for `share`."""
        return (rows for _, rows in self.positions_and_rows(epoch, start, share))

    def positions_and_rows(
        self, epoch: int, start: int, share: Share
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield for each batch from number `start` on that belongs to `share` the positions (n,) of its pairs
        in the epoch's pairs, and their rows (n,) in the corpus. The two are equal if an epoch has each pair
        once. Reads offsets only, no units."""
        pairs, done = self.pairs(epoch), 0
        for first, positions in self.pools(epoch):
            count = self.count_pool(pairs, positions)
            if done + count > start:
                rows = pairs.rows(positions)
                cuts = self.cut_pool(rows)
                # Each pool has a generator of its own, so that whole pools can be skipped.
                shuffle = np.random.default_rng([self.seed, epoch, first])
                for number, number_in_pool in enumerate(shuffle.permutation(count)):
                    if done + number >= start and share.has(done + number):
                        yield positions[cuts[number_in_pool]], rows[cuts[number_in_pool]]
            done += count

    def batches(self, epoch: int, start: int = 0, share: Share = ALL_BATCHES) -> Iterator[Batch]:
        """Yield the batches of an epoch from batch `start` on that `share` has; reads no units of others."""
        for positions, rows in self.positions_and_rows(epoch, start, share):
            pairs: list[tuple[Ids, Ids]] = [self.corpus.pair(int(row)) for row in rows]
            if self.cut:
                pairs = [
                    self.cut(*pair, f"{self.seed} {epoch} {position}")
                    for pair, position in zip(pairs, positions.tolist(), strict=True)
                ]
            yield make_batch([source for source, _ in pairs], [target for _, target in pairs])


# ---- guided attention --------------------------------------------------------------------------------------
# Guided alignment: the attention that target words should have, by a word alignment (Chen et al. 2016; Liu
# et al. 2016).
#
# A target unit should attend to the units of the source words that its word is linked to: equally to these
# words, and equally to the units of a word. For `le chi@@ en` - `the do@@ g`, aligned 0-0 1-1:
#
#     the   le 1
#     do@@  chi@@ 1/2  en 1/2
#     g     chi@@ 1/2  en 1/2
#
# The attention of words without links, and of the end symbol, is free.

UnitLinks = NDArray[np.int64]  # (K, 3) target unit, source unit, n: the target unit's share of it is 1 / n


def unit_links(links: Links, source: Sequence[int], target: Sequence[int]) -> UnitLinks:
    """Convert links between words to links between units. `source`, `target`: the word of each unit."""
    units: dict[int, list[int]] = {}
    for unit, word in enumerate(source):
        units.setdefault(word, []).append(unit)
    linked: dict[int, list[int]] = {}
    for source_word, target_word in sorted(links):
        linked.setdefault(target_word, []).append(source_word)
    rows = [
        (target_unit, source_unit, len(linked[target_word]) * len(units[source_word]))
        for target_unit, target_word in enumerate(target)
        for source_word in linked.get(target_word, ())
        for source_unit in units[source_word]
    ]
    return np.array(rows, np.int64).reshape(-1, 3)


def guidance(
    pairs: Sequence[UnitLinks], sizes: Sequence[int], order: Sequence[int], weight: float
) -> Guidance:
    """Collect the links of a batch. `pairs`: links of each sentence pair; `sizes`, `order`: the layout of the
    targets, as in `Packed`; `weight`: weight of the guidance in the cost."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    rows = np.argsort(np.asarray(order))  # of each sentence
    links = np.concatenate(
        [
            np.column_stack([starts[pair[:, 0]] + row, pair[:, 1:]])
            for row, pair in zip(rows, pairs, strict=True)
        ]
    )
    return Guidance(
        tokens=torch.from_numpy(links[:, 0].copy()),
        positions=torch.from_numpy(links[:, 1].copy()),
        shares=torch.from_numpy((weight / links[:, 2]).astype(np.float32)),
    )


def row_links(corpus: Corpus, row: int) -> UnitLinks:
    """Links of pair `row` in a corpus whose targets are links, three numbers each."""
    numbers = corpus.target[corpus.target_offsets[row] : corpus.target_offsets[row + 1]]
    return numbers.astype(np.int64).reshape(-1, 3)


class GuidedStream:
    """The batches of another stream, with the links of their pairs."""

    def __init__(self, stream: BatchStream, links: Corpus, weight: float) -> None:
        """`links`: of the stream's pairs, row by row; `weight`: weight of guidance in the cost."""
        self.stream, self.links, self.weight = stream, links, weight

    def count(self, epoch: int) -> int:
        return self.stream.count(epoch)

    def batches(self, epoch: int, start: int = 0, share: Share = ALL_BATCHES) -> Iterator[Batch]:
        part = epoch, start, share
        for rows, batch in zip(self.stream.rows(*part), self.stream.batches(*part), strict=True):
            pairs = [row_links(self.links, int(row)) for row in rows]
            target = batch.target
            yield replace(batch, guidance=guidance(pairs, target.sizes, target.order.tolist(), self.weight))
