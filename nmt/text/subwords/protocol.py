"""The interface of a kind of subwords. Each kind is one file of this folder; `SUBWORDS` in `__init__.py`
lists them."""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, Self

from nmt.text.vocab import Vocab

MIN_FREQUENCY = 2  # of BPE: rarer pairs are not merged
SAMPLE = 1_000_000  # maximum number of sentences to learn a SentencePiece model from

Sampler = Callable[[list[int], str], list[int]]  # (unit ids, key) -> ids of another split of the same text


@dataclass(frozen=True)
class LearnSettings:
    """Settings for learning subwords. Each kind uses its own; those for the other kind are ignored."""

    merges: int  # of BPE: number of merges to learn
    pieces: int  # of SentencePiece: number of units to learn; 0: chosen by the size of the text
    byte_fallback: bool  # of SentencePiece: split unknown characters into bytes
    unicode: str  # of SentencePiece: name of the Unicode normalization
    min_frequency: int = MIN_FREQUENCY
    # of BPE: wraps the iterator of merge numbers, for example to count them
    observe: Callable[[Iterable[int]], Iterable[int]] = lambda numbers: numbers


class TrainingText:
    """Statistics of the training text: counts of words, or the sentences.

    Beyond `most` sentences, a uniform sample is stored; the same text gives the same sample.
    """

    def __init__(self, sentences: bool, most: int = SAMPLE) -> None:
        self.sentences, self.most = sentences, most
        self.words: Counter[str] = Counter()
        self.lines: list[str] = []
        self.seen = 0
        self.random = random.Random(1)

    def add(self, words: list[str]) -> None:
        """Count the words of a sentence, or sample it."""
        if not self.sentences:
            self.words.update(words)
            return
        self.seen += 1
        if len(self.lines) < self.most:
            self.lines.append(" ".join(words))
        elif (index := self.random.randrange(self.seen)) < self.most:  # reservoir sampling
            self.lines[index] = " ".join(words)

    def __add__(self, text: "TrainingText") -> "TrainingText":
        """Add the counts of two texts, and concatenate their samples: at most 2 x `most` sentences. No more
        sentences may be added to the result."""
        both = TrainingText(self.sentences, self.most)
        both.words, both.lines = self.words + text.words, self.lines + text.lines
        return both

    @property
    def summary(self) -> str:
        """The size of the text, for a log."""
        if self.sentences:
            return f"{len(self.lines):,} sentences"
        return f"{len(self.words):,} different words"

    def characters(self) -> Counter[str]:
        """Count the occurrences of each character."""
        counts: Counter[str] = Counter()
        for word, count in self.words.items():
            for character in word:
                counts[character] += count
        for line in self.lines:
            counts.update(line)
        return counts


class Subwords(Protocol):
    """Splits words into units and joins them again."""

    kind: ClassVar[str]  # its name in SUBWORDS
    raw: ClassVar[bool]  # it reads raw text and learns from sentences, not from the words of a tokenizer
    suffix: ClassVar[str]  # of its file in a run directory
    rate_key: ClassVar[str]  # the key of `data` for the `rate` of `sampler`; 0 there: splits never vary

    @classmethod
    def learn(cls, text: TrainingText, how: LearnSettings) -> Self:
        """Learn from the training text. ConfigError for settings that do not suit the text, DataError for a
        text from which nothing can be learned."""

    def apply(self, words: list[str]) -> list[str]:
        """Split a sentence, given as the parts between blanks, into units."""

    @staticmethod
    def undo(units: list[str]) -> list[str]:
        """Join units into the parts between blanks."""

    @staticmethod
    def spell(unit: str) -> str:
        """Spell a unit as it appears in text, with a blank wherever a word surely begins or ends."""

    def word_numbers(self, units: list[str]) -> list[int]:
        """The index of the word in `undo(units)` that each unit belongs to."""

    def inventory(self, characters: Iterable[str], sampled: bool) -> Iterable[str]:
        """Units that get an id even if the training text does not have them. `characters`: the characters of
        that text; `sampled`: whether `sampler` will split sentences anew in training."""

    @property
    def summary(self) -> str:
        """Size for a log: `8,000 merges`."""

    def save(self, path: str | Path) -> None:
        """Write the file that `nmt.text.subwords.load` reads."""

    def sampler(self, rate: float, vocab: Vocab) -> Sampler:
        """Build a sampler that splits units of `vocab` differently in each epoch, as regularization. The same
        key gives the same split, whatever was split before. `rate`, above 0: for BPE the probability
        of skipping a merge; for unigram units the exponent α of p(split)^α, by which splits are drawn."""
