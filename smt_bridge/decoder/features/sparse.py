"""Moses' sparse features of phrase pairs (Chiang et al. 2009; Hasler et al. 2012): which word translates
which, which words are left out or put in, and the lengths of phrases.

    WordTranslationFeature name=WT input-factor=0 output-factor=0 simple=1 source-path=en target-path=fr
    TargetWordInsertionFeature name=TWI factor=0 path=fr
    SourceWordDeletionFeature name=SWD factor=0 path=en
    PhraseLengthFeature name=PL

A file lists words, one a line; any other word counts as OTHER. Without a file each word counts as itself. The
values are counted by the alignment inside phrase pairs, with names such as WT_the~le, TWI_de, SWD_of, PL_s2,
PL_t3 and PL_2,3. Their weights are in the file that [weight-file] names.
"""

from collections.abc import Container, Iterable, Iterator, Set
from typing import ClassVar, Self

from nmt.io import files
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.features.protocol import LinkedPair, SparseFeature
from smt_bridge.moses.ini import FeatureLine

OTHER = "OTHER"
BORDERS = ("<s>", "</s>")
FACTORS = {"factor", "input-factor", "output-factor"}
REFUSED = ("source-context", "target-context", "domain-trigger", "ignore-punctuation")
CONTEXT = "the engine has word translations without context; leave the argument out, or decode with Moses"


def read_words(line: FeatureLine, key: str) -> frozenset[str] | None:
    """Read the list of words that an argument of a feature names; None without the argument. DataError for
    text that is not UTF-8."""
    path = line.options.get(key)
    return frozenset(files.read_lines(path)) if path else None


def group_others(words: Iterable[str], allowed: Container[str] | None) -> list[str]:
    """The words, with OTHER for those that are not in the list; all of them without a list."""
    return [word if allowed is None or word in allowed else OTHER for word in words]


class WordTranslation(SparseFeature):
    """Which source word is linked to which target word."""

    arguments: ClassVar[Set[str]] = frozenset({*FACTORS, "simple", *REFUSED, "source-path", "target-path"})

    def __init__(self, name: str, source: Set[str] | None = None, target: Set[str] | None = None) -> None:
        """`source`, `target`: the words that count as themselves; None for all."""
        super().__init__(name)
        self.source, self.target = source, target

    @classmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        """Read the lists of words. ConfigError for features of the context, for simple=0, and for a list of
        one side alone, which Moses does not read; DataError for lists that are not UTF-8."""
        for key in REFUSED:
            if line.truth(key):
                raise line.error(f"{key}={line.options[key]}: {CONTEXT}")
        if not line.truth("simple", True):
            raise line.error("simple=0 without a context has no values; leave the argument out")
        if ("source-path" in line.options) != ("target-path" in line.options):
            raise line.error("give both source-path= and target-path=, or neither")
        return cls(line.name, read_words(line, "source-path"), read_words(line, "target-path"))

    def events(self, pair: LinkedPair) -> Iterator[str]:
        source, target = group_others(pair.source, self.source), group_others(pair.target, self.target)
        for first, second in pair.points:
            yield f"{source[first]}~{target[second]}"


class UnlinkedWords(SparseFeature):
    """Base class of the features of words without a link."""

    arguments: ClassVar[Set[str]] = frozenset({*FACTORS, "path"})

    def __init__(self, name: str, words: Set[str] | None = None) -> None:
        """`words`: those that count as themselves; None for all."""
        super().__init__(name)
        self.words = words

    @classmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        """Read the list of words. DataError for one that is not UTF-8."""
        return cls(line.name, read_words(line, "path"))

    def unlinked_words(self, pair: LinkedPair, side: int) -> Iterator[str]:
        """Yield the words of a side, 0 or 1, without a link. A pair of two words without any link has none,
        as in Moses, where unknown words look like that."""
        if len(pair.source) == len(pair.target) == 1 and not pair.points:
            return
        linked = {point[side] for point in pair.points}
        side_words = pair.target if side else pair.source
        words = [word for position, word in enumerate(side_words) if position not in linked]
        yield from group_others((word for word in words if word not in BORDERS), self.words)


class TargetWordInsertion(UnlinkedWords):
    """Target words that no link leads to."""

    def events(self, pair: LinkedPair) -> Iterator[str]:
        return self.unlinked_words(pair, 1)


class SourceWordDeletion(UnlinkedWords):
    """Source words that no link leads from."""

    def events(self, pair: LinkedPair) -> Iterator[str]:
        return self.unlinked_words(pair, 0)


class PhraseLength(SparseFeature):
    """Numbers of words of both sides of phrases."""

    arguments: ClassVar[Set[str]] = frozenset()

    @classmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        return cls(line.name)

    def events(self, pair: LinkedPair) -> Iterator[str]:
        source, target = len(pair.source), len(pair.target)
        yield from (f"s{source}", f"t{target}", f"{source},{target}")
