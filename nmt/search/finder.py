"""The best next words by an output layer that finds them without log p of all: a hierarchy of few levels over
many words (nmt/layers/output/best_words.py)."""

import math
from dataclasses import dataclass
from typing import Generic

import torch
from torch import Tensor

from nmt.layers.output import BestWords
from nmt.models.protocols import Layered, State, StepModel
from nmt.text.vocab import BOS, EOS, UNK

NEVER = 3  # words at most that may not follow: <s>, UNK and, in short hypotheses, the end symbol


@dataclass
class Finder(Generic[State]):
    """A model and its output layer."""

    model: Layered[State]
    layer: BestWords

    def features(self, state: State, token_ids: Tensor | None) -> tuple[Tensor, State]:
        """See Layered."""
        return self.model.features(state, token_ids)

    def best(
        self, features: Tensor, count: int, too_short: Tensor, allow_unknown: bool
    ) -> tuple[Tensor, Tensor]:
        """Log p and words of the `count` best that may follow, the best first, -inf where there are none:
        (R, K), (R,) -> (R, count) twice"""
        values, words = self.layer.best_words(features, count + NEVER)
        never = (words < 0) | (words == BOS) | ((words == EOS) & too_short[:, None])
        if not allow_unknown:
            never |= words == UNK
        values, place = values.masked_fill(never, -math.inf).topk(count, 1)
        return values, words.gather(1, place).clamp(min=0)

    def end(self, features: Tensor, row: int) -> float:
        """Log p of the end symbol after a row."""
        rows, ends = (torch.tensor([one], device=features.device) for one in (row, EOS))
        return float(self.layer.log_probs_of_words(features, rows, ends)[0])


def finder_of(model: StepModel[State]) -> Finder[State] | None:
    """None for a model that is asked for all words."""
    if not isinstance(model, Layered):
        return None
    layer = model.output_layer
    return Finder(model, layer) if isinstance(layer, BestWords) and layer.finds_best_sooner else None
