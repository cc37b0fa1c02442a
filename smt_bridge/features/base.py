"""Base class of features that score pairs of source and target text, whether phrases or whole sentences."""

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
    """Pairs of source and target text, in which target i belongs to sources[source_of[i]]. Words contain
    Moses' escapes.

    `whole`: whether these are whole sentences, with a beginning and an end, rather than phrases.
    `affiliations`: only for features that need word alignment; for each pair, the source word that each
    target word is affiliated with or, for features of the other direction, the target word of each source
    word.
    """

    sources: list[list[str]]
    targets: list[list[str]]
    source_of: list[int]
    whole: bool = False
    affiliations: list[list[int]] | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> "WordPairs":
        """Select the pairs with the indices `rows`, in that order, with the sources that they use."""
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
    """Convert parsed lines of a phrase table to word pairs, in which each distinct source is stored once."""
    sources: dict[bytes, int] = {}
    source_of = [sources.setdefault(pair.source, len(sources)) for pair in pairs]
    return WordPairs(
        sources=[phrase_words(source) for source in sources],
        targets=[phrase_words(pair.target) for pair in pairs],
        source_of=source_of,
    )


def phrase_words(phrase: bytes) -> list[str]:
    return files.split_words(phrase.decode("utf-8"))


Values = NDArray[np.float64]  # scores of one feature: (pairs,)


@dataclass
class SideReader:
    """How a network reads one side of the pairs."""

    cut: Callable[[list[str]], list[str]]  # words -> units
    vocabulary: Container[str]


class PairFeature(ABC):
    """A loaded feature, which scores pairs of texts. Created by `FeatureKind.load`; see registry.py."""

    # Whether, with --by-phrase, its scores are summed over the phrase pairs of a derivation, like the columns
    # of a phrase table in Moses.
    by_phrase = False
    # Whether it scores whole sentences and needs their word alignment, WordPairs.affiliations; then it works
    # for n-best lists but not for tables. With `inverse_aligned` it needs affiliations of the other
    # direction.
    word_aligned = False
    inverse_aligned = False

    @abstractmethod
    def score(self, pairs: WordPairs) -> Values:
        """Score each pair: (pairs,). Probabilities are natural logarithms; a column of a phrase table is
        exp(score). ConfigError or DataError for pairs that the feature cannot score."""

    @abstractmethod
    def identity(self) -> str:
        """A string that changes whenever the scores would, made from the feature's files and settings by
        `digest`. It decides whether a job may be resumed and a column reused."""

    def readers(self) -> dict[str, SideReader]:
        """How the feature reads the sides whose vocabulary coverage a report shows. The keys are `source`,
        `target`, both or none."""
        return {}

    def exact(self) -> "PairFeature | None":
        """A copy of this feature that computes in fp32; None if --precision does not affect the feature."""
        return None


# ---- identities --------------------------------------------------------------------------------------------


def digest(kind: str, paths: Iterable[Path], settings: bytes = b"") -> str:
    """Hash a feature's kind, the names and contents of its files, and the settings that affect its scores: 32
    hexadecimal digits. DataError for a file that cannot be read."""
    hasher = hashlib.sha256(kind.encode())
    for path in paths:
        hasher.update(path.name.encode() + file_hash(path))
    hasher.update(settings)
    return hasher.hexdigest()[:32]


def file_hash(path: Path) -> bytes:
    """SHA-256 of a file, as bytes."""
    return bytes.fromhex(manifest.digest(path))
