"""Byte-pair encoding through subword-nmt: learn, apply, undo. `lower@@ case` -> `lowercase`."""

import io
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from nmt import files
from nmt.data.vocab import UNK, Vocab
from nmt.errors import DataError

SEPARATOR = "@@"


def count_words(lines: Iterable[list[str]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for words in lines:
        counts.update(words)
    return counts


def learn(counts: Counter[str], merges: int, min_frequency: int = 2) -> list[str]:
    """The lines of a code file (`#version: 0.2` first), from word counts. For joint codes add the counts of both sides."""
    from subword_nmt import learn_bpe

    learn_bpe.tqdm = lambda merges, *args, **kwargs: merges  # its bar would be drawn on a pipe or file too
    dictionary = io.StringIO("".join(f"{word} {count}\n" for word, count in sorted(counts.items())), newline="\n")
    codes = io.StringIO()
    learn_bpe.learn_bpe(dictionary, codes, merges, min_frequency, is_dict=True)
    return codes.getvalue().rstrip("\n").split("\n")


class Subwords:
    """Codes as learned by `learn` or by subword-nmt. DataError for a line that is not two symbols."""

    def __init__(self, lines: list[str], name: str = "codes") -> None:
        from subword_nmt.apply_bpe import BPE

        for number, line in enumerate(lines, 1):
            if line.startswith("#version") and number == 1:
                continue
            if len(files.split_words(line)) != 2:  # subword-nmt itself would leave the process here
                raise DataError(f"{name}:{number}: {line[:60]!r} is not two symbols; is this a file of BPE codes?")
        self.lines = lines
        self.bpe = BPE(io.StringIO("\n".join(lines) + "\n", newline="\n"), separator=SEPARATOR)

    def apply(self, words: list[str]) -> list[str]:
        return self.bpe.segment_tokens(words)


class DroppedMerges:
    """Words cut anew each time they are seen, every merge left out with a chance of `rate` (BPE dropout, Provilkov et al. 2020).

    Works on ids: unit ids of `vocab` in, unit ids out. The same `key` gives the same cuts.
    """

    def __init__(self, lines: list[str], rate: float, vocab: Vocab) -> None:
        self.bpe = Subwords(lines).bpe  # of its own: subword-nmt remembers what it cut, dropped merges included
        self.rate, self.vocab = rate, vocab

    def __call__(self, ids: Sequence[int], key: str) -> list[int]:
        if UNK in ids:  # a word that cannot be spelled cannot be cut anew
            return list(ids)
        before = random.getstate()
        random.seed(key)  # subword-nmt draws from Python's own generator
        try:
            units = self.bpe.segment_tokens(undo(self.vocab.decode(ids)), dropout=self.rate)
        finally:
            random.setstate(before)
        return self.vocab.encode(units)


def all_units(lines: list[str], counts: Counter[str]) -> Counter[str]:
    """Every unit that dropped merges can give, once each: single characters and what each merge makes, inside and at the end of a word."""
    characters = {character for word in counts for character in word}
    units = {character + SEPARATOR for character in characters} | characters
    for line in lines:
        if not line.startswith("#version"):
            symbol = "".join(files.split_words(line))
            units.add(symbol.removesuffix("</w>") if symbol.endswith("</w>") else symbol + SEPARATOR)
    return Counter(dict.fromkeys(sorted(units), 1))


def undo(units: list[str]) -> list[str]:
    """Join `lo@@ wer` to `lower`. A separator at the very end of a sentence is dropped."""
    words, start = [], ""
    for unit in units:
        if unit.endswith(SEPARATOR):
            start += unit[: -len(SEPARATOR)]
        else:
            words.append(start + unit)
            start = ""
    return [*words, start] if start else words


def load(path: str | Path) -> Subwords:
    lines = list(files.read_lines(path))
    if not lines:
        raise DataError(f"{path}:1: empty file, expected BPE codes")
    return Subwords(lines, str(path))
