"""Byte-pair encoding by subword-nmt: learn, apply, undo. `lower@@ case` -> `lowercase`."""

import io
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from nmt import files
from nmt.errors import DataError
from nmt.numbers import shown
from nmt.text.vocab import UNK, Vocab

SEPARATOR = "@@"
MIN_FREQUENCY = 2  # rarer pairs are not merged


def count_words(lines: Iterable[list[str]]) -> Counter[str]:
    """How often each word occurs."""
    counts: Counter[str] = Counter()
    for words in lines:
        counts.update(words)
    return counts


def learn(counts: Counter[str], merges: int, min_frequency: int = MIN_FREQUENCY) -> list[str]:
    """The lines of a file of codes (`#version: 0.2` first) from word counts, those of both sides for joint
    codes.

    Words with a carriage return are left out: no line of a file of codes can end with one.
    """
    from subword_nmt import learn_bpe

    words = {word: count for word, count in sorted(counts.items()) if "\r" not in word}
    if all(len(word) == 1 for word in words):
        return ["#version: 0.2"]
    learn_bpe.tqdm = lambda merges, *args, **kwargs: merges  # a progress bar would go to pipes and files, too
    learn_bpe.get_vocabulary = lambda words, *args: words  # its own splits lines into words differently
    codes = io.StringIO(newline="\n")
    learn_bpe.learn_bpe(words, codes, merges, min_frequency, is_dict=True)
    return codes.getvalue().rstrip("\n").split("\n")


class Subwords:
    """Codes as learned by `learn` or by subword-nmt. DataError for a line that is not two symbols."""

    def __init__(self, lines: list[str], name: str = "codes") -> None:
        self.lines = lines
        self.codes: dict[tuple[str, str], int] = {}  # merges and their ranks
        self.version = (0, 1)
        self.cache: dict[str, tuple[str, ...]] = {}
        for number, line in enumerate(lines, 1):
            if line.startswith("#version") and number == 1:
                self.version = version_of(line, name)
                continue
            symbols = tuple(files.split_words(line))
            if len(symbols) != 2:
                raise DataError(
                    f"{name}:{number}: {shown(line)} is not two symbols; is this a file of BPE codes?"
                )
            self.codes.setdefault(symbols, number)

    def apply(self, words: list[str], dropout: float = 0.0) -> list[str]:
        """Words cut into units, each merge left out with the chance `dropout`.

        This bypasses subword-nmt's own reader of codes and lines, which takes a carriage return for white
        space.
        """
        from subword_nmt.apply_bpe import encode

        units: list[str] = []
        for word in words:
            *parts, last = encode(
                word, self.codes, {}, None, SEPARATOR, self.version, self.cache, None, dropout
            )
            units += [part + SEPARATOR for part in parts]
            units.append(last)
        return units


def version_of(line: str, name: str) -> tuple[int, int]:
    """The version of a file of codes, whose first line this is.

    In 0.1 the end of a word is a symbol of its own, in 0.2 it is a part of the last symbol.
    """
    known = {"#version: 0.1": (0, 1), "#version: 0.2": (0, 2)}
    if line.strip() not in known:
        raise DataError(
            f"{name}:1: {shown(line)} is unknown, expected '#version: 0.1' or '#version: 0.2'; is this a "
            "file of BPE codes?"
        )
    return known[line.strip()]


class DroppedMerges:
    """Cuts words anew each time they are seen, leaving out every merge with the chance `rate` (BPE dropout,
    Provilkov et al. 2020).

    Works on ids: unit ids of `vocab` in, unit ids out. The same `key` gives the same cuts.
    """

    def __init__(self, lines: list[str], rate: float, vocab: Vocab) -> None:
        self.subwords = Subwords(lines)  # not shared: its cache remembers words whose merges were dropped
        self.rate, self.vocab = rate, vocab

    def __call__(self, ids: Sequence[int], key: str) -> list[int]:
        if UNK in ids:  # a word that cannot be spelled cannot be cut either
            return list(ids)
        before = random.getstate()
        random.seed(key)  # subword-nmt draws from Python's own generator
        try:
            units = self.subwords.apply(undo(self.vocab.decode(ids)), self.rate)
        finally:
            random.setstate(before)
        return self.vocab.encode(units)


def all_units(lines: list[str], counts: Counter[str]) -> Counter[str]:
    """Every unit that dropped merges can give, once each: single characters and the result of each merge,
    inside and at the end of a word."""
    characters = {character for word in counts for character in word}
    units = {character + SEPARATOR for character in characters} | characters
    for line in lines:
        if not line.startswith("#version"):
            symbol = "".join(files.split_words(line))
            units.add(symbol.removesuffix("</w>") if symbol.endswith("</w>") else symbol + SEPARATOR)
    return Counter(dict.fromkeys(sorted(units), 1))


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


def load_codes(path: str | Path) -> Subwords:
    """The codes of a file. DataError for a file of another kind."""
    lines = list(files.read_lines(path))
    if not lines:
        raise DataError(f"{path}:1: empty file, expected BPE codes")
    return Subwords(lines, str(path))
