"""Discourse objectives (Jernite 2018, chapter 5): what they ask of a text, line by line with an empty line
between paragraphs, and the batches of their examples; `OBJECTIVES` has them by the names that
`model.objectives` takes.

B examples, S sentences of an example, D width of a sentence's vector, n examples of a text, C answers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.data.batches import WHOLE, Ids, Packed, Share, pack_source
from nmt.data.corpus import Corpus
from nmt.errors import DataError

# ---- objective ---------------------------------------------------------------------------------------------
# What an objective is, and the text that its examples are made of: sentences line by line, an empty line
# between paragraphs.
#
# B examples, S sentences of an example, D width of a sentence's vector, n examples of a text, C answers.


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
        """Create a classifier of sentence vectors of `width` dimensions (D)."""
        super().__init__()

    @staticmethod
    def find(text: Paragraphs) -> Ints:
        """Where a text has examples, in terms that `example` understands: (n, anything)"""
        raise NotImplementedError

    @staticmethod
    def example(text: Paragraphs, position: Ints, rng: np.random.Generator) -> Example:
        """The example at a position, with as many sentences as all others of the objective."""
        raise NotImplementedError

    def forward(self, vectors: Tensor) -> Tensor:
        """Scores of all answers, log p but for a constant: (B, S, D) -> (B, C)"""
        raise NotImplementedError


# ---- order -------------------------------------------------------------------------------------------------
# ORDER: do two neighboring sentences stand as they were written? (Jernite 2018, eq. 5.1)


class Order(Objective):
    """p(turned round) = σ(s_l M s_r); answer 1: they were turned round, which happens to one half."""

    answers: ClassVar[int] = 2

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.matrix = nn.Parameter(torch.empty(width, width))  # M

    @staticmethod
    def find(text: Paragraphs) -> Ints:
        return text.neighbors()[:, None]

    @staticmethod
    def example(text: Paragraphs, position: Ints, rng: np.random.Generator) -> Example:
        pair = [text.sentence(int(position[0])), text.sentence(int(position[0]) + 1)]
        turned = int(rng.integers(2))
        return Example([*pair[::-1]] if turned else [*pair], turned)

    def forward(self, vectors: Tensor) -> Tensor:
        score = torch.einsum("bi,ij,bj->b", vectors[:, 0], self.matrix, vectors[:, 1])
        return torch.stack([torch.zeros_like(score), score], 1)


# ---- following ---------------------------------------------------------------------------------------------
# NEXT: which of five later sentences follows the first three of a paragraph? (Jernite 2018, eq. 5.2)


CONTEXT, CANDIDATES = 3, 5
SHORTEST_PARAGRAPH = 9  # sentences of a paragraph: "longer than 8"


class Following(Objective):
    """p(i) = softmax over the candidates of s_c M s_i, where s_c is the three vectors side by side."""

    answers: ClassVar[int] = CANDIDATES
    share: ClassVar[float] = 0.25  # its examples have four times the sentences of the others

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.matrix = nn.Parameter(torch.empty(CONTEXT * width, width))  # M

    @staticmethod
    def find(text: Paragraphs) -> Ints:
        return text.spans[text.spans[:, 1] - text.spans[:, 0] >= SHORTEST_PARAGRAPH]

    @staticmethod
    def example(text: Paragraphs, position: Ints, rng: np.random.Generator) -> Example:
        first, end = position.tolist()
        follows = first + CONTEXT
        later = rng.permutation(np.arange(follows + 1, end))[: CANDIDATES - 1]
        answer = int(rng.integers(CANDIDATES))
        lines = [*range(first, follows), *np.insert(later, answer, follows).tolist()]
        return Example([text.sentence(line) for line in lines], answer)

    def forward(self, vectors: Tensor) -> Tensor:
        context = vectors[:, :CONTEXT].flatten(1)
        return torch.einsum("bi,ij,bcj->bc", context, self.matrix, vectors[:, CONTEXT:])


# ---- conjunction -------------------------------------------------------------------------------------------
# CONJ: which kind of conjunction was taken off the second of two sentences? (Jernite 2018, eq. 5.3, table
# 5.4)


KINDS = {
    "addition": "again, also, besides, finally, further, furthermore, moreover, in addition",
    "contrast": "anyway, however, instead, nevertheless, otherwise, contrarily, conversely, nonetheless, "
    "in contrast, rather",
    "time": "meanwhile, next, then, now, thereafter",
    "result": "accordingly, consequently, hence, thus, therefore",
    "specific": "namely, specifically, notably, that is, for example",
    "compare": "likewise, similarly",
    "strengthen": "indeed, in fact",
    "return": "still",
    "recognize": "undoubtedly, certainly",
}
CONJUNCTIONS = {
    phrase: number for number, phrases in enumerate(KINDS.values()) for phrase in phrases.split(", ")
}
LONGEST_CONJUNCTION = 8  # units of a conjunction and its comma that are looked for


def conjunction(units: Sequence[str]) -> tuple[int, int]:
    """The kind of conjunction that a sentence begins with, followed by a comma, and how many units both are;
    -1, 0 without one. Case does not matter; units may be pieces of words."""
    for count in range(1, min(LONGEST_CONJUNCTION, len(units)) + 1):
        opening = " ".join(units[:count]).replace("@@ ", "")
        if "\u2581" in opening:
            opening = opening.replace(" ", "").replace("\u2581", " ")
        if opening.endswith(","):
            kind = CONJUNCTIONS.get(opening[:-1].strip().lower(), -1)
            return (kind, count) if kind >= 0 else (-1, 0)
    return -1, 0


class Conjunction(Objective):
    """p(c) = softmax over the kinds of s_l M_c s_r."""

    answers: ClassVar[int] = len(KINDS)

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.matrices = nn.Parameter(torch.empty(len(KINDS), width, width))  # M_c

    @staticmethod
    def find(text: Paragraphs) -> Ints:
        """The line before, the kind, and how many units are taken off either sentence: (n, 4)"""

        def leading_conjunction(line: int) -> tuple[int, int]:
            return conjunction(
                [text.words[word] for word in text.sentence(line)[:LONGEST_CONJUNCTION].tolist()]
            )

        candidates = []
        for first, end in text.spans.tolist():
            kinds = [leading_conjunction(line) for line in range(first, end)]
            for line, ((_, left_count), (kind, count)) in enumerate(pairwise(kinds), first):
                if (
                    kind >= 0
                    and len(text.sentence(line + 1)) > count
                    and len(text.sentence(line)) > left_count
                ):
                    candidates.append((line, kind, left_count, count))
        return np.array(candidates, np.int64).reshape(-1, 4)

    @staticmethod
    def example(text: Paragraphs, position: Ints, rng: np.random.Generator) -> Example:
        line, kind, left_count, count = position.tolist()
        return Example([text.sentence(line)[left_count:], text.sentence(line + 1)[count:]], kind)

    def forward(self, vectors: Tensor) -> Tensor:
        return torch.einsum("bi,cij,bj->bc", vectors[:, 0], self.matrices, vectors[:, 1])


# ---- registry ----------------------------------------------------------------------------------------------
# The discourse objectives by the names that `model.objectives` takes.


OBJECTIVES: dict[str, type[Objective]] = {"order": Order, "next": Following, "conj": Conjunction}


# ---- batches -----------------------------------------------------------------------------------------------
# Batches of examples of discourse objectives, each of one objective.
#
# B examples, S sentences of an example.


@dataclass
class DiscourseBatch:
    """Examples of one objective: B x S sentences, those of an example one after the other."""

    objective: str
    source: Packed
    answers: Tensor  # (B,)

    def to(self, device: torch.device | str) -> "DiscourseBatch":
        return replace(self, source=self.source.to(device), answers=self.answers.to(device))

    @property
    def sentences(self) -> int:
        """Number of examples, not of the sentences in them."""
        return len(self.answers)

    @property
    def target_tokens(self) -> int:
        """Number of predictions: one answer per example."""
        return len(self.answers)

    @property
    def tokens(self) -> int:
        """Words that are read, end symbols included."""
        return len(self.source.ids)

    @property
    def longest(self) -> int:
        """Words of the longest sentence, its end symbol included."""
        return len(self.source.sizes)


class DiscourseStream:
    """The batches of each epoch, the same for the same seed: all examples in a random order, of some
    objectives only a share where there are several."""

    def __init__(self, text: Paragraphs, objectives: Sequence[str], batch_size: int, seed: int) -> None:
        """DataError for a text without an example of an objective."""
        self.text, self.batch_size, self.seed = text, batch_size, seed
        self.positions: dict[str, Ints] = {name: OBJECTIVES[name].find(text) for name in objectives}
        for name, positions in self.positions.items():
            if not len(positions):
                raise DataError(
                    f"objective {name}: the text has no example, in {len(text.spans):,} paragraphs; expected "
                    "one sentence a line and an empty line between paragraphs"
                )

    def examples(self, name: str) -> int:
        """Examples of an objective in an epoch."""
        share = OBJECTIVES[name].share if len(self.positions) > 1 else 1.0
        return max(1, int(share * len(self.positions[name])))

    def count(self, epoch: int) -> int:
        """Number of batches in an epoch, over all objectives."""
        return sum(-(-self.examples(name) // self.batch_size) for name in self.positions)

    def batches(self, epoch: int, start: int = 0, share: Share = WHOLE) -> Iterator[DiscourseBatch]:
        """The batches of an epoch, from number `start` on, of a share."""
        rng = np.random.default_rng([self.seed, epoch])
        cuts: list[tuple[str, Ints]] = []
        for name, positions in self.positions.items():
            rows = rng.permutation(len(positions))[: self.examples(name)]
            cuts += [(name, rows[at : at + self.batch_size]) for at in range(0, len(rows), self.batch_size)]
        order = rng.permutation(len(cuts))
        for number in filter(share.has, range(start, len(order))):
            name, rows = cuts[order[number]]
            yield self.batch(name, rows, np.random.default_rng([self.seed, epoch, number]))

    def batch(self, name: str, rows: Ints, rng: np.random.Generator) -> DiscourseBatch:
        """Some examples of an objective."""
        examples = [
            OBJECTIVES[name].example(self.text, position, rng) for position in self.positions[name][rows]
        ]
        sentences: list[Ids] = [sentence for example in examples for sentence in example.sentences]
        answers = torch.tensor([example.answer for example in examples])
        return DiscourseBatch(name, pack_source(sentences), answers)
