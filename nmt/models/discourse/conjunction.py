"""CONJ: which kind of conjunction was taken off the second of two sentences? (000, eq. 5.3, table 5.4)"""

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from nmt.models.discourse.objective import Example, Ints, Objective, Paragraphs

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
LONGEST = 8  # units of a conjunction and its comma that are looked for


def conjunction(units: Sequence[str]) -> tuple[int, int]:
    """The kind of conjunction that a sentence begins with, followed by a comma, and how many units both are;
    -1, 0 without one. Case does not matter; units may be pieces of words."""
    for count in range(1, min(LONGEST, len(units)) + 1):
        begin = " ".join(units[:count]).replace("@@ ", "")
        if "\u2581" in begin:
            begin = begin.replace(" ", "").replace("\u2581", " ")
        if begin.endswith(","):
            kind = CONJUNCTIONS.get(begin[:-1].strip().lower(), -1)
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

        def begin(line: int) -> tuple[int, int]:
            return conjunction([text.words[word] for word in text.sentence(line)[:LONGEST].tolist()])

        found = []
        for first, end in text.spans.tolist():
            kinds = [begin(line) for line in range(first, end)]
            for line, ((_, before), (kind, count)) in enumerate(pairwise(kinds), first):
                if kind >= 0 and len(text.sentence(line + 1)) > count and len(text.sentence(line)) > before:
                    found.append((line, kind, before, count))
        return np.array(found, np.int64).reshape(-1, 4)

    @staticmethod
    def example(text: Paragraphs, place: Ints, rng: np.random.Generator) -> Example:
        line, kind, before, count = place.tolist()
        return Example([text.sentence(line)[before:], text.sentence(line + 1)[count:]], kind)

    def forward(self, vectors: Tensor) -> Tensor:
        return torch.einsum("bi,cij,bj->bc", vectors[:, 0], self.matrices, vectors[:, 1])
