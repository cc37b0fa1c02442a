"""What an objective is, and the text that its examples are made of: sentences line by line, an empty line
between paragraphs.

B examples, S sentences of an example, D width of a sentence's vector, n examples of a text, C answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.data.batches import Ids
from nmt.data.corpus import Corpus

Ints = NDArray[np.int64]


@dataclass
class Paragraphs:
    """A text by its paragraphs."""

    corpus: Corpus  # its targets are the lines
    words: Sequence[str]  # the vocabulary
    spans: Ints  # (paragraphs, 2) the first line, and the one after the last

    @staticmethod
    def of(corpus: Corpus, words: Sequence[str]) -> "Paragraphs":
        """A text of lines, some of them empty."""
        filled = np.concatenate([[0], np.diff(corpus.target_offsets) > 0, [0]]).astype(np.int8)
        change = np.diff(filled)
        spans = np.stack([np.flatnonzero(change == 1), np.flatnonzero(change == -1)], 1)
        return Paragraphs(corpus, words, spans.astype(np.int64))

    def sentence(self, line: int) -> NDArray[np.int64]:
        """The ids of a line."""
        return self.corpus.pair(line)[1]

    def neighbors(self) -> Ints:
        """The lines that another one of their paragraph follows: (n,)"""
        return np.concatenate([np.arange(0), *(np.arange(first, end - 1) for first, end in self.spans)])


@dataclass
class Example:
    """A question about sentences: the first score of `forward` stands for answer 0."""

    sentences: list[Ids]
    answer: int


class Objective(nn.Module):
    """A classifier over the vectors of sentences; to add one, add its class to registry.OBJECTIVES."""

    answers: ClassVar[int]  # C
    share: ClassVar[float] = 1.0  # of its examples, in each epoch that it shares with other objectives

    def __init__(self, width: int) -> None:
        """`width`: D"""
        super().__init__()

    @staticmethod
    def find(text: Paragraphs) -> Ints:
        """Where a text has examples, in terms that `example` understands: (n, anything)"""
        raise NotImplementedError

    @staticmethod
    def example(text: Paragraphs, place: Ints, rng: np.random.Generator) -> Example:
        """The example at a place, with as many sentences as all others of the objective."""
        raise NotImplementedError

    def forward(self, vectors: Tensor) -> Tensor:
        """Scores of all answers, log p but for a constant: (B, S, D) -> (B, C)"""
        raise NotImplementedError
