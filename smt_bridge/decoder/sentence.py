"""The translation options of one sentence: rows of the table that match its spans, unknown words as they are, future costs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smt_bridge.decoder.compiled import njit
from smt_bridge.decoder.search import Floats, Int32s, Options

UNKNOWN_WORD = -100.0  # Moses' penalty of a word that the table does not have
LONGEST = 7  # words of a source phrase, at least


@dataclass
class Sentence:
    """Options, and what they are in the table."""

    words: list[str]
    options: Options
    rows: NDArray[np.int64]  # (O,) row of the table, -1 for an unknown word
    text: Int32s  # target words, numbers of the table's vocabulary; those of unknown words follow it
    begin: Int32s  # (O,) first source word
    last: Int32s
    unknown: list[str]  # the words behind the vocabulary
    longest: int


@njit
def future_costs(n: int, longest: int, first: Int32s, number: Int32s, estimate: Floats) -> Floats:
    """Best score of each span by any options side by side: (n, n); the order of the span's phrases costs nothing."""
    cost = np.full((n, n), -1e9)
    for size in range(1, n + 1):
        for begin in range(n - size + 1):
            last = begin + size - 1
            if size <= longest:
                span = begin * longest + size - 1
                for option in range(first[span], first[span] + number[span]):
                    cost[begin, last] = max(cost[begin, last], estimate[option])
            for middle in range(begin, last):
                cost[begin, last] = max(cost[begin, last], cost[begin, middle] + cost[middle + 1, last])
    return cost


@njit
def gather(rows: NDArray[np.int64], target: Int32s, cut: NDArray[np.int64], words: Int32s) -> tuple[Int32s, Int32s, Int32s]:
    """Where the words of rows start, how many they are, and the words."""
    start, length = np.zeros(len(rows), np.int32), np.zeros(len(rows), np.int32)
    total = 0
    for i in range(len(rows)):
        if rows[i] >= 0:
            length[i] = cut[target[rows[i]] + 1] - cut[target[rows[i]]]
        else:
            length[i] = 1
        start[i] = total
        total += length[i]
    text = np.empty(total, np.int32)
    for i in range(len(rows)):
        if rows[i] >= 0:
            begin = cut[target[rows[i]]]
            for k in range(length[i]):
                text[start[i] + k] = words[begin + k]
        else:
            text[start[i]] = -1 - rows[i]  # the word itself
    return start, length, text


def spans(words: Sequence[str], longest: int) -> list[tuple[int, int, bytes]]:
    """First word, last word and text of each span."""
    coded = [word.encode("utf-8") for word in words]
    return [(begin, last, b" ".join(coded[begin : last + 1])) for begin in range(len(coded)) for last in range(begin, min(len(coded), begin + longest))]
