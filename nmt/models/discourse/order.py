"""ORDER: do two neighboring sentences stand as they were written? (000, eq. 5.1)"""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from nmt.models.discourse.objective import Example, Ints, Objective, Paragraphs


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
    def example(text: Paragraphs, place: Ints, rng: np.random.Generator) -> Example:
        pair = [text.sentence(int(place[0])), text.sentence(int(place[0]) + 1)]
        turned = int(rng.integers(2))
        return Example([*pair[::-1]] if turned else [*pair], turned)

    def forward(self, vectors: Tensor) -> Tensor:
        score = torch.einsum("bi,ij,bj->b", vectors[:, 0], self.matrix, vectors[:, 1])
        return torch.stack([torch.zeros_like(score), score], 1)
