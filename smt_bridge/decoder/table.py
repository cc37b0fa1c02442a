"""A phrase table with its lexical reordering table as arrays, which may be mapped from a folder.

Rows are grouped by source phrase. Source and target phrases are nodes of two tries over one pool of words
(`phrases.py`), distinct alignments are stored once. Scores are natural logarithms: 32-bit floats, or codes of
8 or 16 bits. A code is an index into the code book of its column, which has at most 256 or 65,536 values.
Columns of few values, such as those of count bins, may be stored together, as one byte a row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from nmt.io.mapped import MEMORY, ArrayStorage, blocks, count_values
from smt_bridge.decoder.phrases import (
    Bytes,
    Int32s,
    Int64s,
    PhraseTrie,
    WordPool,
    are_children,
    are_levels,
    find_spans,
    is_increasing,
    is_trie,
    path_words,
)
from smt_bridge.moses.reordering import PROBABILITIES

Ints = NDArray[np.integer]
Floats32 = NDArray[np.float32]
Scores = NDArray[np.float32] | NDArray[np.uint8] | NDArray[np.uint16]
ALIGNMENT_BYTES = b"0123456789- \t"


def no_ints() -> Ints:
    return np.zeros(0, np.uint8)


def no_values() -> Floats32:
    return np.zeros((0, 0), np.float32)


@dataclass
class PhraseTable:
    """A phrase table of R rows with F scores each; V words; N source phrases and M target phrases, prefixes
    included; A distinct alignments; P reordering probabilities; K values of a code book; J columns that are
    stored together. The arrays become read-only."""

    source_count: int  # number of source phrases that have rows
    word_text: Bytes  # of all words, sorted
    word_cut: Ints  # (V + 1,)
    source_word: Ints  # (N + 1,) see PhraseTrie
    source_children: Int32s  # (N + 2,)
    source_levels: Int64s
    starts: Ints  # (N + 2,) the rows of node i are starts[i] to starts[i + 1] - 1
    target_word: Ints  # (M + 1,)
    target_parent: Int32s  # (M + 1,)
    target_levels: Int64s
    target: Int32s  # (R,) nodes of target phrases
    scores: Scores  # (R, F - J)
    reordering: Scores  # (R, P); (R, 0) without a reordering table; nan if that lacks the row
    reordering_row: Ints  # (R,) if equal rows of `reordering` are stored once: their indices; else (0,)
    alignment: Ints  # (R,) indices of alignments
    alignment_text: Bytes  # of all distinct alignments, one after the other
    alignment_cut: Ints  # (A + 1,)
    score_values: Floats32  # (F - J, K) code books of quantized scores; K is 0 if `scores` are the values
    reordering_values: Floats32  # (P, K) likewise; its K may be another
    joined: Ints = field(default_factory=no_ints)  # (J,) the columns that `scores` lacks, in increasing order
    joined_row: Ints = field(default_factory=no_ints)  # (R,) indices into `joined_values`; (0,) if J is 0
    joined_values: Floats32 = field(default_factory=no_values)  # (at most 256, J) their scores

    def __post_init__(self) -> None:
        # Compiled functions are compiled once more for arrays that can be written to; mapped ones cannot.
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    # ---- sources -------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """The number of rows R."""
        return len(self.target)

    @property
    def columns(self) -> int:
        """The number of scores of a row, F."""
        return int(self.scores.shape[1]) + len(self.joined)

    @cached_property
    def words(self) -> WordPool:
        """The words of both languages."""
        return WordPool(self.word_text, self.word_cut)

    @property
    def longest(self) -> int:
        """The number of words of the longest source phrase."""
        return len(self.source_levels) - 2

    def nodes(self, words: Sequence[str], longest: int) -> Int32s:
        """The source nodes of all spans of at most `longest` words of a sentence, 0 where the table has no
        such phrase: (n * longest,), in the order of `find_spans`."""
        ids = np.array([self.words.find(word) for word in words], np.int32)
        return find_spans(ids, self.source_children, self.source_word, longest)

    def node_rows(self, node: int) -> range:
        """The rows of a source node; none for node 0."""
        return range(int(self.starts[node]), int(self.starts[node + 1]))

    def find_rows(self, source: str) -> range:
        """The rows of a source phrase, its words separated by single blanks; none if the table lacks it."""
        words = source.split(" ")
        return self.node_rows(int(self.nodes(words, len(words))[len(words) - 1]))

    # ---- rows ----------------------------------------------------------------------------------------------

    def lengths(self, rows: Ints) -> Int64s:
        """The number of target words of rows: (O,) -> (O,)"""
        return np.searchsorted(self.target_levels, self.target[rows], "right") - 1

    def target_words(self, rows: Ints) -> tuple[Int32s, Int64s]:
        """Ids of the target words of rows, row after row, and the offset of each: (O,) -> (W,), (O + 1,)"""
        starts = np.concatenate([[0], np.cumsum(self.lengths(rows))])
        return path_words(self.target[rows], self.target_parent, self.target_word, starts), starts

    def text(self, row: int) -> list[str]:
        """The target words of a row."""
        return [self.words[word] for word in self.target_words(np.array([row]))[0].tolist()]

    def log_scores(self, rows: Ints) -> Floats32:
        """The scores of rows, natural logarithms: (O,) -> (O, F)"""
        scores = decode_scores(self.scores[rows], self.score_values)
        if not len(self.joined):
            return scores
        whole = np.empty((len(rows), self.columns), np.float32)
        whole[:, self.joined] = self.joined_values[self.joined_row[rows]]
        whole[:, np.delete(np.arange(self.columns), self.joined)] = scores
        return whole

    def log_reordering(self, rows: Ints) -> Floats32:
        """The reordering scores of rows, natural logarithms; nan where there is none: (O,) -> (O, P)"""
        if len(self.reordering_row):
            rows = self.reordering_row[rows]
        return decode_scores(self.reordering[rows], self.reordering_values)

    def points(self, row: int) -> list[tuple[int, int]]:
        """Alignment points (source, target) of a row; empty if the table has none."""
        return parse_points(self.points_text(row))

    def points_text(self, row: int) -> bytes:
        """The alignment field of a row, as text."""
        number = int(self.alignment[row])
        return self.alignment_text[self.alignment_cut[number] : self.alignment_cut[number + 1]].tobytes()

    # ---- checks --------------------------------------------------------------------------------------------

    def is_sound(self) -> bool:
        """Whether sizes agree and indices are within bounds, unchecked by compiled code. Reads all arrays."""
        return self.has_sound_phrases() and self.has_sound_rows()

    def has_sound_phrases(self) -> bool:
        """Whether words, tries and alignments agree."""
        if not (
            are_cuts(self.word_cut, len(self.word_text))
            and are_cuts(self.alignment_cut, len(self.alignment_text))
            and not self.alignment_text.tobytes().translate(None, ALIGNMENT_BYTES)
            and are_valid_words(self.words)
        ):
            return False
        words = len(self.words)
        return (
            are_levels(self.source_levels, self.source_word, words)
            and are_children(self.source_children, self.source_levels)
            and is_trie(PhraseTrie(self.target_parent, self.target_word, self.target_levels), words)
        )

    def has_sound_rows(self) -> bool:
        """Whether the arrays of rows have the same length and refer to phrases, alignments and values."""
        nodes, rows = len(self.source_word), self.rows
        shapes = (
            rows > 0
            and {len(self.scores), len(self.reordering_row) or len(self.reordering), len(self.alignment)}
            == {rows}
            and self.scores.ndim == self.reordering.ndim == 2
            and self.reordering.shape[1] in (0, *PROBABILITIES)
            and are_cuts(self.starts, rows)
            and len(self.starts) == nodes + 1
            and self.starts[1] == 0
        )
        return (
            shapes
            and within(self.target, 1, len(self.target_parent))
            and within(self.alignment, 0, len(self.alignment_cut) - 1)
            and are_codes(self.scores, self.score_values)
            and are_codes(self.reordering, self.reordering_values)
            and within(self.reordering_row, 0, len(self.reordering))
            and not has_nan(self.score_values if self.score_values.size else self.scores)
            and self.has_sound_joined_columns()
        )

    def has_sound_joined_columns(self) -> bool:
        """Whether the columns that are stored together are columns of the table, with a score in each row."""
        columns = len(self.joined)
        return (
            len(self.joined_row) == (self.rows if columns else 0)
            and self.joined_values.ndim == 2
            and self.joined_values.shape[1] == columns
            and within(self.joined, 0, self.columns)
            and len(np.unique(self.joined)) == columns
            and within(self.joined_row, 0, len(self.joined_values))
            and not has_nan(self.joined_values)
        )


def parse_points(text: bytes) -> list[tuple[int, int]]:
    """Parse an alignment field, such as 0-0 1-1, into points (source, target)."""
    return [
        (int(source), int(target)) for source, _, target in (point.partition(b"-") for point in text.split())
    ]


def decode_scores(scores: Scores, values: Floats32) -> Floats32:
    """The values of scores that may be codes: (O, F), (F, K) -> (O, F)"""
    return values[np.arange(len(values)), scores] if values.shape[1] else np.asarray(scores, np.float32)


def smallest(values: Ints, *types: type[np.integer], storage: ArrayStorage = MEMORY) -> Ints:
    """Convert integers of 0 or more to the first type that holds all: (N,). `storage`: of the new array."""
    largest = int(values.max(initial=0))
    kind = next(kind for kind in types if largest <= np.iinfo(kind).max)
    if values.dtype == kind:
        return values
    smaller = storage.empty(len(values), kind)
    for some in blocks(len(values)):
        smaller[some] = values[some]
    return smaller


def are_valid_words(words: WordPool) -> bool:
    """Whether all words are UTF-8, sorted, and different."""
    encoded = [words.encoded(number) for number in range(len(words))]
    try:
        for word in encoded:
            word.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return all(last < next_word for last, next_word in pairwise(encoded))


def are_codes(scores: Scores, values: Floats32) -> bool:
    """Whether scores are 32-bit floats without code books, or codes within their books: (O, F), (F, K)"""
    if values.ndim != 2 or len(values) != scores.shape[1]:
        return False
    if not values.shape[1]:
        return scores.dtype == np.float32
    return scores.dtype in (np.uint8, np.uint16) and int(scores.max(initial=0)) < values.shape[1]


def are_cuts(cut: Ints, total: int) -> bool:
    """Whether `cut` starts at 0, never decreases, and ends at `total`."""
    return bool(len(cut) and cut[0] == 0 and cut[-1] == total and is_increasing(cut))


def within(indices: Ints, low: int, high: int) -> bool:
    """Whether low <= index < high for every index."""
    return not indices.size or (int(indices.min()) >= low and int(indices.max()) < high)


def has_nan(values: Scores) -> bool:
    """Whether a value is nan: (R, F)"""
    return any(bool(np.isnan(values[rows]).any()) for rows in blocks(len(values)))


# ---- joined columns ----------------------------------------------------------------------------------------


MOST_JOINED = 256  # different rows of joined columns


def join_columns(table: PhraseTable, storage: ArrayStorage = MEMORY) -> PhraseTable:
    """Return a table with the same scores, in which the columns of few values are stored together, as one
    byte a row: columns whose values occur in at most 256 combinations. The table itself if that saves
    nothing. `storage`: of the new arrays; OSError if its disk is full. ValueError for a quantized table."""
    if table.score_values.shape[1]:
        raise ValueError("quantized already")
    exact, columns = cast(Floats32, table.scores), range(table.scores.shape[1])
    sample = exact[:: max(1, table.rows // 10_000)]  # to skip columns of many values before they are counted
    few = [column for column in columns if len(np.unique(sample[:, column])) <= MOST_JOINED]
    books = {column: count_values(exact[:, column])[0].astype(np.float32) for column in few}
    row, values, joined = storage.empty(table.rows, np.uint8), np.zeros((1, 0), np.float32), list[int]()
    for part in blocks(table.rows):
        row[part] = 0
    for column, book in sorted(books.items(), key=lambda item: len(item[1])):
        pair_keys = partial(number_pairs, row, exact[:, column], book)
        pairs = distinct_keys(pair_keys, table.rows)
        more = len(pairs) * (len(joined) + 1) - values.size  # additional scores of the combinations
        if len(pairs) <= MOST_JOINED and more < table.rows:
            for part in blocks(table.rows):
                row[part] = np.searchsorted(pairs, pair_keys(part))
            values = np.hstack([values[pairs // len(book)], book[pairs % len(book), None]])
            joined.append(column)
    if 4 * len(joined) * (table.rows - len(values)) <= table.rows:  # bytes; nothing would be saved
        return table
    order, others = np.argsort(joined), np.delete(columns, joined)
    scores = storage.empty((table.rows, len(others)), np.float32)
    for part in blocks(table.rows):
        scores[part] = exact[part][:, others]
    return replace(
        table,
        scores=scores,
        score_values=table.score_values[others],
        joined=np.array(joined, np.int32)[order],
        joined_row=row,
        joined_values=values[:, order],
    )


def number_pairs(row: Ints, values: Floats32, book: Floats32, part: slice) -> Int64s:
    """Number the pairs of an index and a value of a sorted code book, in a block of rows: (R,), (R,), (K,)
    -> (N,)"""
    return row[part].astype(np.int64) * len(book) + np.searchsorted(book, values[part])


def distinct_keys(keys: Callable[[slice], Int64s], rows: int) -> Int64s:
    """The different keys of so many rows, in increasing order. `keys`: of a block of rows."""
    distinct = np.zeros(0, np.int64)
    for part in blocks(rows):
        distinct = np.union1d(distinct, keys(part))
    return distinct


# ---- quantization ------------------------------------------------------------------------------------------
# A column with fewer different values than codes keeps them all. Otherwise its values are the means of
# clusters, by the algorithm of Lloyd 1982, which begins with quantiles.


CODE_TYPES: dict[int, type[np.uint8] | type[np.uint16]] = {8: np.uint8, 16: np.uint16}
ROUNDS = 20  # of Lloyd's algorithm; the error falls by less than 1% in further ones
Codes = NDArray[np.uint8] | NDArray[np.uint16]


def quantize(table: PhraseTable, bits: int, storage: ArrayStorage = MEMORY) -> PhraseTable:
    """Return a table whose translation and reordering scores are codes of 8 or 16 bits, and which shares its
    other arrays with `table`; equal rows of reordering codes of 8 bits are stored once where that saves
    space. `storage`: of the codes; OSError if its disk is full. ValueError for a quantized table."""
    if table.score_values.shape[1]:
        raise ValueError("quantized already")
    scores, score_values = quantize_scores(table.scores, bits, storage)  # type: ignore[arg-type]
    reordering, reordering_values = quantize_scores(table.reordering, bits, storage)  # type: ignore[arg-type]
    reordering, reordering_row = share_rows(reordering, storage)
    return replace(
        table,
        scores=scores,
        score_values=score_values,
        reordering=reordering,
        reordering_row=reordering_row,
        reordering_values=reordering_values,
    )


def share_rows(codes: Codes, storage: ArrayStorage = MEMORY) -> tuple[Codes, Ints]:
    """Store equal rows of codes once: (R, F) -> (T, F) and the index of each row among them, (R,). Codes of
    16 bits, and those for which that saves nothing, come back as they are, with no indices, (0,)."""
    columns, each = codes.shape[1], np.zeros(0, np.int32)
    if codes.dtype != np.uint8 or not 0 < columns <= 8:
        return codes, each
    shifts = 8 * np.arange(columns)

    def keys(rows: slice) -> Int64s:
        return codes[rows].astype(np.int64) @ (1 << shifts)

    distinct = distinct_keys(keys, len(codes))
    index: Ints = (
        storage.empty(len(codes), np.uint16)
        if len(distinct) <= 1 << 16
        else storage.empty(len(codes), np.int32)
    )
    if index.nbytes + columns * len(distinct) >= codes.nbytes:
        return codes, each
    for rows in blocks(len(codes)):
        index[rows] = np.searchsorted(distinct, keys(rows))
    return (distinct[:, None] >> shifts & 255).astype(np.uint8), index


def quantize_scores(scores: Floats32, bits: int, storage: ArrayStorage = MEMORY) -> tuple[Codes, Floats32]:
    """Return the codes of scores, and the code book of each column: (R, F) -> (R, F), (F, K). Each code is
    that of the nearest value in the book. Scores may be nan. `bits`: 8 or 16; `storage`: of the codes."""
    codes = cast(Codes, storage.empty(scores.shape, CODE_TYPES[bits]))
    books = [code_book(scores[:, column], 1 << bits) for column in range(scores.shape[1])]
    for rows in blocks(len(scores)):
        for column, book in enumerate(books):
            codes[rows, column] = nearest(scores[rows, column], book)
    return codes, stack_books(books)


def stack_books(books: Sequence[Floats32]) -> Floats32:
    """Stack code books as rows of equal length, padded with their last values: (F, K)"""
    size = max(map(len, books), default=1)
    return np.array([np.pad(book, (0, size - len(book)), "edge") for book in books], np.float32).reshape(
        len(books), size
    )


def code_book(values: Floats32, size: int) -> Floats32:
    """Choose at most `size` values that represent those of a column: (R,) -> (K,), in increasing order. If a
    value is nan, the last one is nan."""
    distinct, counts = count_values(values)
    if len(distinct) <= size:
        return distinct
    missing = distinct[np.isnan(distinct)]
    finite, weights = distinct[: len(distinct) - len(missing)].astype(np.float64), counts.astype(np.float64)
    book = clusters(finite, weights[: len(finite)], size - len(missing))
    return np.concatenate([book.astype(np.float32), missing])


def clusters(values: NDArray[np.float64], weights: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Centers of at most `size` clusters of sorted, weighted values, ascending: (N,), (N,) -> (K,)"""
    share = np.cumsum(np.cbrt(weights))  # density to the power of 1/3 has the least squared error
    centers = np.unique(values[np.searchsorted(share, (np.arange(size) + 0.5) / size * share[-1])])
    for _ in range(ROUNDS):
        owner = np.searchsorted((centers[1:] + centers[:-1]) / 2, values)
        total = np.bincount(owner, weights, len(centers))
        sums = np.bincount(owner, weights * values, len(centers))
        centers = np.unique(sums[total > 0] / total[total > 0])
    return centers


def nearest(values: Floats32, book: Floats32) -> NDArray[np.int64]:
    """The index of the nearest value of a code book in increasing order; for nan, that of its nan: (R,),
    (K,) -> (R,)"""
    finite = book[~np.isnan(book)]
    codes = np.searchsorted((finite[1:] + finite[:-1]) / 2, values)
    return np.where(np.isnan(values), len(finite), codes)
