"""Count in how many sentence pairs of a text phrases occur, alone and together, and test how significant that
is.

Each side of the text has a suffix array: the positions of its words, sorted by the words that follow. Memory
does not grow with the table: 12 bytes for each word of either side, 32 for each line, and about 30 more for
each word of one side while its suffixes are sorted.
"""

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.compute.compiled import njit
from nmt.errors import DataError
from nmt.formats.phrase_table import PhrasePair
from nmt.io import files
from smt_bridge.tables.filter import split

Numbers = NDArray[np.int32]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DEPTH = 8  # words by which suffixes are sorted; of longer phrases the rest is compared at each occurrence
END_OF_SENTENCE = 0  # words are numbered from 1
UNKNOWN = -1
MOST_WORDS = 2**31 - 1 - 2**20  # of one side, whose positions are 32-bit numbers
FREQUENT = 256  # occurrences from which the number of sentences with a target phrase is kept between calls


class SideArrays(NamedTuple):
    """A side of the text for compiled functions; T words, with an end of sentence after each line."""

    text: Numbers  # (T,)
    suffixes: Numbers  # (T,) positions, sorted by the next DEPTH words
    sentence: Numbers  # (T,) line of each position
    starts: Ints  # (lines + 1,) position of the first word of each line


class Phrases(NamedTuple):
    """Distinct phrases for compiled functions. Words that the text does not have are UNKNOWN."""

    words: Numbers
    bounds: Ints  # (phrases + 1,) phrase i is words[bounds[i] : bounds[i + 1]]
    low: Ints  # (phrases,) the suffixes low to high - 1 begin with the phrase, or its first DEPTH words
    high: Ints


@dataclass
class IndexedText:
    """One side of the text: its words, and its suffix array."""

    numbers: dict[bytes, int]
    arrays: SideArrays

    def look_up(self, phrases: Iterable[bytes]) -> Phrases:
        """Find phrases in the suffix array; words that the text does not have are UNKNOWN."""
        words, bounds = array("i"), array("q", [0])
        for phrase in phrases:
            words.extend(self.numbers.get(word, UNKNOWN) for word in split(phrase))
            bounds.append(len(words))
        ranges = np.zeros((2, len(bounds) - 1), np.int64)
        located = Phrases(np.array(words, np.int32), np.array(bounds, np.int64), ranges[0], ranges[1])
        locate(self.arrays, located)
        return located


class TextCollector:
    """Collects the lines of one side."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self.text, self.starts = array("i"), array("q", [0])

    def add(self, line: str) -> None:
        numbers = self.numbers
        for word in split(line.encode("utf-8")):
            self.text.append(numbers.setdefault(word, len(numbers) + 1))
        self.text.append(END_OF_SENTENCE)
        self.starts.append(len(self.text))

    def finish(self) -> IndexedText:
        """Build the suffix array of the text. The collector must not be used again."""
        text, starts = np.array(self.text, np.int32), np.array(self.starts, np.int64)
        self.text = array("i")
        sentence = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
        return IndexedText(self.numbers, SideArrays(text, sort_suffixes(text), sentence, starts))


def sort_suffixes(text: Numbers) -> Numbers:
    """Sort the positions of a text (T,) by the next DEPTH words, with END_OF_SENTENCE beyond its end: (T,).
    The number of words that are compared is doubled each time (Manber and Myers 1993)."""
    ranks, order = text.copy(), np.zeros(len(text), np.int32)
    width = 1
    while width < DEPTH:
        keys = ranks * np.int64(ranks.max(initial=0) + 1)
        keys[:-width] += ranks[width:]
        order = np.argsort(keys).astype(np.int32)
        keys = keys[order]
        ranks[order[1:]] = np.cumsum(keys[1:] != keys[:-1], dtype=np.int32)
        ranks[order[:1]] = 0
        width *= 2
    return order


class Cooccurrences:
    """Counts phrases in the sentence pairs of a parallel text."""

    def __init__(self, source: str, target: str) -> None:
        """Read both texts, build suffix arrays. DataError if they are not parallel, too long, or empty."""
        sides = TextCollector(), TextCollector()
        for lines in files.parallel(source, target):
            for side, line in zip(sides, lines, strict=True):
                side.add(line)
            if max(len(side.text) for side in sides) > MOST_WORDS:
                raise DataError(f"{source}, {target}: over {MOST_WORDS:,} words; give a part of the lines")
        self.source, self.target = (side.finish() for side in sides)
        self.pairs = len(self.source.arrays.starts) - 1  # sentence pairs
        if not self.source.numbers or not self.target.numbers:
            raise DataError(f"{source}, {target}: no words, expected the text that the table was made from")
        self.frequent: dict[bytes, int] = {}  # numbers of sentences with frequent target phrases

    def count(self, pairs: Sequence[PhrasePair]) -> Ints:
        """Count the sentence pairs with the source phrase, the target phrase, and both: (pairs, 3)"""
        sources, source_rows = distinct([pair.source for pair in pairs])
        targets, target_rows = distinct([pair.target for pair in pairs])
        source, target = self.source.look_up(sources), self.target.look_up(targets)
        cached = np.array([self.frequent.get(phrase, -1) for phrase in targets], np.int64)
        counts = np.zeros((len(pairs), 3), np.int64)
        sides = self.source.arrays, self.target.arrays
        count_pairs(*sides, source, target, source_rows, target_rows, cached, counts)
        for index in np.flatnonzero(target.high - target.low >= FREQUENT):
            self.frequent[targets[index]] = int(cached[index])
        return counts


def distinct(phrases: Sequence[bytes]) -> tuple[list[bytes], Ints]:
    """The distinct phrases in order of their first occurrence, and the index of each phrase among them."""
    numbers: dict[bytes, int] = {}
    indices = [numbers.setdefault(phrase, len(numbers)) for phrase in phrases]
    return list(numbers), np.array(indices, np.int64)


# ---- counting ----------------------------------------------------------------------------------------------


@njit
def compare(text: Numbers, position: int, words: Numbers, start: int, end: int) -> int:
    """Compare the text at a position with a phrase: negative, 0 or positive as the text comes before it,
    begins with it, or comes after it. An end of sentence is unequal to every word of a phrase."""
    for i in range(end - start):
        difference = text[position + i] - words[start + i]
        if difference != 0:
            return int(difference)
    return 0


@njit
def locate(side: SideArrays, phrases: Phrases) -> None:
    """Find the suffixes that begin with each phrase, by binary search; sets `low` and `high`."""
    for phrase in range(len(phrases.low)):
        start = phrases.bounds[phrase]
        end = min(phrases.bounds[phrase + 1], start + DEPTH)
        low, high = 0, len(side.suffixes)
        while low < high:
            middle = (low + high) // 2
            if compare(side.text, side.suffixes[middle], phrases.words, start, end) < 0:
                low = middle + 1
            else:
                high = middle
        phrases.low[phrase] = low
        high = len(side.suffixes)
        while low < high:
            middle = (low + high) // 2
            if compare(side.text, side.suffixes[middle], phrases.words, start, end) <= 0:
                low = middle + 1
            else:
                high = middle
        phrases.high[phrase] = low


@njit
def list_sentences(
    side: SideArrays, phrases: Phrases, phrase: int, marks: Numbers, mark: int, sentences: Numbers
) -> int:
    """Write the sentences with phrase number `phrase` into `sentences`, each once, in no order; returns their
    number. Sets `marks` (lines,) of these sentences to `mark`, which no sentence may have before."""
    start, end = phrases.bounds[phrase], phrases.bounds[phrase + 1]
    count = 0
    for rank in range(phrases.low[phrase], phrases.high[phrase]):
        position = side.suffixes[rank]
        if end - start > DEPTH and compare(side.text, position, phrases.words, start, end) != 0:
            continue
        sentence = side.sentence[position]
        if marks[sentence] != mark:
            marks[sentence] = mark
            sentences[count] = sentence
            count += 1
    return count


@njit
def has_phrase(side: SideArrays, sentence: int, phrases: Phrases, phrase: int) -> bool:
    """Whether a sentence has phrase number `phrase`, found by reading the sentence."""
    start, end = phrases.bounds[phrase], phrases.bounds[phrase + 1]
    for position in range(side.starts[sentence], side.starts[sentence + 1]):
        if compare(side.text, position, phrases.words, start, end) == 0:
            return True
    return False


@njit
def count_pairs(
    source_side: SideArrays,
    target_side: SideArrays,
    sources: Phrases,
    targets: Phrases,
    source_rows: Ints,
    target_rows: Ints,
    target_counts: Ints,
    counts: Ints,
) -> None:
    """Count sentence pairs into `counts` (R, 3). Row r has the phrases `source_rows[r]` of `sources` and
    `target_rows[r]` of `targets`. `target_counts`: (targets,) numbers of sentences; -1, where they are
    not known yet, is replaced.

    The rarer phrase of a row decides the cost: either its source sentences are marked and the occurrences
    of the target looked up, or its target sentences are read.
    """
    lines = len(source_side.starts) - 1
    source_marks, target_marks = np.zeros(lines, np.int32), np.zeros(lines, np.int32)
    sentences, scratch = np.zeros(lines, np.int32), np.zeros(lines, np.int32)
    source_mark, target_mark, source_count, previous = 0, 0, 0, -1
    for row in range(len(source_rows)):
        source, target = source_rows[row], target_rows[row]
        if source != previous:
            previous = source
            source_mark += 1
            source_count = list_sentences(source_side, sources, source, source_marks, source_mark, sentences)
        if target_counts[target] < 0:
            target_mark += 1
            target_counts[target] = list_sentences(
                target_side, targets, target, target_marks, target_mark, scratch
            )
        joint = 0
        if target_counts[target] <= source_count:
            target_mark += 1
            matches = list_sentences(target_side, targets, target, target_marks, target_mark, scratch)
            for i in range(matches):
                if source_marks[scratch[i]] == source_mark:
                    joint += 1
        else:
            for i in range(source_count):
                if has_phrase(target_side, sentences[i], targets, target):
                    joint += 1
        counts[row, 0], counts[row, 1], counts[row, 2] = source_count, target_counts[target], joint


# ---- significance ------------------------------------------------------------------------------------------


@njit
def log_probability(joint: int, source: int, target: int, pairs: int) -> float:
    """ln p of exactly `joint` common sentence pairs, if both phrases were spread over the sentence pairs at
    random: the hypergeometric distribution. `source`, `target`: sentence pairs with each phrase; `pairs`: all
    sentence pairs."""
    return (
        (math.lgamma(source + 1.0) - math.lgamma(joint + 1.0) - math.lgamma(source - joint + 1.0))
        + math.lgamma(pairs - source + 1.0)
        - math.lgamma(target - joint + 1.0)
        - math.lgamma(pairs - source - target + joint + 1.0)
        - (math.lgamma(pairs + 1.0) - math.lgamma(target + 1.0) - math.lgamma(pairs - target + 1.0))
    )


@njit
def significance(joint: int, source: int, target: int, pairs: int) -> float:
    """-ln p of Fisher's exact test, one-sided: p is the probability of `joint` or more common sentence pairs
    (Johnson et al. 2007, who write the counts C(s,t), C(s), C(t) and N)."""
    if joint <= max(0, source + target - pairs):
        return 0.0
    total, term = 1.0, 1.0
    if joint * float(pairs) > source * float(target):  # more than the mean: terms of the sum get smaller
        for k in range(joint, min(source, target)):
            term *= (source - k) * float(target - k) / ((k + 1.0) * (pairs - source - target + k + 1.0))
            total += term
            if term < total * 1e-17:
                break
        return max(0.0, -log_probability(joint, source, target, pairs) - math.log(total))
    for k in range(joint - 1, max(0, source + target - pairs), -1):
        term *= k * float(pairs - source - target + k) / ((source - k + 1.0) * (target - k + 1.0))
        total += term
        if term < total * 1e-17:
            break
    return -math.log1p(-total * math.exp(log_probability(joint - 1, source, target, pairs)))


@njit
def significances(counts: Ints, pairs: int) -> Floats:
    """-ln p of Fisher's exact test for each row of `counts` (R, 3): sentence pairs with the source, the
    target, and both: (R,). `pairs`: number of all sentence pairs."""
    values = np.zeros(len(counts), np.float64)
    for row in range(len(counts)):
        values[row] = significance(counts[row, 2], counts[row, 0], counts[row, 1], pairs)
    return values
