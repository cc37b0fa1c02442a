"""The translation options of one sentence: table rows that match its spans, and options that are not in the
table. They are gathered and scored by `options.py`."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import go_on, njit
from smt_bridge.decoder.arrays import SLICE, Floats, Int32s, Int64s
from smt_bridge.decoder.table import PhraseTable

UNKNOWN_WORD = -100.0  # value of UnknownWordPenalty for each unknown word, as in Moses


@dataclass
class ExtraOption:
    """An option that is not in the table, such as an unknown word."""

    words: list[str]  # target words
    points: list[tuple[int, int]]  # alignment points
    unknown: bool = True  # whether it gets the unknown word penalty
    scores: Floats | None = None  # used in place of a row's scores; None: zeros
    pair: int | None = None  # row with the same phrases, whose reordering scores it gets
    raw: str | None = None  # replaces its words in raw text


@dataclass
class GatheredOptions:
    """Options of a sentence, span by span. A negative row -1 - k stands for extras[k]."""

    spans: list[tuple[int, int]] = field(default_factory=list)  # first and last word, each span once
    rows: list[Int64s] = field(default_factory=list)  # options of each span
    extras: list[ExtraOption] = field(default_factory=list)

    def add(self, first: int, last: int, rows: Int64s, extras: Sequence[ExtraOption] = ()) -> None:
        """Append the options of the span from `first` to `last`, if there are any: rows of the table, and
        options that are not in it."""
        if extras:
            row = -1 - len(self.extras)
            self.extras += extras
            rows = np.concatenate([rows, np.arange(row, row - len(extras), -1)])
        if len(rows):
            self.spans.append((first, last))
            self.rows.append(rows)


@dataclass
class Sentence:
    """A sentence of n words and the O translation options of its spans, as features of the search see them.
    Options are ordered by span; within a span, rows of the table come first, by estimated score."""

    words: list[str]
    table: PhraseTable
    rows: Int64s  # (O,) row of the table; -1 - k for extras[k]
    extras: list[ExtraOption]
    first: Int32s  # (O,) first source word
    last: Int32s  # (O,) last source word
    text: Int32s  # (W,) target words of all options: ids of the table's words, followed by `outside`
    start: Int32s  # (O,) words of an option: text[start : start + length]
    length: Int32s  # (O,)
    outside: list[str]  # target words that are not in the table
    longest: int  # maximum number of words of a span

    @property
    def size(self) -> int:
        """The number of options, O."""
        return len(self.rows)

    def extra(self, option: int) -> ExtraOption | None:
        """The ExtraOption behind an option; None for a row of the table."""
        row = int(self.rows[option])
        return None if row >= 0 else self.extras[-1 - row]

    def source(self, option: int) -> list[str]:
        """The source words of an option."""
        return self.words[int(self.first[option]) : int(self.last[option]) + 1]

    def target(self, option: int) -> list[str]:
        """The target words of an option."""
        return self.derivation_words([option])

    def targets(self) -> list[list[str]]:
        """The target words of each option."""
        return [self.target(option) for option in range(self.size)]

    def points(self, option: int) -> list[tuple[int, int]]:
        """Alignment points (source, target) of an option, counted from the start of each phrase."""
        extra = self.extra(option)
        return self.table.points(int(self.rows[option])) if extra is None else extra.points

    def sorted_points(self, option: int) -> list[tuple[int, int]]:
        """Alignment points of an option in the order of Moses: sorted if it is a row of the table."""
        points = self.points(option)
        return sorted(points) if self.extra(option) is None else points

    def ids(self, id_of: Callable[[str], int]) -> Int32s:
        """Convert `text` to the ids of another vocabulary: (W,). Calls `id_of`, which returns the id of a
        word, once for each distinct word."""
        distinct, inverse = np.unique(self.text, return_inverse=True)
        return np.array([id_of(self.word(word)) for word in distinct.tolist()], np.int32)[inverse]

    def word(self, word_id: int) -> str:
        """The target word of an id in `text`."""
        size = len(self.table.words)
        return self.table.words[word_id] if word_id < size else self.outside[word_id - size]

    def slices(self, path: Iterable[int] | Int32s) -> list[slice]:
        """The slice of `text` with the words of each option of a derivation."""
        return [
            slice(int(self.start[option]), int(self.start[option] + self.length[option])) for option in path
        ]

    def word_ids(self, path: Iterable[int] | Int32s) -> list[int]:
        """Ids of the target words of a derivation. `path`: its options in target order."""
        return [word for part in self.slices(path) for word in self.text[part].tolist()]

    def derivation_words(self, path: Iterable[int] | Int32s) -> list[str]:
        """The target words of a derivation. `path`: its options in target order."""
        return [self.word(word) for word in self.word_ids(path)]

    def pairs(self) -> Int64s:
        """The row of the table with the same phrases as each option; -1 if there is none: (O,)"""
        rows = self.rows.copy()
        for index in np.flatnonzero(rows < 0):
            pair = self.extras[-1 - rows[index]].pair
            rows[index] = -1 if pair is None else pair
        return rows


def future_costs(
    n: int,
    longest: int,
    first_option: Int32s,
    option_count: Int32s,
    estimate: Floats,
    stop: threading.Event | None = None,
) -> Floats:
    """Compute the best score of any sequence of options that covers each span, ignoring reordering: (n, n).
    Entry (i, j) is the span of words i to j; about -1e9 for a span that no options cover. `longest`: maximum
    number of source words of an option; `first_option`, `option_count`: of each span, by `span_index`;
    `estimate`: score of each option (O,). Raises Stopped once `stop` is set."""
    cost = np.full((n, n), -1e9)
    size, start = 1, 0
    while size <= n:
        go_on(stop)
        size, start = fill_costs(cost, size, start, longest, first_option, option_count, estimate)
    return cost


@njit
def fill_costs(
    cost: Floats,
    size: int,
    start: int,
    longest: int,
    first_option: Int32s,
    option_count: Int32s,
    estimate: Floats,
) -> tuple[int, int]:
    """Fill in `cost` from the span of `size` words from word `start` on, shortest spans first, for a limited
    amount of work. Other arguments as for `future_costs`. Returns the size and the first word of the span to
    continue with; the size is n + 1 at the end."""
    n, work = len(cost), 0
    while size <= n and work < SLICE:
        last = start + size - 1
        if size <= longest:
            span = start * longest + size - 1
            for option in range(first_option[span], first_option[span] + option_count[span]):
                cost[start, last] = max(cost[start, last], estimate[option])
        for middle in range(start, last):
            cost[start, last] = max(cost[start, last], cost[start, middle] + cost[middle + 1, last])
        work += size
        start += 1
        if start + size > n:
            size, start = size + 1, 0
    return size, start


@njit
def target_words(
    rows: Int64s,
    lengths: Int64s,
    nodes: Int32s,
    parent: Int32s,
    word: NDArray[np.integer],
    extra_cut: Int64s,
    extra_words: Int32s,
) -> tuple[Int32s, Int32s, Int32s]:
    """Offsets (O,), lengths (O,) and words (W,) of options, for Sentence.start, length and text. Option i is
    a row of the table with lengths[i] target words, the path to nodes[i] of the trie of `parent` and `word`;
    or, if rows[i] is -1 - k, extra option k with the words extra_words[extra_cut[k] : extra_cut[k + 1]]."""
    start, length = np.zeros(len(rows), np.int32), np.zeros(len(rows), np.int32)
    total = 0
    for i in range(len(rows)):
        length[i] = lengths[i] if rows[i] >= 0 else extra_cut[-rows[i]] - extra_cut[-1 - rows[i]]
        start[i] = total
        total += length[i]
    text = np.empty(total, np.int32)
    for i in range(len(rows)):
        node = nodes[i]
        for k in range(length[i] - 1, -1, -1):
            if rows[i] >= 0:
                text[start[i] + k] = word[node]
                node = parent[node]
            else:
                text[start[i] + k] = extra_words[extra_cut[-1 - rows[i]] + k]
    return start, length, text


def spans(words: int, longest: int) -> list[tuple[int, int]]:
    """The first and last word of each span of at most `longest` words of a sentence."""
    return [(first, last) for first in range(words) for last in range(first, min(words, first + longest))]


def span_index(first: Int32s, last: Int32s, n: int, longest: int) -> tuple[Int32s, Int32s]:
    """The first option and the number of options of each span, (n * longest,) each; the span of k words from
    word i has the index i * longest + k - 1. `first`, `last`: the first and last word of each option (O,);
    options of the same span must stand together."""
    first_option, option_count = np.zeros(n * longest, np.int32), np.zeros(n * longest, np.int32)
    span, indices, sizes = np.unique(first * longest + last - first, return_index=True, return_counts=True)
    first_option[span], option_count[span] = indices, sizes
    return first_option, option_count
