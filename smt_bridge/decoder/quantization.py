"""Scores in 8 or 16 bits: each column of a table has a code book of at most 256 or 65,536 values, and each
score is the number of the nearest value.

A column with fewer different values keeps them all. Otherwise the values are the means of clusters, by the
algorithm of Lloyd 1982, which begins with quantiles.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from smt_bridge.decoder.table import PhraseTable

BITS: dict[int, type[np.uint8] | type[np.uint16]] = {8: np.uint8, 16: np.uint16}
ROUNDS = 20  # of Lloyd's algorithm; the error falls by less than 1% in further ones
Floats = NDArray[np.float32]
Codes = NDArray[np.uint8] | NDArray[np.uint16]


def quantize(table: PhraseTable, bits: int) -> PhraseTable:
    """A table with the scores of its phrase and reordering tables in 8 or 16 bits. ValueError for a table
    that is quantized already."""
    if table.score_values.shape[1]:
        raise ValueError("quantized already")
    scores, score_values = quantized(table.scores, bits)  # type: ignore[arg-type]
    reordering, reordering_values = quantized(table.reordering, bits)  # type: ignore[arg-type]
    return replace(
        table,
        scores=scores,
        score_values=score_values,
        reordering=reordering,
        reordering_values=reordering_values,
    )


def quantized(scores: Floats, bits: int) -> tuple[Codes, Floats]:
    """The codes of scores, and the values of each column, which may include nan: (R, F) -> (R, F), (F, K)"""
    codes = cast(Codes, np.zeros(scores.shape, BITS[bits]))
    books = list[Floats]()
    for column in range(scores.shape[1]):
        values = np.ascontiguousarray(scores[:, column])
        book = code_book(values, 1 << bits)
        codes[:, column] = nearest(values, book)
        books.append(book)
    return codes, stacked(books)


def stacked(books: Sequence[Floats]) -> Floats:
    """Code books as rows of equal length, which the last value of each fills: (F, K)"""
    size = max(map(len, books), default=1)
    return np.array([np.pad(book, (0, size - len(book)), "edge") for book in books], np.float32).reshape(
        len(books), size
    )


def code_book(values: Floats, size: int) -> Floats:
    """At most `size` values that stand for those of a column, in increasing order; nan, if a value is nan, is
    the last."""
    distinct, counts = np.unique(values, return_counts=True)  # one nan, the last
    if len(distinct) <= size:
        return distinct
    missing = distinct[np.isnan(distinct)]
    finite, weights = distinct[: len(distinct) - len(missing)].astype(np.float64), counts.astype(np.float64)
    book = clusters(finite, weights[: len(finite)], size - len(missing))
    return np.concatenate([book.astype(np.float32), missing])


def clusters(values: NDArray[np.float64], weights: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Centers of at most `size` clusters of sorted values: (N,), (N,) -> (K,)"""
    share = np.cumsum(np.cbrt(weights))  # density to the power of 1/3 has the least squared error
    centers = np.unique(values[np.searchsorted(share, (np.arange(size) + 0.5) / size * share[-1])])
    for _ in range(ROUNDS):
        owner = np.searchsorted((centers[1:] + centers[:-1]) / 2, values)
        total = np.bincount(owner, weights, len(centers))
        sums = np.bincount(owner, weights * values, len(centers))
        centers = np.unique(sums[total > 0] / total[total > 0])
    return centers


def nearest(values: Floats, book: Floats) -> NDArray[np.int64]:
    """The index of the nearest value of a code book: (R,), (K,) -> (R,)"""
    finite = book[~np.isnan(book)]
    codes = np.searchsorted((finite[1:] + finite[:-1]) / 2, values)
    return np.where(np.isnan(values), len(finite), codes)
