"""Ensembles: several models that answer as one. What search asks of a model is `StepModel` of
nmt/models/protocols.py."""

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.data.batches import Ids
from nmt.models.protocols import AnyStepModel, StepModel, Widening

__all__ = ["Ensemble", "Reading", "StepModel", "mean_log_probs"]


@dataclass
class Reading:
    """One sentence as each model of an ensemble reads it: their vocabularies and subwords may differ."""

    ids: tuple[Ids, ...]

    def __len__(self) -> int:
        return len(self.ids[0])


class Ensemble:
    """Several models with one target vocabulary: the mean of their probabilities. Sources are Readings."""

    def __init__(self, models: Sequence[AnyStepModel]) -> None:
        self.models = list(models)

    @property
    def device(self) -> torch.device:
        return self.models[0].device

    def start(self, sources: Sequence[Reading]) -> list[object]:
        return [
            model.start([source.ids[number] for source in sources])
            for number, model in enumerate(self.models)
        ]

    def start_with(self, sources: Sequence[Reading], words: Sequence[Set[int]]) -> list[object]:
        """See Widening: the members that have no short-lists need none of the words."""
        return [
            model.start_with([source.ids[number] for source in sources], words)
            if isinstance(model, Widening)
            else model.start([source.ids[number] for source in sources])
            for number, model in enumerate(self.models)
        ]

    def step(self, state: list[object], token_ids: Tensor | None) -> tuple[Tensor, list[object]]:
        answers = [model.step(part, token_ids) for model, part in zip(self.models, state, strict=True)]
        return mean_log_probs([log_probs for log_probs, _ in answers]), [part for _, part in answers]

    def reorder(self, state: list[object], rows: Tensor) -> list[object]:
        return [model.reorder(part, rows) for model, part in zip(self.models, state, strict=True)]

    def join(self, states: Sequence[list[object]]) -> list[object]:
        return [
            model.join(parts) for model, parts in zip(self.models, zip(*states, strict=True), strict=True)
        ]

    def attention(self, state: list[object]) -> Tensor | None:
        """That of the first model: positions are those of its reading."""
        return self.models[0].attention(state[0])


def mean_log_probs(log_probs: Sequence[Tensor]) -> Tensor:
    """log of the mean of probabilities given as logarithms."""
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.stack(list(log_probs)).logsumexp(0) - math.log(len(log_probs))
