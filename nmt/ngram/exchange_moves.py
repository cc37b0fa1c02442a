"""The moves of the exchange algorithm, compiled by numba: those of `Exchange.move` in word_classes.py.

V words, C classes.
"""

import math
from typing import NamedTuple

import numpy as np

from nmt.compute.compiled import HAVE_NUMBA, njit, njit_forced_inline
from nmt.ngram.text_scorer import Floats, Ints
from nmt.ngram.word_classes import EQUAL, ClassCounts, Neighbors, WordNeighbors

TABLE = 1 << 14  # counts whose x log x is looked up


class PairTerms(NamedTuple):
    """Counts of neighboring classes and their x log x, also transposed: gains are sums over whole rows."""

    pairs: Floats  # (C, C) as all four
    values: Floats
    flipped_pairs: Floats
    flipped_values: Floats
    table: Floats  # x log x of small counts


class Beside(NamedTuple):
    """How often each class occurs on one side of a word."""

    sums: Floats  # (C,)
    classes: Ints  # (C,) first those that occur


@njit_forced_inline
def f(x: float, table: Floats) -> float:
    """x log x of a count. `table`: its values for small counts."""
    return table[int(x)] if x < len(table) else x * math.log(x)


@njit
def pair_terms(pairs: Floats) -> PairTerms:
    """Compute the terms of counts of neighboring classes (C, C)."""
    table = np.zeros(TABLE)
    for x in range(2, TABLE):
        table[x] = x * math.log(float(x))
    values = np.empty(pairs.shape)
    for row in range(len(pairs)):
        for column in range(len(pairs)):
            values[row, column] = f(pairs[row, column], table)
    return PairTerms(pairs, values, pairs.T.copy(), values.T.copy(), table)


@njit
def add_pairs(terms: PairTerms, row: int, column: int, change: float) -> None:
    """Add to a count of neighboring classes."""
    terms.pairs[row, column] += change
    value = f(terms.pairs[row, column], terms.table)
    terms.values[row, column] = value
    terms.flipped_pairs[column, row] = terms.pairs[row, column]
    terms.flipped_values[column, row] = value


@njit
def count_beside(side: Neighbors, word: int, classes: Ints, beside: Beside) -> int:
    """How often a word of each class (V,) occurs next to the word, leaving out the word itself. Adds to the
    sums of `beside`, which are 0, and returns the number of classes that occur."""
    size = 0
    for entry in range(side.starts[word], side.starts[word + 1]):
        neighbor = side.words[entry]
        if neighbor != word:
            index = classes[neighbor]
            if beside.sums[index] == 0.0:
                beside.classes[size] = index
                size += 1
            beside.sums[index] += side.counts[entry]
    return size


@njit
def put(
    word: int, index: int, words: WordNeighbors, totals: ClassCounts, terms: PairTerms, following: Beside,
    successors: int, preceding: Beside, predecessors: int, sign: float,
) -> None:  # fmt: skip
    """Add the counts of a word to those of a class, or remove them if `sign` is -1. `successors`,
    `predecessors`: number of classes after and before the word."""
    for k in range(successors):
        neighbor = following.classes[k]
        add_pairs(terms, index, neighbor, sign * following.sums[neighbor])
    for k in range(predecessors):
        neighbor = preceding.classes[k]
        add_pairs(terms, neighbor, index, sign * preceding.sums[neighbor])
    add_pairs(terms, index, index, sign * words.self_pairs[word])
    totals.left[index] += sign * words.as_first[word]
    totals.right[index] += sign * words.as_second[word]
    totals.sizes[index] += int(sign)


@njit
def find_gains(
    word: int, words: WordNeighbors, totals: ClassCounts, terms: PairTerms, following: Beside,
    successors: int, preceding: Beside, predecessors: int, gains: Floats,
) -> None:  # fmt: skip
    """Increase of F if the word, which is in no class now, is put into each open class: written to `gains`
    (open,)"""
    table = terms.table
    first, second, twice = words.as_first[word], words.as_second[word], words.self_pairs[word]
    for c in range(len(gains)):
        inside, left, right = terms.pairs[c, c], totals.left[c], totals.right[c]
        # The loops below count the pairs within the class twice; here they are counted together.
        separate = f(inside + following.sums[c], table) + f(inside + preceding.sums[c], table)
        joint = f(inside + following.sums[c] + preceding.sums[c] + twice, table) + terms.values[c, c]
        ends = f(left + first, table) - f(left, table) + f(right + second, table) - f(right, table)
        gains[c] = joint - separate - ends
    for k in range(successors):
        neighbor = following.classes[k]
        for c in range(len(gains)):
            more = f(terms.flipped_pairs[neighbor, c] + following.sums[neighbor], table)
            gains[c] += more - terms.flipped_values[neighbor, c]
    for k in range(predecessors):
        neighbor = preceding.classes[k]
        for c in range(len(gains)):
            more = f(terms.pairs[neighbor, c] + preceding.sums[neighbor], table)
            gains[c] += more - terms.values[neighbor, c]


@njit
def moves(order: Ints, words: WordNeighbors, totals: ClassCounts, classes: Ints, open_classes: int) -> int:
    """`Exchange.move` for each word of `order` in turn; returns how many moved. Changes `totals` and
    `classes` (V,). `open_classes`: how many of the first classes words may leave and join."""
    C, moved = len(totals.sizes), 0
    terms, gains = pair_terms(totals.pairs), np.empty(open_classes)
    following = Beside(np.zeros(C), np.empty(C, np.int64))
    preceding = Beside(np.zeros(C), np.empty(C, np.int64))
    for word in order:
        best = current = classes[word]
        if totals.sizes[current] == 1:
            continue
        successors = count_beside(words.following, word, classes, following)
        predecessors = count_beside(words.preceding, word, classes, preceding)
        put(word, current, words, totals, terms, following, successors, preceding, predecessors, -1.0)
        find_gains(word, words, totals, terms, following, successors, preceding, predecessors, gains)
        highest = gains.max()
        if gains[current] < highest - EQUAL:
            best = 0
            while gains[best] < highest - EQUAL:
                best += 1
        put(word, best, words, totals, terms, following, successors, preceding, predecessors, 1.0)
        classes[word] = best
        moved += best != current
        following.sums[following.classes[:successors]] = 0.0
        preceding.sums[preceding.classes[:predecessors]] = 0.0
    return moved


compiled_moves = moves if HAVE_NUMBA else None
