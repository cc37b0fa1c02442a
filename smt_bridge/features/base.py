"""Features that score pairs of source and target words, phrases and whole sentences alike."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.formats.phrase_table import PhrasePair
from nmt.io import files, manifest


@dataclass
class WordPairs:
    """Target i belongs to sources[source_of[i]]. Words are as Moses has them, its escapes in place.

    `whole`: these are sentences, with a beginning and an end, not phrases from inside a sentence.
    `affiliations`, for features that ask for them: the source word that each word of a target belongs to, or,
    for those of the other direction, the target word that each word of its source belongs to.
    """

    sources: list[list[str]]
    targets: list[list[str]]
    source_of: list[int]
    whole: bool = False
    affiliations: list[list[int]] | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> "WordPairs":
        """Select some of the pairs; sources that none of them uses are dropped."""
        numbers: dict[int, int] = {}
        source_of = [numbers.setdefault(self.source_of[row], len(numbers)) for row in rows]
        return WordPairs(
            sources=[self.sources[source] for source in numbers],
            targets=[self.targets[row] for row in rows],
            source_of=source_of,
            whole=self.whole,
            affiliations=self.affiliations and [self.affiliations[row] for row in rows],
        )


def of_phrases(pairs: Sequence[PhrasePair]) -> WordPairs:
    """Convert lines of a phrase table, each distinct source once."""
    sources: dict[bytes, int] = {}
    source_of = [sources.setdefault(pair.source, len(sources)) for pair in pairs]
    return WordPairs(
        sources=[phrase_words(source) for source in sources],
        targets=[phrase_words(pair.target) for pair in pairs],
        source_of=source_of,
    )


def phrase_words(phrase: bytes) -> list[str]:
    """Decode a phrase and split it into words."""
    return files.split_words(phrase.decode("utf-8"))


Values = NDArray[np.float64]  # (pairs,): of one feature


@dataclass
class SideReader:
    """How a network reads one side of the pairs."""

    cut: Callable[[list[str]], list[str]]  # words to units
    vocabulary: Container[str]


class PairFeature(ABC):
    """A loaded feature; the `load` of its kind in registry.py creates it."""

    # Whether --by-phrase sums it over the phrase pairs of a segmentation, as Moses does with a column of its
    # table.
    by_phrase = False
    # Whether it scores whole sentences with their word alignment, WordPairs.affiliations. n-best lists have
    # it; rows of a table lack the sentence around them. Of the other direction where `inverse_aligned`.
    word_aligned = False
    inverse_aligned = False

    @abstractmethod
    def score(self, pairs: WordPairs) -> Values:
        """Score each pair: (pairs,). Natural logarithms of probabilities; a table's column is exp(value)."""

    @abstractmethod
    def identity(self) -> str:
        """A string that changes whenever the scores would: by the feature's files and settings. Jobs are
        resumed and columns reused by it; see `digest`."""

    def readers(self) -> dict[str, SideReader]:
        """The vocabularies whose coverage a report shows, by side: `source`, `target`, both or none."""
        return {}

    def exact(self) -> "PairFeature | None":
        """This feature computing in fp32, if it heeds --precision."""
        return None


# ---- identities --------------------------------------------------------------------------------------------


def digest(kind: str, paths: Iterable[Path], settings: bytes = b"") -> str:
    """Hash of a feature's kind, its files and the settings that change its scores."""
    hasher = hashlib.sha256(kind.encode())
    for path in paths:
        hasher.update(path.name.encode() + hash_of(path))
    hasher.update(settings)
    return hasher.hexdigest()[:32]


def hash_of(path: Path) -> bytes:
    """SHA-256 of a file, as bytes."""
    return bytes.fromhex(manifest.digest(path))
