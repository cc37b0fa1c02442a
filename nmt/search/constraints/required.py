"""Phrases that a translation must contain.

Each occurs at least as often as it is given, as whole words. Occurrences of different phrases may share
units (`new york` and `york city` are both in `new york city`), but a phrase that is a part of another one
must also occur outside of it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import mul, sub
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nmt.search.constraints.protocol import Units
from nmt.text.spelling import Joints
from nmt.text.vocab import EOS

Phrase = tuple[int, ...]
Key = TypeVar("Key")
Result = TypeVar("Result")

REMEMBERED = 20_000  # results of a sentence


class Progress(NamedTuple):
    """How far a hypothesis has come."""

    counts: tuple[int, ...]  # how often each phrase is there, at most as often as it is required
    begun: tuple[tuple[int, int], ...] = ()  # phrases that are there in part, and how many units of them
    ended: tuple[int, ...] = ()  # phrases that count, too, unless the next unit belongs to the same word
    inside: bool = False  # may the next unit belong to the same word?


class Required:
    """See Demand. Hypotheses cannot end before they have every phrase, nor go so far that there is no room
    left for them."""

    def __init__(self, phrases: Iterable[Sequence[int]], joints: Joints) -> None:
        """`phrases`: at least one, none of them empty; the same one twice must be there twice."""
        times = occurrences(Counter(tuple(phrase) for phrase in phrases), joints)
        self.phrases, self.times, self.joints = list(times), list(times.values()), joints
        self.sizes = list(map(len, self.phrases))
        self.starting: dict[int, list[int]] = {}  # phrases by their first unit
        for number, phrase in enumerate(self.phrases):
            self.starting.setdefault(phrase[0], []).append(number)
        self.units = sum(len(phrase) * times for phrase, times in zip(self.phrases, self.times, strict=True))
        # Inside of a word no phrase can begin.
        self.waits = any(joints.open_start[phrase[0]] for phrase in self.phrases)
        self.next: dict[tuple[Progress, int], Progress] = {}
        self.states: dict[Progress, tuple[list[int], int, int]] = {}

    def vocabulary(self) -> set[int]:
        """See Demand."""
        return {unit for phrase in self.phrases for unit in phrase}

    def begin(self) -> Progress:
        """See Constraint."""
        return Progress((0,) * len(self.phrases))

    def follow(self, mark: Progress, unit: int) -> Progress:
        """See Constraint."""
        key = (mark, unit)
        if key not in self.next:
            forget(self.next)
            self.next[key] = self.advanced(mark, unit)
        return self.next[key]

    def advanced(self, mark: Progress, unit: int) -> Progress:
        """As `follow`."""
        same_word = mark.inside and bool(self.joints.open_start[unit])
        counts = mark.counts if same_word else added(mark.counts, mark.ended)
        starts = () if same_word else ((phrase, 0) for phrase in self.starting.get(unit, ()))
        begun, ended = list[tuple[int, int]](), list[int]()
        for phrase, there in (*mark.begun, *starts):
            units = self.phrases[phrase]
            if units[there] == unit and counts[phrase] < self.times[phrase]:
                if there + 1 == len(units):
                    ended.append(phrase)
                else:
                    begun.append((phrase, there + 1))
        if self.joints.open_end[unit]:
            return Progress(counts, tuple(begun), tuple(ended), True)
        return Progress(added(counts, ended), tuple(begun))

    def missing(self, counts: Sequence[int]) -> list[int]:
        """How often each phrase is still to come."""
        return list(map(sub, self.times, counts))

    def size(self, missing: Sequence[int]) -> int:
        """The units of phrases that are to come."""
        return sum(map(mul, self.sizes, missing))

    def state(self, mark: Progress) -> tuple[list[int], int, int]:
        """How often each phrase is missing, their units, and how many of those the furthest phrase that is
        begun has."""
        if mark not in self.states:
            forget(self.states)
            missing = self.missing(added(mark.counts, mark.ended))
            there = max((there for phrase, there in mark.begun if missing[phrase]), default=0)
            self.states[mark] = missing, self.size(missing), there
        return self.states[mark]

    def met(self, mark: Progress) -> int:
        """See Demand."""
        _, size, there = self.state(mark)
        return self.units - size + there

    def needed(self, mark: Progress) -> int:
        """See Demand: a phrase that is begun goes on, or a new one begins; then all others, one after the
        other."""
        missing, size, _ = self.state(mark)
        again = self.size(self.missing(mark.counts))
        # Inside of a word a word has to end first.
        choices = [size + int(self.waits and mark.inside and size > 0)]
        for phrase, there in mark.begun:
            if missing[phrase]:
                same_word = mark.inside and self.joints.open_start[self.phrases[phrase][there]]
                choices.append((again if same_word else size) - there)
        return min(choices)

    def wanted(self, mark: Progress) -> list[int]:
        """See Demand."""
        missing, _, _ = self.state(mark)
        begun = [self.phrases[phrase][there] for phrase, there in mark.begun if missing[phrase]]
        starts = [phrase[0] for phrase, times in zip(self.phrases, missing, strict=True) if times]
        if mark.inside:
            starts = [unit for unit in starts if not self.joints.open_start[unit]]
        return list(dict.fromkeys(begun + starts))

    def forbidden(self, mark: Progress, left: int) -> Units:
        """See Constraint: the end, as long as something is missing, and where there is hardly room left for
        that, all units after which there would be too little."""
        _, size, _ = self.state(mark)
        end = [EOS] if size else []
        at_worst = self.size(self.missing(mark.counts)) + int(self.waits)
        if not left or at_worst < left:
            return end
        after = self.needed_after(mark)
        after[EOS] = left if size else 0
        return np.flatnonzero(after >= left)

    def needed_after(self, mark: Progress) -> NDArray[np.int64]:
        """`needed` after each next unit: (V,)"""
        joints = self.joints
        size, again = self.state(mark)[1], self.size(self.missing(mark.counts))
        after = np.where(joints.open_start & mark.inside, again, size)
        after += joints.open_end & (after > 0) & self.waits
        for unit in self.wanted(mark):
            after[unit] = self.needed(self.follow(mark, unit))
        return after


def added(counts: Sequence[int], phrases: Sequence[int]) -> tuple[int, ...]:
    """Counts with some phrases counted once more."""
    if not phrases:
        return tuple(counts)
    more = list(counts)
    for phrase in phrases:
        more[phrase] += 1
    return tuple(more)


def occurrences(phrases: Counter[Phrase], joints: Joints) -> dict[Phrase, int]:
    """How often each phrase has to be there: as often as it stands in all of them as whole words."""
    times, sizes = dict.fromkeys(phrases, 0), {len(phrase) for phrase in phrases}
    for text, count in phrases.items():
        for size in sizes:
            for start in range(len(text) - size + 1):
                part = text[start : start + size]
                if part in times and not joints.inside(text, start) and not joints.inside(text, start + size):
                    times[part] += count
    return times


def forget(results: dict[Key, Result]) -> None:
    """Empty a dictionary of results that has become large: with many phrases each result is large, too."""
    if len(results) >= REMEMBERED:
        results.clear()
