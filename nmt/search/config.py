"""The settings of search and of sampling; without torch, so that options are made of them before it loads."""

import math
from dataclasses import dataclass

from nmt import settings
from nmt.errors import ConfigError
from nmt.search import penalties
from nmt.settings import choice, number


@dataclass
class BeamConfig:
    beam_size: int = number(10, least=1, most=10_000)  # hypotheses kept; as in the papers
    normalize: str = choice(*penalties.NORMALIZE)  # how lengths are compared
    max_length_factor: float = number(3.0, above=0, most=1000)  # at most this many words for each source word
    min_length_factor: float = number(
        0.0, least=0, most=1000
    )  # no end before this many words for each source word; the authors' code uses 0.5
    max_length: int = number(
        0, least=0, most=1_000_000
    )  # at most this many words, whatever the source; 0: no such limit
    min_length: int = number(0, least=0, most=1_000_000)  # no end before this many words
    allow_unknown: bool = (
        False  # may UNK be produced? For its replacement by a source word; the papers exclude it
    )
    rows: int = number(
        0, least=0
    )  # live hypotheses in a batch; 0: ROWS, or what nmt.run finds best for the vocabulary

    def check(self) -> None:
        """ConfigError for a value out of range."""
        settings.check(self)
        if self.min_length_factor > self.max_length_factor:
            raise ConfigError(
                f"length factors: the minimum {self.min_length_factor:g} is above the maximum "
                f"{self.max_length_factor:g}"
            )
        if self.max_length and self.min_length > self.max_length:
            raise ConfigError(
                f"lengths: the minimum {self.min_length} is above the maximum {self.max_length}; a maximum "
                "of 0 is none"
            )

    def longest(self, words: int) -> int:
        """The most words of a translation of a source of `words` words; a minimum length wins over a
        factor."""
        limit = max(1, math.ceil(self.max_length_factor * words))
        if self.max_length:
            limit = min(limit, self.max_length)
        return max(limit, self.min_length)

    def shortest(self, words: int) -> int:
        least = max(math.ceil(self.min_length_factor * words), self.min_length)
        return min(least, self.max_length) if self.max_length else least


@dataclass
class SamplingConfig:
    samples: int = number(1, least=1, most=100_000)  # draws for each sentence
    temperature: float = number(
        1.0, least=1e-6, most=1e6
    )  # p^(1/temperature): below 1 likelier words, above 1 all alike
    seed: int = number(1, least=0)
    max_length_factor: float = number(3.0, above=0, most=1000)  # at most this many words for each source word
    allow_unknown: bool = False  # may UNK be drawn?
    rows: int = number(100, least=1)  # draws in a batch

    def check(self) -> None:
        """ConfigError for a value out of range."""
        settings.check(self)
