"""Compiled queries of a trie of n-grams (nmt/ngram/trie.py). Without numba the same functions run in plain
Python.

A state is the number of the longest context that can still matter, 0 for none.
"""

import numpy as np

from nmt.compute.compiled import HAVE_NUMBA, njit, njit_forced_inline
from nmt.ngram.text_scorer import LN10, Floats, Ints
from nmt.ngram.trie import (
    BACKOFF,
    BACKOFF_BOOK,
    BASE,
    CHILDREN,
    FIRST,
    LINK,
    LOG_PROB,
    LOG_PROB_BOOK,
    SIZE,
    STATE,
    WIDTH,
    WORD,
    Trie,
    Words64,
)  # fmt: skip


@njit_forced_inline
def read_bits(records: Words64, bit: int | np.int64, size: int) -> np.int64:
    """The unsigned number of `size` bits that begins at `bit`."""
    # Without branches: then numba removes all counting of references from the functions that call it.
    word, shift = bit >> 6, np.uint64(bit & 63)
    both = records[word] >> shift | records[word + 1] << np.uint64(1) << (np.uint64(63) - shift)
    return np.int64(both & ((np.uint64(1) << np.uint64(size)) - np.uint64(1)))


@njit_forced_inline
def follow(
    lm: Trie, state: int | np.int64, word: int, weights: Floats | None
) -> tuple[float, float, int, np.int64]:
    """Read a word in a state. Returns log10 p of the longest n-gram that matches, natural log p of the word,
    the number of back-offs, and the next state.

    `lm`: a trie, or any tuple that has its fields; `weights`: scratch memory (order,) that is filled with the
    log10 back-offs, longest context first; None: they are not needed. This is one long function, because
    counting references to arrays in smaller ones would take longer than the work itself.
    """
    total, count, n = 0.0, 0, len(lm.layout) - 2
    node, level, row = np.int64(state), np.int64(0), np.int64(word)
    while node and not level:
        while node < lm.layout[n, FIRST]:
            n -= 1
        record = lm.layout[n, BASE] + (node - lm.layout[n, FIRST]) * lm.layout[n, WIDTH]
        bit, size = record + lm.layout[n, CHILDREN], lm.layout[n, CHILDREN + SIZE]
        low, high = read_bits(lm.records, bit, size), read_bits(lm.records, bit + lm.layout[n, WIDTH], size)
        base, width, bits = lm.layout[n + 1, BASE], lm.layout[n + 1, WIDTH], lm.layout[n + 1, WORD + SIZE]
        while low < high:
            middle = (low + high) >> 1
            here = read_bits(lm.records, base + middle * width, bits)
            if here < word:
                low = middle + 1
            elif here > word:
                high = middle
            else:
                level, row = np.int64(n + 1), middle
                break
        if not level:
            code = read_bits(lm.records, record + lm.layout[n, BACKOFF], lm.layout[n, BACKOFF + SIZE])
            weight = lm.books[lm.layout[n, BACKOFF_BOOK] + code]
            if weights is not None:
                weights[count] = weight
            count += 1
            total += LN10 * weight
            node = read_bits(lm.records, record + lm.layout[n, LINK], lm.layout[n, LINK + SIZE])
    record = lm.layout[level, BASE] + row * lm.layout[level, WIDTH]
    code = read_bits(lm.records, record + lm.layout[level, LOG_PROB], lm.layout[level, LOG_PROB + SIZE])
    log10 = lm.books[lm.layout[level, LOG_PROB_BOOK] + code]
    if read_bits(lm.records, record + lm.layout[level, STATE], lm.layout[level, STATE + SIZE]):
        after = lm.layout[level, FIRST] + row
    else:
        after = read_bits(lm.records, record + lm.layout[level, LINK], lm.layout[level, LINK + SIZE])
    return log10, total + LN10 * log10, count, after


@njit_forced_inline
def score(lm: Trie, text: Ints, first: Ints, scores: Floats) -> None:
    """Write natural log p of each word of `text` (N,), given the previous ones of its sentence, to `scores`
    (N,). `first` (N,): the index at which the sentence of each word begins. Sums are those of
    NgramModel.flat_scores: back-offs are added in log10, from the shortest context on."""
    weights, state = np.zeros(len(lm.layout)), np.int64(0)
    for i in range(len(text)):
        log10, _, count, state = follow(lm, np.int64(0) if first[i] == i else state, text[i], weights)
        weight = 0.0
        for k in range(count - 1, -1, -1):
            weight += weights[k]
        scores[i] = LN10 * (log10 + weight)


@njit
def are_within(records: Words64, row: Ints, limits: Ints, start: int, stop: int) -> bool:
    """Check the fields of n-grams as `are_within` of nmt/ngram/trie.py does, with its arguments."""
    width, bit = row[WIDTH], row[BASE] + start * row[WIDTH]
    word, link, log_prob = row[WORD], row[LINK], row[LOG_PROB]
    backoff, children = row[BACKOFF], row[CHILDREN]
    first = read_bits(records, bit + children, row[CHILDREN + SIZE])
    for _ in range(start, stop):
        if read_bits(records, bit + word, row[WORD + SIZE]) >= limits[WORD]:
            return False
        if read_bits(records, bit + link, row[LINK + SIZE]) >= limits[LINK]:
            return False
        if read_bits(records, bit + log_prob, row[LOG_PROB + SIZE]) >= limits[LOG_PROB]:
            return False
        if read_bits(records, bit + backoff, row[BACKOFF + SIZE]) >= limits[BACKOFF]:
            return False
        bit += width
        if limits[CHILDREN] >= 0:
            end = read_bits(records, bit + children, row[CHILDREN + SIZE])
            if end < first or end > limits[CHILDREN]:
                return False
            first = end
    return True


compiled_check = are_within if HAVE_NUMBA else None  # for large models
compiled_score = score if HAVE_NUMBA else None  # for programs that score many short texts one by one
