"""Byte-pair encoding as in subword-nmt: learn, apply, undo. `lower@@ case` -> `lowercase`."""

import random
import re
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice, pairwise
from pathlib import Path
from typing import ClassVar, Self

from nmt.errors import DataError
from nmt.io import files
from nmt.io.numbers import shown
from nmt.text.moses import store
from nmt.text.subwords.protocol import MIN_FREQUENCY, LearnSettings, Sampler, TrainingText
from nmt.text.vocab import UNK, Vocab

SEPARATOR = "@@"


def learn(
    counts: Counter[str],
    merges: int,
    min_frequency: int = MIN_FREQUENCY,
    observe: Callable[[Iterable[int]], Iterable[int]] = lambda numbers: numbers,
) -> list[str]:
    """Learn codes from word counts, summed over both sides for joint codes; returns the lines of a file of
    codes (`#version: 0.2` first). `merges`: the most merges; `min_frequency`: rarer pairs are not merged;
    `observe`: wraps the iterator of merge numbers, for example to count them.

    Skips words with a carriage return, since no line of a file of codes can end with one.
    """
    words = {word: count for word, count in sorted(counts.items()) if "\r" not in word}
    pairs = learn_merges(words, merges, min_frequency, observe)
    return ["#version: 0.2", *(f"{first} {second}" for first, second in pairs)]


class BPE:
    """Byte-pair encoding by the merges in a file of codes, which `learn` or subword-nmt has learned. `lines`:
    those of the file; `name`: of the file, for messages. DataError for an unknown version, and for a line
    that is not two symbols."""

    kind: ClassVar[str] = "bpe"
    raw: ClassVar[bool] = False
    suffix: ClassVar[str] = "codes"
    rate_key: ClassVar[str] = "bpe_dropout"

    @classmethod
    def learn(cls, text: TrainingText, how: LearnSettings) -> Self:
        return cls(learn(text.words, how.merges, how.min_frequency, how.observe))

    def __init__(self, lines: list[str], name: str = "codes") -> None:
        self.lines = lines
        self.codes: dict[tuple[str, str], int] = {}  # merges and their ranks
        self.version = (0, 1)
        self.cache: dict[str, list[str]] = {}  # units of words, as many as `store` keeps
        for number, line in enumerate(lines, 1):
            if line.startswith("#version") and number == 1:
                self.version = parse_version(line, name)
                continue
            symbols = line.split(" ")
            if len(symbols) != 2 or "\t" in line or "" in symbols:
                symbols = files.split_words(line)
            if len(symbols) != 2:
                raise DataError(
                    f"{name}:{number}: {shown(line)} is not two symbols; is this a file of BPE codes?"
                )
            self.codes.setdefault((symbols[0], symbols[1]), number)

    def apply(self, words: list[str], dropout: float = 0.0) -> list[str]:
        """Split words into units, skipping each merge with probability `dropout`."""
        units: list[str] = []
        for word in words:
            if dropout:
                units += self.split(word, dropout)
                continue
            if (cached := self.cache.get(word)) is None:
                cached = store(self.cache, word, self.split(word))
            units += cached
        return units

    def split(self, word: str, dropout: float = 0.0) -> list[str]:
        """Split a word into units, skipping each merge with probability `dropout`.

        Bypasses subword-nmt's own reader of codes and lines, which takes a carriage return for white space.
        """
        from subword_nmt.apply_bpe import encode

        *parts, last = encode(word, self.codes, {}, None, SEPARATOR, self.version, {}, None, dropout)
        return [*(part + SEPARATOR for part in parts), last]

    @staticmethod
    def undo(units: list[str]) -> list[str]:
        """`lo@@ wer` -> `lower`. A separator at the very end of a sentence is dropped."""
        words, start = [], ""
        for unit in units:
            if unit.endswith(SEPARATOR):
                start += unit[: -len(SEPARATOR)]
            else:
                words.append(start + unit)
                start = ""
        return [*words, start] if start else words

    @staticmethod
    def spell(unit: str) -> str:
        """`lo@@` -> `lo`, `case` -> `case `"""
        return unit.removesuffix(SEPARATOR) if unit.endswith(SEPARATOR) else f"{unit} "

    def word_numbers(self, units: list[str]) -> list[int]:
        """`lo@@ wer case` -> 0 0 1"""
        numbers, word = [], 0
        for unit in units:
            numbers.append(word)
            word += not unit.endswith(SEPARATOR)
        return numbers

    def inventory(self, characters: Iterable[str], sampled: bool) -> Iterable[str]:
        """All units that can result when merges are dropped; none if they are not (`sampled` is false)."""
        return all_units(self.codes, characters) if sampled else ()

    @property
    def summary(self) -> str:
        return f"{len(self.codes):,} merges"

    def save(self, path: str | Path) -> None:
        files.write_text(path, self.lines)

    def sampler(self, rate: float, vocab: Vocab) -> Sampler:
        """Sampler of BPE dropout (Provilkov et al. 2020)."""
        return MergeDropout(self.lines, rate, vocab)


def parse_version(line: str, name: str) -> tuple[int, int]:
    """Parse the first line of a codes file: its version. DataError for an unknown one; `name` is the file.

    In 0.1 the end of a word is a symbol of its own, in 0.2 it is a part of the last symbol.
    """
    versions = {"#version: 0.1": (0, 1), "#version: 0.2": (0, 2)}
    if line.strip() not in versions:
        raise DataError(
            f"{name}:1: {shown(line)} is unknown, expected '#version: 0.1' or '#version: 0.2'; is this a "
            "file of BPE codes?"
        )
    return versions[line.strip()]


class MergeDropout:
    """Splits words anew, skipping each merge with probability `rate` (BPE dropout, Provilkov et al. 2020): a
    `Sampler` for the unit ids of `vocab`. A sentence with UNK is returned as it is.
    """

    def __init__(self, lines: list[str], rate: float, vocab: Vocab) -> None:
        """`lines`: of a file of codes."""
        self.subwords = BPE(lines)
        self.rate, self.vocab = rate, vocab

    def __call__(self, ids: Sequence[int], key: str) -> list[int]:
        if UNK in ids:  # a word that cannot be spelled cannot be cut either
            return list(ids)
        state = random.getstate()
        random.seed(key)  # subword-nmt draws from Python's own generator
        try:
            units = self.subwords.apply(BPE.undo(self.vocab.decode(ids)), self.rate)
        finally:
            random.setstate(state)
        return self.vocab.encode(units)


def all_units(codes: Iterable[tuple[str, str]], characters: Iterable[str]) -> list[str]:
    """All units that can result when merges of codes of version 0.2 are dropped, sorted: each of `characters`
    as a unit inside a word (with SEPARATOR) and at its end, and the result of each merge. With version 0.1,
    the result of any merge may also end a word; that unit is not listed."""
    units = {unit for character in characters for unit in (character, character + SEPARATOR)}
    for symbol in map("".join, codes):
        units.add(symbol.removesuffix(END) if symbol.endswith(END) else symbol + SEPARATOR)
    return sorted(units)


def load_codes(path: str | Path) -> BPE:
    """Load codes from a file. DataError for a file that cannot be read, is empty, or of another kind."""
    lines = list(files.read_lines(path))
    if not lines:
        raise DataError(f"{path}:1: empty file, expected BPE codes")
    if is_vocabulary(lines):
        raise DataError(
            f"{path}: is a vocabulary of subword-nmt (a unit and its count per line), expected its codes; "
            "give a vocabulary as vocab_file"
        )
    return BPE(lines, str(path))


def is_vocabulary(lines: list[str]) -> bool:
    """Whether each of the first 100 lines holds a unit and a count, in decreasing order. Codes whose first
    merges all look so do not occur."""
    first = [files.split_words(line) for line in islice(lines, 100)]
    if any(len(fields) != 2 or not fields[1].isdecimal() for fields in first):
        return False
    counts = [int(fields[1]) for fields in first]
    return counts == sorted(counts, reverse=True)


# ---- learning ----------------------------------------------------------------------------------------------
# The same merges as subword-nmt's (Sennrich et al. 2016), ten times faster.
#
# subword-nmt looks through all pairs for each merge. Here they wait in a queue, and the words that a merge
# changes are updated together. All else is computed as there: rare pairs are left out for a while, and counts
# that this loses, or that words with one symbol from two different pairs get wrong, are lost or wrong here
# too.


Symbols = tuple[str, ...]  # of a word; two of them are a pair
END = "</w>"  # a part of the last symbol of a word

PRUNED_EVERY = 100  # merges
FIRST_SHARE = 10  # at first, pairs are left out whose count is below the greatest divided by this
LATER_SHARE = 10000.0  # after n merges: below the greatest times n / (n + this)


def learn_merges(
    counts: Mapping[str, int],
    merges: int,
    min_frequency: int,
    observe: Callable[[Iterable[int]], Iterable[int]] = lambda numbers: numbers,
) -> Iterator[Symbols]:
    """Yield pairs of symbols to merge, the most frequent first, and of equally frequent pairs the greatest.

    `counts`: number of occurrences of each word, none of them empty; `merges`: the most merges;
    `min_frequency`: rarer pairs are not merged; `observe`: wraps the iterator of merge numbers, for example
    to show progress."""
    corpus = SegmentedWords(counts)
    if not corpus.pairs.counts:
        return
    for number in observe(range(merges)):
        pair = corpus.pairs.most_frequent(number)
        if pair is None or corpus.pairs.counts[pair] < min_frequency:
            return
        yield pair
        corpus.merge(pair)
        if number % PRUNED_EVERY == 0:
            corpus.pairs.prune()


class SegmentedWords:
    """The words of a text with their counts, as symbols that are merged step by step."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.words: list[Symbols] = [(*word[:-1], word[-1] + END) for word in counts]
        self.frequencies = list(counts.values())
        # subword-nmt merges by a regular expression, to which a no-break space separates symbols.
        self.with_space = {index for index, word in enumerate(counts) if word.split() != [word]}
        self.symbols = {symbol for word in self.words for symbol in word}
        # Pairs -> indices of the words that have them -> number of occurrences.
        self.occurrences: dict[Symbols, dict[int, int]] = {}
        pairs: defaultdict[Symbols, int] = defaultdict(int)
        for index, (word, frequency) in enumerate(zip(self.words, self.frequencies, strict=True)):
            for pair in pairwise(word):
                pairs[pair] += frequency
                self.add(pair, index, 1)
        self.pairs = PairQueue(pairs)

    def add(self, pair: Symbols, index: int, occurrences: int) -> None:
        """Add to the number of occurrences of a pair in a word."""
        entry = self.occurrences.setdefault(pair, {})
        entry[index] = entry.get(index, 0) + occurrences

    def merge(self, pair: Symbols) -> None:
        """Replace a pair by one symbol in all words, and update the counts of the neighboring pairs."""
        first, second = pair
        merged = first + second
        new_symbol = merged not in self.symbols and first != second
        self.symbols.add(merged)
        # Symbols before and after the pair -> indices of the words, if it occurs only once in them.
        preceding: defaultdict[str, list[int]] = defaultdict(list)
        following: defaultdict[str, list[int]] = defaultdict(list)
        changed: set[Symbols] = set()
        words, with_space = self.words, self.with_space
        indices, self.occurrences[pair] = self.occurrences.get(pair, {}), {}
        for index, occurrences in indices.items():
            word = words[index]
            if occurrences < 1:
                continue
            position = word.index(first) if new_symbol and word.count(first) == 1 else len(word)
            if word[position + 1 : position + 2] != pair[1:] or index in with_space:
                changed.update(self.merge_in_word(pair, merged, index))
                continue
            if position:
                preceding[word[position - 1]].append(index)
            if position + 2 < len(word):
                following[word[position + 2]].append(index)
            words[index] = (*word[:position], merged, *word[position + 2 :])
        for symbol, members in preceding.items():
            changed.update(self.replace((symbol, first), (symbol, merged), members))
        for symbol, members in following.items():
            changed.update(self.replace((second, symbol), (merged, symbol), members))
        self.pairs.counts[pair] = 0
        self.pairs.push(changed - {pair})

    def replace(self, old: Symbols, new: Symbols, indices: list[int]) -> tuple[Symbols, Symbols]:
        """Count a `new` pair for an `old` one in each of the words at `indices`; returns both pairs."""
        frequency = sum(map(self.frequencies.__getitem__, indices))
        counts = self.pairs.counts
        counts[old] -= frequency
        counts[new] += frequency
        entry = self.occurrences.setdefault(old, {})
        for index in indices:
            entry[index] = entry.get(index, 0) - 1
        self.occurrences.setdefault(new, {}).update(dict.fromkeys(indices, 1))
        return old, new

    def merge_in_word(self, pair: Symbols, merged: str, index: int) -> Iterator[Symbols]:
        """Merge a pair in one word and yield the pairs whose counts change, as subword-nmt counts them."""
        word, frequency = self.words[index], self.frequencies[index]
        merge = merge_by_pattern if index in self.with_space else merge_symbols
        self.words[index] = merge(word, pair, merged)
        for neighbors in pairs_beside(word, pair):
            self.pairs.counts[neighbors] -= frequency
            self.add(neighbors, index, -1)
            yield neighbors
        for neighbors in pairs_with(self.words[index], merged):
            self.pairs.counts[neighbors] += frequency
            self.add(neighbors, index, 1)
            yield neighbors


def merge_symbols(word: Symbols, pair: Symbols, merged: str) -> Symbols:
    """Replace each occurrence of a pair by the symbol `merged`, from left to right."""
    symbols: list[str] = []
    position = 0
    while position < len(word):
        match = word[position : position + 2] == pair
        symbols.append(merged if match else word[position])
        position += 2 if match else 1
    return tuple(symbols)


def merge_by_pattern(word: Symbols, pair: Symbols, merged: str) -> Symbols:
    """Like `merge_symbols`, by a pattern, for which symbols also end at white space inside them."""
    pattern = rf"(?<!\S){re.escape(' '.join(pair))}(?!\S)"
    return tuple(re.sub(pattern, lambda match: merged, " ".join(word)).split(" "))


def pairs_beside(word: Symbols, pair: Symbols) -> Iterator[Symbols]:
    """The pairs that overlap an occurrence of `pair` in a word that is not merged yet: the symbol before it
    with its first symbol, and its second symbol with the one after it. A pair between two adjacent
    occurrences is listed once."""
    position = 0
    while position < len(word) - 1:
        if word[position : position + 2] != pair:
            position += 1
            continue
        if position:
            yield word[position - 1 : position + 1]
        if position + 2 < len(word) and word[position + 2 : position + 4] != pair:
            yield word[position + 1 : position + 3]
        position += 2


def pairs_with(word: Symbols, symbol: str) -> Iterator[Symbols]:
    """The pairs of `symbol` with a symbol beside it; a pair of two adjacent occurrences is listed once."""
    for position in range(len(word)):
        if word[position] == symbol:
            if position:
                yield word[position - 1 : position + 1]
            if position + 1 < len(word) and word[position + 1] != symbol:
                yield word[position : position + 2]


class PairQueue:
    """Pairs, queued by count. Rare ones are set aside (`prune`) until no frequent pair is left."""

    def __init__(self, counts: defaultdict[Symbols, int]) -> None:
        self.counts = counts
        self.aside = counts.copy()
        self.threshold = max(counts.values(), default=0) / FIRST_SHARE
        self.fill()

    def fill(self) -> None:
        """Fill the queue with all pairs."""
        self.queue: defaultdict[int, list[Symbols]] = defaultdict(list)  # count -> pairs that had it
        for pair, count in self.counts.items():
            self.queue[count].append(pair)
        self.heap = [-count for count in self.queue]  # the greatest count first
        heapify(self.heap)
        self.ordered = 0  # the count whose pairs are in order

    def push(self, pairs: Iterable[Symbols]) -> None:
        """Queue pairs whose counts have changed."""
        for pair in pairs:
            count = self.counts[pair]
            if count == self.ordered:
                insort(self.queue[count], pair)
                continue
            if count not in self.queue:
                heappush(self.heap, -count)
            self.queue[count].append(pair)

    def first(self) -> Symbols | None:
        """The first pair of the queue; None if no pair has a count above 0."""
        while self.heap and (count := -self.heap[0]) > 0:
            pairs = self.queue[count]
            if count != self.ordered:
                pairs.sort()
                self.ordered = count
            while pairs:
                if self.counts.get(pairs[-1]) == count:
                    return pairs[-1]
                pairs.pop()  # its count has changed since
            del self.queue[count]
            heappop(self.heap)
            self.ordered = 0
        return None

    def most_frequent(self, merges: int) -> Symbols | None:
        """The most frequent pair after `merges` merges. Looks at the pairs set aside if all others have
        become rarer than the threshold."""
        pair = self.first()
        if pair is None or (merges and self.counts[pair] < self.threshold):
            self.prune()
            self.counts = self.aside.copy()
            self.threshold = max(self.counts.values()) * merges / (merges + LATER_SHARE)
            self.prune()
            self.fill()
            pair = self.first()
        return pair

    def prune(self) -> None:
        """Put the counts below the threshold aside. A count replaces the one that was set aside before, which
        gets lost; a negative count, the change of a pair since it was set aside, is added to it."""
        threshold = self.threshold
        for pair in [pair for pair, count in self.counts.items() if count < threshold]:
            count = self.counts.pop(pair)
            self.aside[pair] = count + (self.aside[pair] if count < 0 else 0)
