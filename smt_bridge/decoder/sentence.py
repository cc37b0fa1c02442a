"""The translation options of one sentence: rows of the table that match its spans, and options that the table
does not have.

Gathering says which options there are, span by span; scoring (decoder.py) turns them into arrays.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from smt_bridge.decoder.compiled import go_on, njit
from smt_bridge.decoder.search import SLICE, Floats, Int32s, Options

UNKNOWN_WORD = -100.0  # Moses' value of UnknownWordPenalty for a word that the table does not have


@dataclass
class Extra:
    """An option that is not in the table, such as an unknown word."""

    words: list[str]  # of the target
    points: list[tuple[int, int]]  # alignment
    unknown: bool = True  # pays the unknown word penalty
    scores: Floats | None = None  # in place of a row's scores; None: zeros
    pair: int | None = None  # the row of the same phrases, whose reordering it has


@dataclass
class Gathered:
    """The options of a sentence, span by span. Rows below 0 stand for extras: -1 - its number."""

    spans: list[tuple[int, int]] = field(default_factory=list)  # first and last word, each span once
    rows: list[NDArray[np.int64]] = field(default_factory=list)  # of each span
    extras: list[Extra] = field(default_factory=list)

    def add(self, begin: int, last: int, rows: NDArray[np.int64], extras: Sequence[Extra] = ()) -> None:
        """The options of the next span; nothing happens without any."""
        if extras:
            first = -1 - len(self.extras)
            self.extras += extras
            rows = np.concatenate([rows, np.arange(first, first - len(extras), -1)])
        if len(rows):
            self.spans.append((begin, last))
            self.rows.append(rows)


@dataclass
class Sentence:
    """Options as arrays, and what they are."""

    words: list[str]
    options: Options
    rows: NDArray[np.int64]  # (O,) row of the table; -1 - k for extras[k]
    extras: list[Extra]
    text: Int32s  # target words, numbers of the table's vocabulary; those of `outside` follow it
    begin: Int32s  # (O,) first source word
    last: Int32s
    outside: list[str]  # target words that the vocabulary does not have
    longest: int


def pairs(rows: NDArray[np.int64], extras: Sequence[Extra]) -> NDArray[np.int64]:
    """The row of the table whose phrases each option has; -1 for options that are in no row."""
    found = rows.copy()
    for place in np.flatnonzero(rows < 0):
        pair = extras[-1 - rows[place]].pair
        found[place] = -1 if pair is None else pair
    return found


def future_costs(
    n: int, longest: int, first: Int32s, number: Int32s, estimate: Floats, stop: threading.Event | None = None
) -> Floats:
    """Best score of each span by any options side by side: (n, n); the order of the span's phrases costs
    nothing."""
    cost = np.full((n, n), -1e9)
    size, begin = 1, 0
    while size <= n:
        go_on(stop)
        size, begin = costs_from(cost, size, begin, longest, first, number, estimate)
    return cost


@njit
def costs_from(
    cost: Floats, size: int, begin: int, longest: int, first: Int32s, number: Int32s, estimate: Floats
) -> tuple[int, int]:
    """The spans from one on, the shortest first, as far as a slice goes; size and first word of the next
    span."""
    n, work = len(cost), 0
    while size <= n and work < SLICE:
        last = begin + size - 1
        if size <= longest:
            span = begin * longest + size - 1
            for option in range(first[span], first[span] + number[span]):
                cost[begin, last] = max(cost[begin, last], estimate[option])
        for middle in range(begin, last):
            cost[begin, last] = max(cost[begin, last], cost[begin, middle] + cost[middle + 1, last])
        work += size
        begin += 1
        if begin + size > n:
            size, begin = size + 1, 0
    return size, begin


@njit
def target_words(
    rows: NDArray[np.int64],
    target: Int32s,
    cut: NDArray[np.int64],
    words: Int32s,
    extra_cut: NDArray[np.int64],
    extra_words: Int32s,
) -> tuple[Int32s, Int32s, Int32s]:
    """Where the words of options start, how many they are, and the words: of rows, or
    extra_words[extra_cut[k] : extra_cut[k + 1]]."""
    start, length = np.zeros(len(rows), np.int32), np.zeros(len(rows), np.int32)
    total = 0
    for i in range(len(rows)):
        if rows[i] >= 0:
            length[i] = cut[target[rows[i]] + 1] - cut[target[rows[i]]]
        else:
            length[i] = extra_cut[-rows[i]] - extra_cut[-1 - rows[i]]
        start[i] = total
        total += length[i]
    text = np.empty(total, np.int32)
    for i in range(len(rows)):
        for k in range(length[i]):
            text[start[i] + k] = (
                words[cut[target[rows[i]]] + k] if rows[i] >= 0 else extra_words[extra_cut[-1 - rows[i]] + k]
            )
    return start, length, text


def spans(words: Sequence[str], longest: int) -> list[tuple[int, int, bytes]]:
    """First word, last word and text of each span."""
    coded = [word.encode("utf-8") for word in words]
    return [
        (begin, last, b" ".join(coded[begin : last + 1]))
        for begin in range(len(coded))
        for last in range(begin, min(len(coded), begin + longest))
    ]


def places(gathered: Gathered, n: int, longest: int) -> tuple[Int32s, Int32s, Int32s, Int32s]:
    """Where the options of each span are, and the span of each option: first (n * longest,), number (n *
    longest,), begin (O,), last (O,)."""
    first, number = np.zeros(n * longest, np.int32), np.zeros(n * longest, np.int32)
    sizes = np.array([len(rows) for rows in gathered.rows])
    begin, last = np.array(gathered.spans, np.int32).T
    span = begin * longest + last - begin
    first[span], number[span] = np.cumsum(sizes) - sizes, sizes
    return first, number, np.repeat(begin, sizes), np.repeat(last, sizes)
