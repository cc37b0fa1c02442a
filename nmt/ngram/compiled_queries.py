"""Queries of an n-gram model compiled by numba, for programs that score many short texts one by one.

The results are those of NgramModel.flat_scores, bit by bit: additions have the same order.

The n-grams of all orders are numbered order by order, and stand in an open-addressing hash table by context
* V + last word, as in the decoder's automaton. A text has N words.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from nmt.ngram.text_scorer import LN10, Floats, Ints

Numbers = NDArray[np.int32]
CompiledFunctions = tuple[Callable[..., None], Callable[..., None]]
MIX = np.int64(-7046029254386353131)  # 2^64 / golden ratio: spreads keys over a hash table


@cache
def compiled() -> CompiledFunctions | None:
    """`insert` and `score`, compiled; None without numba. The first call on a machine takes seconds."""
    try:
        import numba
    except ImportError:
        return None
    try:
        return numba.njit(nogil=True, cache=True)(insert), numba.njit(nogil=True, cache=True)(score)
    except RuntimeError:  # no folder for compiled code can be written
        return numba.njit(nogil=True)(insert), numba.njit(nogil=True)(score)


def insert(table: Ints, nodes: Numbers, keys: Ints, first: int) -> None:
    """Insert the keys of n-grams into a hash table, in place. `table` (size,): their keys, -1 where a slot is
    free; `nodes` (size,): their numbers, counted up from `first`. The size is a power of two, above the
    number of all keys.
    """
    mask = len(table) - 1
    for i in range(len(keys)):
        slot = ((keys[i] * MIX) >> np.int64(20)) & mask
        while table[slot] != -1:
            slot = (slot + 1) & mask
        table[slot] = keys[i]
        nodes[slot] = first + i


def score(
    table: Ints, nodes: Numbers, log10: Floats, backoff: Floats, V: int, order: int, text: Ints, first: Ints,
    scores: Floats,
) -> None:  # fmt: skip
    """Natural log p of each word given the previous ones of its sentence, into `scores` (N,). `table`,
    `nodes`: see `insert`; `log10`, `backoff`: log10 p and back-off weights by number of the n-gram; `text`
    (N,), `first` (N,): as in NgramModel.flat_scores."""
    mask = len(table) - 1
    ending = np.full(order, -1, np.int64)  # the n-gram of each length that ends at this word; -1 for none
    for i in range(len(text)):
        word = text[i]
        if first[i] == i:
            ending[:] = -1
        total, weight = log10[word], 0.0
        context, ending[0] = ending[0], word
        for n in range(1, order):
            node = np.int64(-1)
            if context >= 0:
                key = context * V + word
                slot = ((key * MIX) >> np.int64(20)) & mask
                while table[slot] != key and table[slot] != -1:
                    slot = (slot + 1) & mask
                if table[slot] == key:
                    node = np.int64(nodes[slot])
                    total, weight = log10[node], 0.0
                else:
                    weight += backoff[context]
            context, ending[n] = ending[n], node
        scores[i] = LN10 * (total + weight)


class CompiledModel:
    """An n-gram model for compiled queries: its n-grams in a hash table. V words."""

    def __init__(
        self, functions: CompiledFunctions, V: int, keys: Sequence[Ints], log10: Floats, backoff: Floats
    ) -> None:
        """`functions`: the result of `compiled`. `keys`: those of `NgramOrder` for each order, in which
        parents are numbered within their own order. `log10`, `backoff`: log10 p and back-off weights of the
        n-grams of all orders, concatenated."""
        insert_keys, self.score = functions
        size = 1 << (2 * len(log10)).bit_length()
        table, nodes = np.full(size, -1, np.int64), np.zeros(size, np.int32)
        first_parent, first = 0, len(keys[0])  # numbers of the first n-grams of two successive orders
        for order_keys in keys[1:]:
            insert_keys(table, nodes, order_keys + first_parent * V, first)
            first_parent, first = first, first + len(order_keys)
        self.arrays = table, nodes, log10, backoff, V, len(keys)

    def flat_scores(self, text: Ints, first: Ints) -> Floats:
        """Score a flat text; see `NgramModel.flat_scores`."""
        scores = np.empty(len(text))
        self.score(*self.arrays, text, first, scores)
        return scores
