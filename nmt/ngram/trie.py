"""A trie of n-grams in three arrays that can be mapped from files, as small as KenLM's (Heafield 2011); below
them the model of words that has such a trie, and its scores of texts.

The n-grams of each length lie in the order of their first n - 1 words, then of their last word, so that the
words that follow a context are neighbors: its children. An n-gram is a record of bits in `records`:

    last word | log10 p | whether it is a state | log10 back-off | link | first child

log10 p and back-off are indices into code books, which hold at most 2^bits values that stand for all, or
exactly those that occur. The link is the longest context without the first word that can still matter: the
state after an n-gram that is no state itself. The children of a record end where those of the next begin.
Records of one word lack the word, those of the longest n-grams what follows log10 p but the link.

Nodes are numbered by length, from 1 on; 0 is the empty context. V words, M n-grams of one length.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.io import files, manifest, mapped
from nmt.io.manifest import digest64
from nmt.lazy import LazyPart
from nmt.ngram.text_scorer import BOS, EOS, LN10, UNK, Floats, Ints, NgramTextScorer

# Columns of the layout, which has a row for each length: the number of the first node, how many there are,
# the first bit of the first record, the bits of a record; for each field its first bit in the record and its
# size; where the code books begin.
FIRST, COUNT, BASE, WIDTH = range(4)
WORD, LOG_PROB, STATE, BACKOFF, LINK, CHILDREN = range(4, 16, 2)
LOG_PROB_BOOK, BACKOFF_BOOK, COLUMNS = range(16, 19)
MOST_BITS = 62  # of a field
CHECKED = 1 << 20  # records that are checked together
COMPILED_CHECK_FROM = 4_000_000  # n-grams of a length that compiled code checks: loading numba takes a second
COMPILED_CHECK = LazyPart("nmt.ngram.trie_queries:compiled_check")
FIELDS = WORD, LOG_PROB, STATE, BACKOFF, LINK, CHILDREN
SIZE = 1  # column of a field's size, after that of its first bit

Words64 = NDArray[np.uint64]


class Trie(NamedTuple):
    """The arrays of a trie."""

    records: Words64  # fields of bits, the first ones lowest
    books: Floats  # code books, log10
    layout: Ints  # (order, COLUMNS)

    @property
    def order(self) -> int:
        return len(self.layout)

    def field(self, n: int, name: int, rows: Ints | None = None) -> Ints:
        """A field, such as WORD, of some n-grams of length n + 1, by default of all: (M,). `rows`: their
        indices among these. A record without the field has 0."""
        layout = self.layout[n]
        size = int(layout[name + SIZE])
        if rows is None:
            rows = np.arange(int(layout[COUNT]))
        bits = layout[BASE] + layout[name] + rows * layout[WIDTH]
        return read_numbers(self.records, bits, size)

    def children(self, n: int, rows: Ints) -> tuple[Ints, Ints]:
        """The first child of each n-gram and the end of its children, as rows of the next length."""
        return self.field(n, CHILDREN, rows), self.field(n, CHILDREN, rows + 1)

    def log10(self, n: int, rows: Ints | None = None) -> Floats:
        """log10 p of n-grams of length n + 1, by default of all: (M,)"""
        values: Floats = self.books[self.layout[n, LOG_PROB_BOOK] + self.field(n, LOG_PROB, rows)]
        return values

    def backoff(self, n: int, rows: Ints | None = None) -> Floats:
        """log10 back-off of n-grams of length n + 1, by default of all: (M,); 0 for the longest."""
        codes = self.field(n, BACKOFF, rows)
        if n + 1 == self.order:
            return np.zeros(len(codes))
        values: Floats = self.books[self.layout[n, BACKOFF_BOOK] + codes]
        return values

    def find(self, n: int, contexts: Ints, words: Ints) -> Ints:
        """Rows of n-grams of length n + 2, (K,), -1 for those that are not in the model. `contexts`: rows of
        their first n + 1 words, (K,); `words`: their last words, (K,)."""
        low, high = self.children(n, contexts)
        while (open_ := np.flatnonzero(low < high)).size:
            middle = (low[open_] + high[open_]) // 2
            here = self.field(n + 1, WORD, middle)
            below = here < words[open_]
            low[open_] = np.where(below, middle + 1, low[open_])
            high[open_] = np.where(below, high[open_], middle)
            ends = here == words[open_]
            low[open_[ends]] = high[open_[ends]] = middle[ends]
        rows = np.minimum(low, max(0, int(self.layout[n + 1, COUNT]) - 1))
        inside = low < self.children(n, contexts)[1]
        return np.where(inside & (self.field(n + 1, WORD, rows) == words), low, -1)

    def flat_scores(self, text: Ints, first: Ints) -> Floats:
        """Natural log p of each token given the earlier ones of its sentence: (N,); see `NgramTextScorer`."""
        total, weight = self.log10(0, text), np.zeros(len(text))
        position = np.arange(len(text))
        nodes = text  # of the n-gram of each length that ends at each token; -1 for none
        for n in range(1, self.order):
            context = np.concatenate([[-1], nodes[:-1]])
            context[position - first < n] = -1
            rows = np.flatnonzero(context >= 0)
            nodes = np.full(len(text), -1)
            nodes[rows] = self.find(n - 1, context[rows], text[rows])
            matched = nodes[rows] >= 0
            weight[rows] = np.where(matched, 0.0, weight[rows] + self.backoff(n - 1, context[rows]))
            total[rows[matched]] = self.log10(n, nodes[rows[matched]])
        return LN10 * (total + weight)

    def state_after(self, n: int, rows: Ints | None = None) -> Ints:
        """The number of the state after n-grams of length n + 1, by default after all: (M,)"""
        if rows is None:
            rows = np.arange(int(self.layout[n, COUNT]))
        is_state = self.field(n, STATE, rows) > 0
        return np.where(is_state, rows + self.layout[n, FIRST], self.field(n, LINK, rows))

    def is_sound(self, V: int) -> bool:
        """Whether all indices are within bounds, which compiled code does not check, and searches end. `V`:
        number of words of the model."""
        layout, bits = self.layout, 64 * (len(self.records) - 1)
        if layout.ndim != 2 or layout.shape[1] != COLUMNS or not len(layout) or (layout < 0).any():
            return False
        if layout[0, COUNT] != V or layout[0, FIRST] != 1 or self.records.ndim != 1 or self.books.ndim != 1:
            return False
        if len(layout) > 1 and (layout[1:, FIRST] != layout[:-1, FIRST] + layout[:-1, COUNT]).any():
            return False
        return all(self.is_sound_order(n, V, bits) for n in range(len(layout)))

    def is_sound_order(self, n: int, V: int, bits: int) -> bool:
        """Whether the fields of n-grams of length n + 1 are within bounds. `V`: number of words; `bits`: size
        of `records` without its last word, which is unused."""
        row, highest = self.layout[n], n + 1 == self.order
        numbers = row.tolist()  # Python's, whose sums do not overflow
        rows, width = numbers[COUNT] + (not highest), numbers[WIDTH]
        if (n and not width) or numbers[BASE] + rows * width > bits:
            return False
        for name in FIELDS:
            size = numbers[name + SIZE]
            if size > MOST_BITS or numbers[name] + size > width:
                return False
        if highest and (numbers[STATE + SIZE] or numbers[CHILDREN + SIZE]):
            return False
        below = int(self.layout[n - 1, FIRST] + self.layout[n - 1, COUNT]) if n else 1
        limits = np.zeros(COLUMNS, np.int64)
        limits[WORD], limits[LINK] = V, below
        limits[LOG_PROB] = len(self.books) - row[LOG_PROB_BOOK]
        limits[BACKOFF] = len(self.books) - row[BACKOFF_BOOK]
        limits[CHILDREN] = -1 if highest else self.layout[n + 1, COUNT]
        compiled = COMPILED_CHECK.load() if numbers[COUNT] >= COMPILED_CHECK_FROM else None
        is_within = compiled if callable(compiled) else are_within
        return all(
            is_within(self.records, row, limits, start, min(numbers[COUNT], start + CHECKED))
            for start in range(0, numbers[COUNT], CHECKED)
        )


def are_within(records: Words64, row: Ints, limits: Ints, start: int, stop: int) -> bool:
    """Whether the fields of the n-grams `start` to `stop` of one length are below their limits, and their
    children do not end before they begin, nor after the last n-gram of the next length. `row`: of the layout;
    `limits` (COLUMNS,): of each field; of CHILDREN the number of longer n-grams, -1 for the highest order."""

    def field(name: int, rows: Ints) -> Ints:
        return read_numbers(records, row[BASE] + row[name] + rows * row[WIDTH], int(row[name + SIZE]))

    rows = np.arange(start, stop)
    if any(int(field(name, rows).max()) >= limits[name] for name in (WORD, LINK, LOG_PROB, BACKOFF)):
        return False
    if limits[CHILDREN] < 0:
        return True
    first = field(CHILDREN, np.arange(start, stop + 1))
    return not (first[1:] < first[:-1]).any() and int(first[1:].max()) <= limits[CHILDREN]


def read_numbers(records: Words64, bits: Ints, size: int) -> Ints:
    """The unsigned numbers of `size` bits at the bit positions `bits` of the records, which end with an
    unused word: (K,) -> (K,)"""
    if not size:
        return np.zeros(len(bits), np.int64)
    word, shift = bits >> 6, bits & 63
    low = records[word] >> shift.astype(np.uint64)
    high = records[word + 1] << np.uint64(1) << (63 - shift).astype(np.uint64)
    numbers: Words64 = (low | high) & np.uint64((1 << size) - 1)
    return numbers.view(np.int64)


def pack_numbers(columns: list[tuple[Ints, int, int]], rows: int, width: int) -> Words64:
    """Pack fields into records of `width` bits, one after the other. A field is its values (rows,), its first
    bit in the record, and its size in bits. Returns words of 64 bits; unused bits of the last word are 0."""
    packed = np.zeros(-(-rows * width // 64) + 1, np.uint64)
    starts = np.arange(rows) * width
    for values, offset, size in columns:
        bits = starts + offset
        shift = (bits & 63).astype(np.uint64)
        unsigned = values.astype(np.uint64)
        add_bits(packed, bits >> 6, unsigned << shift)
        over = np.flatnonzero((bits & 63) + size > 64)
        add_bits(packed, (bits[over] >> 6) + 1, unsigned[over] >> (np.uint64(64) - shift[over]))
    return packed[:-1]


def add_bits(packed: Words64, words: Ints, values: Words64) -> None:
    """Set the bits of `values` (K,) in the words of `packed` with the indices `words` (K,), which increase
    but may repeat. Changes `packed`."""
    if len(words):
        begins = np.flatnonzero(np.diff(words, prepend=-1))
        packed[words[begins]] |= np.bitwise_or.reduceat(values, begins)


# ---- words -------------------------------------------------------------------------------------------------
# The bytes of the V words lie in one pool, in the order of the words' hashes, by which they are looked up.

REMEMBERED = 1_000_000  # words of texts whose numbers are kept in memory


def hash_word(word: str) -> int:
    """A hash of 64 bits, the same on every machine."""
    return int.from_bytes(digest64(word.encode("utf-8", "surrogatepass")), "big")


class HashedWords(NamedTuple):
    """The words in three arrays."""

    hashes: NDArray[np.uint64]  # (V,) increasing
    starts: Ints  # (V + 1,) of their bytes
    text: NDArray[np.uint8]

    @classmethod
    def of(cls, words: Iterable[str]) -> "HashedWords":
        """Make the pool of `words`, which must be in the order of their hashes."""
        encoded = [word.encode() for word in words]
        hashes = np.array([int.from_bytes(digest64(word), "big") for word in encoded], np.uint64)
        starts = np.concatenate([[0], np.cumsum([len(word) for word in encoded], dtype=np.int64)])
        return cls(hashes, starts.astype(np.int64), np.frombuffer(b"".join(encoded), np.uint8))

    def word(self, number: int) -> str:
        return self.text[self.starts[number] : self.starts[number + 1]].tobytes().decode()

    def words(self) -> list[str]:
        """All words by their numbers."""
        text, starts = self.text.tobytes(), self.starts.tolist()
        return [text[a:b].decode() for a, b in pairwise(starts)]

    def is_sound(self) -> bool:
        """Whether sizes agree, hashes are sorted, and all bytes are of words."""
        return (
            len(self.starts) == len(self.hashes) + 1
            and int(self.starts[0]) == 0
            and int(self.starts[-1]) == len(self.text)
            and not (self.starts[1:] < self.starts[:-1]).any()
            and not (self.hashes[1:] < self.hashes[:-1]).any()
        )

    def find(self, word: str) -> int:
        """The number of a word; -1 for a word that is not in the pool."""
        hashed = np.uint64(hash_word(word))
        number = int(np.searchsorted(self.hashes, hashed))
        while number < len(self.hashes) and self.hashes[number] == hashed:
            if self.word(number) == word:
                return number
            number += 1
        return -1


class WordIds(dict[str, int]):
    """The ids of words in a pool, that of <unk> for others; up to REMEMBERED of them are kept in memory."""

    def __init__(self, pool: HashedWords, unknown: int) -> None:
        super().__init__()
        self.pool, self.unknown = pool, unknown

    def __missing__(self, word: str) -> int:
        number = self.pool.find(word)
        number = self.unknown if number < 0 else number
        if len(self) < REMEMBERED:
            self[word] = number
        return number


# ---- model -------------------------------------------------------------------------------------------------

COMPILED_SCORE_FROM = 2000  # call of flat_scores from which it is compiled: numba takes half a second to load
COMPILED_SCORE = LazyPart("nmt.ngram.trie_queries:compiled_score")

SPECIAL = UNK, BOS, EOS
SHAPES = [  # types and dimensions of the arrays of a model
    (np.dtype(kind), 2 if name == "layout" else 1)
    for name, kind in {
        "hashes": "u8", "starts": "i8", "text": "u1", "records": "u8", "books": "f8", "layout": "i8",
        "most": "f8",
    }.items()
]  # fmt: skip


class TrieModel(NamedTuple):
    """The arrays of an n-gram model of V words."""

    unknown: int  # number of <unk>
    begin: int  # number of <s>
    end: int  # number of </s>
    hashes: NDArray[np.uint64]  # (V,) see HashedWords
    starts: Ints  # (V + 1,)
    text: NDArray[np.uint8]
    records: Words64  # see Trie
    books: Floats
    layout: Ints
    most: Floats  # (V,) upper bound of each word's natural log p in any context

    @classmethod
    def of(cls, words: Sequence[str], trie: Trie, most: Floats) -> "TrieModel":
        """The model of a trie. `words`: in the order of their hashes; `most`: see the field. ValueError if
        <unk>, <s> or </s> is missing."""
        unknown, begin, end = (words.index(word) for word in SPECIAL)
        pool = HashedWords.of(words)
        return cls(
            unknown=unknown, begin=begin, end=end, hashes=pool.hashes, starts=pool.starts, text=pool.text,
            records=trie.records, books=trie.books, layout=trie.layout, most=most,
        )  # fmt: skip

    @property
    def pool(self) -> HashedWords:
        return HashedWords(self.hashes, self.starts, self.text)

    @property
    def trie(self) -> Trie:
        return Trie(self.records, self.books, self.layout)

    def is_sound(self) -> bool:
        """Whether all sizes agree and all indices are within bounds, which compiled code does not check."""
        V = len(self.hashes)
        arrays = (*self.pool, *self.trie, self.most)
        shapes = [(array.dtype, array.ndim) for array in arrays]
        return (
            shapes == SHAPES
            and V > 0
            and len(self.most) == V
            and all(0 <= word < V for word in (self.unknown, self.begin, self.end))
            and self.pool.is_sound()
            and self.trie.is_sound(V)
        )


class TrieScorer(NgramTextScorer):
    """Scores texts with an n-gram model in a trie."""

    def __init__(self, model: TrieModel) -> None:
        self.model, self.trie = model, model.trie
        self.unknown, self.begin, self.end = model.unknown, model.begin, model.end
        self.numbers = WordIds(model.pool, model.unknown)
        self.calls = 0  # of flat_scores
        self.compiled: object = None

    @property
    def order(self) -> int:
        """Length of the longest n-grams."""
        return self.trie.order

    @property
    def vocab_size(self) -> int:
        """Words that the model knows, </s> included; <unk> and <s> are not."""
        return len(self.model.hashes) - 2

    def knows(self, word: str) -> bool:
        """Whether the word has a unigram of its own."""
        return self.numbers[word] != self.unknown

    def encode(self, words: Sequence[str]) -> list[int]:
        return list(map(self.numbers.__getitem__, words))

    def flat_scores(self, text: Ints, first: Ints) -> Floats:
        """Natural log p of each token; see `NgramTextScorer`. Computed by NumPy in the first calls, then by
        compiled code where numba is installed."""
        self.calls += 1
        if self.calls == COMPILED_SCORE_FROM:
            self.compiled = COMPILED_SCORE.load()
        if not callable(self.compiled):
            return self.trie.flat_scores(text, first)
        scores = np.empty(len(text))
        self.compiled(self.trie, text, first, scores)
        return scores


# ---- folders -----------------------------------------------------------------------------------------------
# A mapped model is a folder of the arrays of a TrieModel (nmt/io/mapped.py).


def identity_file(path: str | Path) -> Path:
    """The file that changes whenever the content of a model does: that of an ARPA or KenLM model itself, the
    manifest of a folder."""
    return Path(path) / manifest.FILE if mapped.is_mapped(path) else Path(path)


def load_trie(folder: str | Path, verify: bool = False) -> TrieModel:
    """Map the model of a folder. Checksums and indices are verified once on a machine, with `verify` always.
    DataError for a folder that is damaged, or has something else."""
    return mapped.load_record(folder, TrieModel, "nmt-ngram compile", stamp_path(folder), verify)


def stamp_path(folder: str | Path) -> Path:
    """The path of the file in the user's cache which shows that a folder has been verified."""
    return mapped.stamp_file(files.cache_folder(), folder)
