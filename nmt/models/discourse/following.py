"""NEXT: which of five later sentences follows the first three of a paragraph? (000, eq. 5.2)"""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from nmt.models.discourse.objective import Example, Ints, Objective, Paragraphs

CONTEXT, CANDIDATES = 3, 5
SHORTEST = 9  # sentences of a paragraph: "longer than 8"


class Following(Objective):
    """p(i) = softmax over the candidates of s_c M s_i, where s_c is the three vectors side by side."""

    answers: ClassVar[int] = CANDIDATES
    share: ClassVar[float] = 0.25  # its examples have four times the sentences of the others

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.matrix = nn.Parameter(torch.empty(CONTEXT * width, width))  # M

    @staticmethod
    def find(text: Paragraphs) -> Ints:
        return text.spans[text.spans[:, 1] - text.spans[:, 0] >= SHORTEST]

    @staticmethod
    def example(text: Paragraphs, place: Ints, rng: np.random.Generator) -> Example:
        first, end = place.tolist()
        follows = first + CONTEXT
        later = rng.permutation(np.arange(follows + 1, end))[: CANDIDATES - 1]
        answer = int(rng.integers(CANDIDATES))
        lines = [*range(first, follows), *np.insert(later, answer, follows).tolist()]
        return Example([text.sentence(line) for line in lines], answer)

    def forward(self, vectors: Tensor) -> Tensor:
        context = vectors[:, :CONTEXT].flatten(1)
        return torch.einsum("bi,ij,bcj->bc", context, self.matrix, vectors[:, CONTEXT:])
