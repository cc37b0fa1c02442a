"""What a feature is: one number for each of some pairs of source and target words, of phrases and of whole
sentences alike."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nmt import files
from nmt.phrase_table import PhrasePair


@dataclass
class Pairs:
    """Target i belongs to sources[source_of[i]]. Words are as Moses has them, its escapes in place.

    `whole`: these are sentences, with a beginning and an end, not phrases out of the middle of some.
    """

    sources: list[list[str]]
    targets: list[list[str]]
    source_of: list[int]
    whole: bool = False

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> "Pairs":
        """Some of the pairs; a source without any is left out."""
        kept: dict[int, int] = {}
        source_of = [kept.setdefault(self.source_of[row], len(kept)) for row in rows]
        return Pairs(
            [self.sources[source] for source in kept],
            [self.targets[row] for row in rows],
            source_of,
            self.whole,
        )


def of_phrases(pairs: Sequence[PhrasePair]) -> Pairs:
    """Lines of a phrase table, each distinct source once."""
    sources: dict[bytes, int] = {}
    source_of = [sources.setdefault(pair.source, len(sources)) for pair in pairs]
    return Pairs([split(source) for source in sources], [split(pair.target) for pair in pairs], source_of)


def split(phrase: bytes) -> list[str]:
    return files.split_words(phrase.decode("utf-8"))


@dataclass
class Reader:
    """How a network reads one side of the pairs."""

    cut: Callable[[list[str]], list[str]]  # words to units
    known: Container[str]  # its vocabulary


class Feature(Protocol):
    def score(self, pairs: Pairs) -> NDArray[np.float64]:
        """One value for each pair; natural logarithms where they are probabilities."""
        ...
