"""Phrases that a translation must not contain, however they are cut into units.

The text of a hypothesis is read character by character by an automaton (Aho and Corasick 1975), whose states
are the marks.
"""

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nmt.text.spelling import BOUNDARY, Spelling

# ---- avoided -----------------------------------------------------------------------------------------------


REMEMBERED = 1000  # states whose units are kept
OTHER, BOUND = 0, 1  # symbols: any character that no phrase has, and the boundary


class Avoided:
    """See Constraint."""

    def __init__(self, phrases: Sequence[str], spelling: Spelling) -> None:
        """`phrases`: text with a boundary between words, at the start and at the end."""
        self.spelling = spelling
        characters = sorted({*"".join(phrases)} - {BOUNDARY})
        self.symbols = {BOUNDARY: BOUND} | {one: number for number, one in enumerate(characters, 2)}
        self.table, self.accepts = automaton([self.encode(phrase) for phrase in phrases], len(characters) + 2)
        self.start = int(self.table[0, BOUND])
        known = np.array(sorted(map(ord, self.symbols)))
        symbols = np.array([self.symbols[chr(code)] for code in known])
        self.columns = []  # the symbols of the units, place by place
        for codes in spelling.columns.codes:
            place = np.searchsorted(known, codes).clip(max=len(known) - 1)
            self.columns.append(np.where(known[place] == codes, symbols[place], OTHER))
        # After most first characters it does not matter which phrase was begun before.
        self.first = np.zeros(len(spelling.columns.order), np.int64)
        if self.columns:
            self.first[: len(self.columns[0])] = self.columns[0]
        self.anywhere = self.hits(0, np.arange(len(self.first)))
        self.ending: dict[int, NDArray[np.int64]] = {}  # units with which a phrase ends, by state
        self.next: dict[tuple[int, int], int] = {}

    def encode(self, text: str) -> list[int]:
        """The symbols of a text."""
        return [self.symbols.get(character, OTHER) for character in text]

    def begin(self) -> int:
        """See Constraint."""
        return self.start

    def follow(self, mark: int, unit: int) -> int:
        """See Constraint."""
        key = (mark, unit)
        if key not in self.next:
            for symbol in self.encode(self.spelling.texts[unit]):
                mark = int(self.table[mark, symbol])
            # A phrase that was forced counts once; another one may begin where it ends.
            self.next[key] = self.start if self.accepts[mark] else mark
        return self.next[key]

    def forbidden(self, mark: int, left: int) -> NDArray[np.int64]:
        """See Constraint: units with which a phrase ends."""
        if mark not in self.ending:
            if len(self.ending) >= REMEMBERED:
                self.ending.clear()
            hits, differs = self.anywhere.copy(), (self.table[mark] != self.table[0])[self.first]
            hits[differs] = self.hits(mark, np.flatnonzero(differs))
            self.ending[mark] = np.sort(self.spelling.columns.order[hits])
        return self.ending[mark]

    def hits(self, mark: int, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Does a phrase end inside of a unit that follows? For some places of the columns, in order."""
        states, hits = np.full(len(places), mark), np.zeros(len(places), np.bool_)
        for column in self.columns:
            count = int(np.searchsorted(places, len(column)))
            states[:count] = self.table[states[:count], column[places[:count]]]
            hits[:count] |= self.accepts[states[:count]]
        return hits

    def occurs(self, units: Sequence[int]) -> bool:
        """Is one of the phrases in a sequence of units, at the end symbol at the latest?"""
        mark = self.begin()
        for unit in units:
            if unit in self.forbidden(mark, 1):
                return True
            mark = self.follow(mark, unit)
        return False


def automaton(phrases: Sequence[Sequence[int]], symbols: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """The state after each symbol: (states, symbols); and in which states a phrase has just ended: (states,).
    State 0: no phrase is begun. Several boundaries count as one."""
    trie: list[dict[int, int]] = [{}]
    ends, bounded = set[int](), [0]
    for phrase in phrases:
        node = 0
        for symbol in phrase:
            if symbol not in trie[node]:
                trie[node][symbol] = len(trie)
                trie.append({})
                bounded.append(int(symbol == BOUND))
            node = trie[node][symbol]
        ends.add(node)
    table = np.zeros((len(trie), symbols), np.int32)
    accepts = np.array([node in ends for node in range(len(trie))])
    shorter = [0] * len(trie)  # where the longest ending of a node begins some phrase
    waiting = deque([0])
    while waiting:
        node = waiting.popleft()
        accepts[node] |= accepts[shorter[node]]
        table[node] = table[shorter[node]]
        for symbol, child in trie[node].items():
            shorter[child] = int(table[node, symbol])
            table[node, symbol] = child
            waiting.append(child)
    after_bound = np.flatnonzero(bounded)
    table[after_bound, BOUND] = after_bound
    return table, accepts


# ---- repeats -----------------------------------------------------------------------------------------------
# No n-gram of units twice.


Units = tuple[int, ...]


class NoRepeat:
    """Forbids units that would end an n-gram which the translation already has. Its marks are the units so
    far."""

    def __init__(self, order: int) -> None:
        """`order`: n, at least 1."""
        self.order = order

    def begin(self) -> Units:
        """See Constraint."""
        return ()

    def follow(self, mark: Units, unit: int) -> Units:
        """See Constraint."""
        return (*mark, unit)

    def forbidden(self, mark: Units, left: int) -> Sequence[int]:
        """See Constraint."""
        size = self.order - 1
        last = mark[len(mark) - size :]
        return [mark[begin + size] for begin in range(len(mark) - size) if mark[begin : begin + size] == last]
