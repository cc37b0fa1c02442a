"""What a kind of subwords offers. Each is one file of this folder; `SUBWORDS` in `__init__.py` names them."""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, Self

from nmt.text.vocab import Vocab

MIN_FREQUENCY = 2  # of BPE: rarer pairs are not merged
SAMPLE = 1_000_000  # sentences that a SentencePiece model is learned from, at most

Sampler = Callable[[list[int], str], list[int]]  # (unit ids, key) -> ids of another cut of the same text


@dataclass(frozen=True)
class Learning:
    """How subwords are learned; `DataConfig` in nmt/data/corpus.py says what the settings mean."""

    merges: int
    pieces: int
    byte_fallback: bool
    unicode: str
    min_frequency: int = MIN_FREQUENCY
    # of BPE: hands on the numbers of the merges, and may count them
    over: Callable[[Iterable[int]], Iterable[int]] = lambda numbers: numbers


class TrainingText:
    """Statistics of the training text: how often each word occurs, or the sentences.

    Of more than a million sentences a uniform sample is kept, the same for the same text.
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
        """Merge the statistics of two texts."""
        both = TrainingText(self.sentences, self.most)
        both.words, both.lines = self.words + text.words, self.lines + text.lines
        return both

    @property
    def summary(self) -> str:
        """How much text it is, for a log."""
        if self.sentences:
            return f"{len(self.lines):,} sentences"
        return f"{len(self.words):,} different words"

    def characters(self) -> Counter[str]:
        """How often each character occurs."""
        counts: Counter[str] = Counter()
        for word, count in self.words.items():
            for character in word:
                counts[character] += count
        for line in self.lines:
            counts.update(line)
        return counts


class Subwords(Protocol):
    """Cuts words into units and joins them again."""

    kind: ClassVar[str]  # its name in SUBWORDS
    raw: ClassVar[bool]  # it reads raw text and learns from sentences, not from the words of a tokenizer
    suffix: ClassVar[str]  # of its file in a run directory
    rate_key: ClassVar[str]  # the key of `data` that says how much cuts vary in training; 0: not at all

    @classmethod
    def learn(cls, text: TrainingText, how: Learning) -> Self:
        """From the training text. ConfigError for settings that do not suit the text."""

    def apply(self, words: list[str]) -> list[str]:
        """The units of a sentence, given as what blanks separate."""

    @staticmethod
    def undo(units: list[str]) -> list[str]:
        """Units -> what blanks separate."""

    @staticmethod
    def spell(unit: str) -> str:
        """Spell a unit as it appears in text, with a blank wherever a word surely begins or ends."""

    def word_numbers(self, units: list[str]) -> list[int]:
        """The number, from 0, of the word in `undo(units)` that each unit belongs to."""

    def inventory(self, characters: Iterable[str], sampled: bool) -> Iterable[str]:
        """Units that get an id even where the training text has none of them. `characters`: of that text;
        `sampled`: sentences will be cut anew by `sampler`."""

    @property
    def summary(self) -> str:
        """Size for a log: `8,000 merges`."""

    def save(self, path: str | Path) -> None:
        """Write the file that `nmt.text.subwords.load` reads."""

    def sampler(self, rate: float, vocab: Vocab) -> Sampler:
        """Cuts given units of `vocab` in another way in each epoch, as regularization. The same key gives the
        same cut, whatever was cut before."""
