"""What search asks of a model: four methods and a state that the caller holds. Ensembles of models answer the
same questions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from nmt.data.batches import Ids

State = TypeVar("State")


@dataclass
class Reading:
    """One sentence as each model of an ensemble reads it: their vocabularies and subwords may differ."""

    ids: tuple[Ids, ...]

    def __len__(self) -> int:
        return len(self.ids[0])


class StepModel(Protocol[State]):
    """Anything that can be asked for the next word. Translators are; so are ensembles and language models.

    Good: lp, state = model.step(state, words); state = model.reorder(state, rows)
    Bad:  model.step(old_state, ...) after reorder: rows of a state and of `words` belong together.
    """

    @property
    def device(self) -> torch.device: ...

    def start(self, sources: Sequence[Any]) -> State:
        """One row for each source sentence, before the first word."""
        ...

    def step(self, state: State, words: Tensor | None) -> tuple[Tensor, State]:
        """log p of every next word after `words` (R,), None before the first: (R, V), natural logarithm."""
        ...

    def reorder(self, state: State, rows: Tensor) -> State:
        """The state whose row i is row rows[i] of the given one; rows may repeat or be missing."""
        ...

    def join(self, states: Sequence[State]) -> State:
        """The rows of all states, one below the other."""
        ...

    def attention(self, state: State) -> Tensor | None:
        """Where each row of the state looked at its last step: weights (R, L) over source words, the end
        symbol among them."""
        ...


class Ensemble:
    """Several models with one target vocabulary: the mean of their probabilities. Sources are Readings."""

    def __init__(self, models: Sequence[StepModel[Any]]) -> None:
        self.models = list(models)

    @property
    def device(self) -> torch.device:
        return self.models[0].device

    def start(self, sources: Sequence[Reading]) -> list[Any]:
        return [
            model.start([source.ids[number] for source in sources])
            for number, model in enumerate(self.models)
        ]

    def step(self, state: list[Any], words: Tensor | None) -> tuple[Tensor, list[Any]]:
        answers = [model.step(part, words) for model, part in zip(self.models, state, strict=True)]
        return mean_log_probs([log_probs for log_probs, _ in answers]), [part for _, part in answers]

    def reorder(self, state: list[Any], rows: Tensor) -> list[Any]:
        return [model.reorder(part, rows) for model, part in zip(self.models, state, strict=True)]

    def join(self, states: Sequence[list[Any]]) -> list[Any]:
        return [
            model.join(parts) for model, parts in zip(self.models, zip(*states, strict=True), strict=True)
        ]

    def attention(self, state: list[Any]) -> Tensor | None:
        """That of the first model: positions are those of its reading."""
        return self.models[0].attention(state[0])


def mean_log_probs(log_probs: Sequence[Tensor]) -> Tensor:
    """log of the mean of probabilities given as logarithms."""
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.stack(list(log_probs)).logsumexp(0) - math.log(len(log_probs))
