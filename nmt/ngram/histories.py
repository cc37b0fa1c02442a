"""How often the contexts of a text's words occur: what context-dependent interpolation goes by."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from nmt import files, numbers
from nmt.errors import DataError
from nmt.ngram.arpa import BOS, Ints

HEADER = "#version: 1 histories"
LENGTH = 64  # evidence of a context of n words begins at n LENGTH


class Histories:
    """Counts of contexts of up to `words` words; a sentence begins with <s>."""

    def __init__(self, words: int, counts: dict[str, int]) -> None:
        self.words, self.counts = words, counts

    @classmethod
    def count(cls, texts: Iterable[Sequence[str]], words: int) -> "Histories":
        """The contexts of each word of some sentences and of their ends."""
        counts: Counter[str] = Counter()
        for text in texts:
            for context in contexts(text, words):
                counts.update(" ".join(context[at:]) for at in range(len(context)))
        return cls(words, counts)

    def evidence(self, text: Sequence[str]) -> Ints:
        """How much is known of the context of each word and of the end: the larger, the more. It is the
        length of the longest context that was counted, then the logarithm of its count to base 2: (words +
        1,)"""
        return np.array([self.of_context(context) for context in contexts(text, self.words)], np.int64)

    def of_context(self, context: Sequence[str]) -> int:
        """`evidence` of one context."""
        for at in range(len(context)):
            count = self.counts.get(" ".join(context[at:]))
            if count:
                return LENGTH * (len(context) - at) + count.bit_length()
        return 0

    def save(self, path: str | Path) -> None:
        """Write a line `count<TAB>words` for each context, in their order."""
        files.write_text(
            path,
            [
                f"{HEADER} words={self.words}",
                *(f"{count}\t{context}" for context, count in sorted(self.counts.items())),
            ],
        )

    @classmethod
    def load(cls, path: str | Path) -> "Histories":
        """What `save` wrote. DataError for another or a damaged file."""
        lines = files.read_lines(path)
        try:
            head, _, words = next(lines, "").partition(" words=")
            if head != HEADER:
                raise ValueError
            rows = (line.partition("\t") for line in lines)
            return cls(numbers.count(words), {context: numbers.count(count) for count, _, context in rows})
        except ValueError as error:
            raise DataError(f"{path}: not a file of contexts of nmt-interpolate; make it again") from error


def contexts(text: Sequence[str], words: int) -> Iterator[list[str]]:
    """The words before each word of a sentence and before its end, at most so many."""
    whole = [BOS, *text]
    for end in range(1, len(whole) + 1):
        yield whole[max(0, end - words) : end]
