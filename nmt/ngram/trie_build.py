"""Builds the trie of an n-gram model (nmt/ngram/trie.py): words in the order of their hashes, links between
contexts, code books.

M n-grams of one length, V words. Nodes of a model with M_1, M_2, ... n-grams are numbered by length, from 1
on; 0 is the empty context.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.io.mapped import MEMORY, ArrayStorage, blocks, count_values
from nmt.ngram.count_models import NgramModel, NgramOrder
from nmt.ngram.text_scorer import LN10, Floats, Ints
from nmt.ngram.trie import (
    BACKOFF,
    BACKOFF_BOOK,
    BASE,
    CHILDREN,
    COLUMNS,
    COUNT,
    FIELDS,
    FIRST,
    LINK,
    LOG_PROB,
    LOG_PROB_BOOK,
    SIZE,
    STATE,
    WIDTH,
    WORD,
    Trie,
    TrieModel,
    Words64,
    hash_word,
    pack_numbers,
)  # fmt: skip

BLOCK = 1 << 16  # records packed together: a multiple of 64, so that they fill whole words
MOST_BITS = 16  # of a quantized value
ROUNDS = 30  # of improving a code book
OUTSIDE = -50.0  # log10 below which values stand for p = 0 and get entries of their own


def by_hash(model: NgramModel, storage: ArrayStorage = MEMORY) -> NgramModel:
    """Sort the words of a model by their hashes, and renumber its n-grams accordingly. `storage`: of the new
    arrays. OSError if the disk is full."""
    hashes = np.array([hash_word(word) for word in model.words], np.uint64)
    order = np.array(
        sorted(range(len(hashes)), key=lambda word: (int(hashes[word]), model.words[word])), np.int64
    )
    V, rank = len(order), np.empty(len(order), np.int64)
    rank[order] = np.arange(V)
    first = model.levels[0]
    levels = [NgramOrder(keys=np.arange(V), log10=first.log10[order], backoff=first.backoff[order])]
    row = rank  # new row of each n-gram of the order below
    for level in model.levels[1:]:
        keys = storage.empty(len(level.keys), np.int64)
        for part in blocks(len(keys)):
            keys[part] = row[level.keys[part] // V] * V + rank[level.keys[part] % V]
        order, row = np.argsort(keys), storage.empty(len(keys), np.int64)
        for part in blocks(len(keys)):
            row[order[part]] = np.arange(part.start, part.stop)
        log10, backoff = (storage.take(values, order) for values in (level.log10, level.backoff))
        levels.append(NgramOrder(keys=storage.take(keys, order), log10=log10, backoff=backoff))
    return NgramModel([model.words[word] for word in np.argsort(rank)], levels)


@dataclass
class Links:
    """For each node, the longest context without its first word that can still matter, and whether the node
    can matter itself, as a state: (nodes,)"""

    link: NDArray[np.int64]
    is_state: NDArray[np.bool_]


def find_links(model: NgramModel, storage: ArrayStorage = MEMORY) -> Links:
    """Compute the links of all nodes. A context matters if it has a longer n-gram or a back-off weight, as in
    KenLM. `storage`: of the arrays. OSError if the disk is full."""
    first = np.cumsum([1, *(len(level.keys) for level in model.levels)])
    nodes, V = int(first[-1]), len(model.words)
    shorter, link = storage.empty(nodes, np.int64), storage.empty(nodes, np.int64)
    is_state = storage.empty(nodes, np.bool_)
    shorter[: first[1]] = link[: first[1]] = 0
    is_state[:] = False
    for n, level in enumerate(model.levels[1:], 1):
        for rows in blocks(len(level.keys), BLOCK):
            keys = level.keys[rows]
            parent = first[n - 1] + keys // V
            is_state[parent] = True
            here = slice(first[n] + rows.start, first[n] + rows.stop)
            shorter[here] = child(model, first, shorter, shorter[parent], keys % V)
    for n, level in enumerate(model.levels[:-1]):
        for rows in blocks(len(level.keys)):
            is_state[first[n] + rows.start : first[n] + rows.stop] |= level.backoff[rows] != 0
    for n in range(1, model.order):
        for rows in blocks(len(model.levels[n].keys)):
            here = slice(first[n] + rows.start, first[n] + rows.stop)
            below = shorter[here]
            link[here] = np.where(is_state[below], below, link[below])
    return Links(link, is_state)


def child(model: NgramModel, first: Ints, shorter: Ints, context: Ints, word: Ints) -> Ints:
    """Find the node of each context followed by its word or, if the model lacks that n-gram, the node of its
    longest suffix in the model: nodes of contexts (M,), word ids (M,) -> (M,)

    Nodes are numbered across all orders; 0 is the empty context. `first`: the first node of each order;
    `shorter`: for each node of the orders so far, the node of the n-gram without its first word.
    """
    V, children = len(model.words), np.full(len(word), -1, np.int64)
    context = context.copy()
    while (open_ := np.flatnonzero(children < 0)).size:
        here = context[open_]
        empty = here == 0
        children[open_[empty]] = word[open_[empty]] + 1
        level = np.searchsorted(first, here, "right")  # length of the context
        for n in np.unique(level[~empty]):
            rows = open_[(level == n) & ~empty]
            if n < model.order:
                matches = model.find(n + 1, (context[rows] - first[n - 1]) * V + word[rows])
                children[rows] = np.where(matches >= 0, matches + first[n], -1)
        context[open_] = shorter[here]
    return children


# ---- code books --------------------------------------------------------------------------------------------


def make_book(values: Floats, bits: int, storage: ArrayStorage = MEMORY) -> tuple[Floats, Ints]:
    """Choose a code book for log10 `values`, (M,). Returns its entries in increasing order, (B,), and the
    index of the entry that stands for each value, (M,). `storage`: of the indices. OSError if the disk is
    full.

    With `bits` 0, or if there are at most 2^bits distinct values, the entries are these values. Otherwise
    there are at most 2^bits entries. They begin as means of equally many values each (Federico and Bertoldi
    2006), and are moved to lower the squared error (Lloyd 1982). 0 and values that stand for p = 0 stay
    exact, in up to half of the entries."""
    distinct, counts = count_values(values)
    codes = storage.empty(len(values), np.int64)
    if not bits or len(distinct) <= 1 << bits:
        for rows in blocks(len(values)):
            codes[rows] = np.searchsorted(distinct, values[rows])
        return distinct, codes
    outside = (distinct == 0) | (distinct < OUTSIDE)
    fixed, usual, weights = distinct[outside][-(1 << bits - 1) :], distinct[~outside], counts[~outside]
    count_before = np.concatenate([[0], np.cumsum(weights)])
    sum_before = np.concatenate([[0.0], np.cumsum(usual * weights)])
    shares = np.linspace(0, count_before[-1], (1 << bits) - len(fixed) + 1)
    cuts = np.unique(np.searchsorted(count_before, shares))
    for _ in range(ROUNDS):
        means = np.diff(sum_before[cuts]) / np.diff(count_before[cuts])
        middle = np.searchsorted(usual, (means[1:] + means[:-1]) / 2)
        cuts = np.unique(np.concatenate([[0], middle, [len(usual)]]))
    means = np.diff(sum_before[cuts]) / np.diff(count_before[cuts])
    book = np.unique(np.concatenate([fixed, means]))
    if len(book) == 1:
        codes[:] = 0
        return book, codes
    for rows in blocks(len(values)):
        part = values[rows]
        above = np.clip(np.searchsorted(book, part), 1, len(book) - 1)
        below = book[above - 1]
        with np.errstate(invalid="ignore"):  # -inf - -inf
            codes[rows] = above - ((part == below) | (part - below <= book[above] - part))
    return book, codes


# ---- records -----------------------------------------------------------------------------------------------


class TrieBuilder:
    """The layout and code books of a model's trie, and its records, in blocks that need not fit in memory."""

    def __init__(self, model: NgramModel, bits: int, storage: ArrayStorage) -> None:
        """`model`: its words in the order of their hashes, see `by_hash`. `bits`: bits of a quantized log10 p
        or back-off of n-grams of two words and more; 0: exact. Unigrams are always exact. `storage`: of the
        arrays. OSError if the disk is full."""
        self.model, self.storage, self.links = model, storage, find_links(model, storage)
        self.codes: list[dict[int, Ints]] = []
        self.layout = np.zeros((model.order, COLUMNS), np.int64)
        books, first, base, entries = list[Floats](), 1, 0, 0
        for n, level in enumerate(model.levels):
            row, highest = self.layout[n], n + 1 == model.order
            row[FIRST], row[COUNT], row[BASE] = first, len(level.keys), base
            codes = {}
            for name, start, values in (
                (LOG_PROB, LOG_PROB_BOOK, level.log10), (BACKOFF, BACKOFF_BOOK, level.backoff)
            )[: 2 - highest]:  # fmt: skip
                book, codes[name] = make_book(values, bits if n else 0, storage)
                row[start], row[name + SIZE] = entries, (len(book) - 1).bit_length()
                entries += len(book)
                books.append(book)
            self.codes.append(codes)
            row[WORD + SIZE] = (len(model.words) - 1).bit_length() if n else 0
            row[STATE + SIZE] = not highest
            row[LINK + SIZE] = (
                int(self.layout[n - 1, FIRST] + self.layout[n - 1, COUNT]) if n else 0
            ).bit_length()
            row[CHILDREN + SIZE] = 0 if highest else len(model.levels[n + 1].keys).bit_length()
            for name in FIELDS:
                row[name], row[WIDTH] = row[WIDTH], row[WIDTH] + row[name + SIZE]
            first += len(level.keys)
            base += -(-(len(level.keys) + (not highest)) * int(row[WIDTH]) // 64) * 64
        self.books = np.concatenate(books)
        self.words = base // 64 + 1  # of 64 bits; the last is padding, so that every field may be read as two

    def record_blocks(self) -> Iterator[Words64]:
        """Yield the records of all lengths, in words of 64 bits, and at the end an unused word."""
        for n, level in enumerate(self.model.levels):
            for rows in blocks(len(level.keys) + (n + 1 < self.model.order), BLOCK):
                fields = self.fields(n, rows.start, rows.stop)
                yield pack_numbers(fields, rows.stop - rows.start, int(self.layout[n, WIDTH]))
        yield np.zeros(1, np.uint64)

    def fields(self, n: int, start: int, stop: int) -> list[tuple[Ints, int, int]]:
        """The fields of the records `start` to `stop` of length n + 1: values, first bit, size. After the
        last n-gram stands a record that only says where the last children end."""
        level, row, V = self.model.levels[n], self.layout[n], len(self.model.words)
        part = slice(int(row[FIRST]) + start, int(row[FIRST]) + min(stop, len(level.keys)))
        values = {name: codes[start:stop] for name, codes in self.codes[n].items()}
        values |= {
            WORD: level.keys[start:stop] % V,
            STATE: self.links.is_state[part].astype(np.int64),
            LINK: self.links.link[part],
        }
        if n + 1 < self.model.order:
            above = self.model.levels[n + 1].keys
            values[CHILDREN] = np.searchsorted(above, np.arange(start, stop) * V)
        return [
            (np.pad(value, (0, stop - start - len(value))), int(row[name]), int(row[name + SIZE]))
            for name, value in values.items()
            if row[name + SIZE]
        ]

    def trie(self) -> Trie:
        """The arrays of the trie. OSError if the disk is full."""
        records, end = self.storage.empty(self.words, np.uint64), 0
        for block in self.record_blocks():
            records[end : end + len(block)] = block
            end += len(block)
        return Trie(records, self.books, self.layout)

    def upper_bounds(self) -> Floats:
        """An upper bound of the natural log p of each word in any context, as the trie has it: (V,)"""
        most = np.full(len(self.model.words), -np.inf)
        highest_weight = 0.0
        for n, (level, codes) in enumerate(zip(self.model.levels, self.codes, strict=True)):
            for rows in blocks(len(level.keys)):
                log10 = self.books[self.layout[n, LOG_PROB_BOOK] + codes[LOG_PROB][rows]]
                np.maximum.at(most, level.keys[rows] % len(most), log10)
            if BACKOFF in codes:  # each value of a code book stands for a weight
                first = self.layout[n, BACKOFF_BOOK]
                weights = self.books[first : first + 1 + codes[BACKOFF].max(initial=0)]
                highest_weight = max(highest_weight, float(weights.max(initial=0.0)))
        # With a back-off weight above 1, the stored probabilities are no bound.
        return np.zeros(len(most)) if highest_weight > 0 else most * LN10


def compile_model(model: NgramModel, bits: int = 0, storage: ArrayStorage = MEMORY) -> TrieModel:
    """Build the trie of a model. `bits`, `storage`: see TrieBuilder. OSError if the disk is full; ValueError
    if the model lacks <unk>, <s> or </s>."""
    renumbered = by_hash(model, storage)
    builder = TrieBuilder(renumbered, bits, storage)
    return TrieModel.of(renumbered.words, builder.trie(), builder.upper_bounds())
