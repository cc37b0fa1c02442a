"""Byte-pair encoding as in subword-nmt: learn, apply, undo. `lower@@ case` -> `lowercase`."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import ClassVar, Self

from nmt.errors import DataError
from nmt.io import files
from nmt.io.numbers import shown
from nmt.text.moses import store
from nmt.text.subwords.merges import learn_merges
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
        units.add(symbol.removesuffix("</w>") if symbol.endswith("</w>") else symbol + SEPARATOR)
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
