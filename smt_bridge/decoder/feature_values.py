"""Feature values of derivations from the places of their phrases; natural logarithms.

`Phrases` are those of N derivations, one after the other: P in all.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smt_bridge.decoder.search import DISCONTINUOUS, MONOTONE, SWAP, Floats, early_distortion
from smt_bridge.decoder.sentence import Sentence

Int64s = NDArray[np.int64]


class Phrases(NamedTuple):
    option: Int64s  # (P,)
    owner: Int64s  # (P,) number of the derivation
    first: NDArray[np.bool_]  # (P,) is it the first of its derivation?
    begin: NDArray[np.int32]  # (P,) source words
    last: NDArray[np.int32]
    before_begin: NDArray[np.int32]  # (P,) of the phrase before; -2 and -1 where there is none
    before_last: NDArray[np.int32]


def phrases(sentence: Sentence, paths: Sequence[Any]) -> Phrases:
    """The phrases of derivations, which have one at least."""
    option = np.concatenate(paths).astype(np.int64)
    sizes = np.array([len(path) for path in paths])
    first = np.zeros(len(option), bool)
    first[np.cumsum(sizes) - sizes] = True
    begin, last = sentence.begin[option], sentence.last[option]
    before_begin, before_last = np.roll(begin, 1), np.roll(last, 1)
    before_begin[first], before_last[first] = -2, -1
    return Phrases(
        option, np.repeat(np.arange(len(paths)), sizes), first, begin, last, before_begin, before_last
    )


def sums(values: Any, owner: Any, count: int) -> Floats:
    """Rows added up by owner: (P, K) -> (count, K)"""
    total = np.zeros((count, values.shape[1]))
    np.add.at(total, owner, values)
    return total


def distortions(phrases: Phrases, early: bool) -> Floats:
    """The value of Distortion for each phrase: (P, 1)"""
    if not early:
        return -np.abs(phrases.begin - phrases.before_last - 1)[:, None].astype(np.float64)
    values = np.zeros((len(phrases.option), 1))
    covered: set[int] = set()
    for place, (begin, last) in enumerate(zip(phrases.begin.tolist(), phrases.last.tolist(), strict=True)):
        if phrases.first[place]:
            covered, gap = set(), 0
        values[place] = -early_distortion(begin, last, int(phrases.before_last[place]), gap)
        covered |= set(range(begin, last + 1))
        while gap in covered:
            gap += 1
    return values


def reorderings(phrases: Phrases, values: Any) -> Floats:
    """The six values of LexicalReordering for each phrase, of the options' six: (P, 6) -> (P, 6)"""
    monotone, swap = phrases.begin == phrases.before_last + 1, phrases.last + 1 == phrases.before_begin
    way = np.where(monotone, MONOTONE, np.where(swap, SWAP, DISCONTINUOUS))
    six = np.zeros((len(way), 6))
    every = np.arange(len(way))
    six[every, way] = values[every, way]
    later = np.flatnonzero(~phrases.first)
    six[later, 3 + way[later]] = values[later - 1, 3 + way[later]]
    return six
