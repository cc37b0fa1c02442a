"""What search asks of a model: three methods and a state that the caller holds."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from nmt.data.batches import Ids

State = TypeVar("State")


class StepModel(Protocol[State]):
    """Anything that can be asked for the next word. Translators are; so may be ensembles and language models.

    Good: lp, state = model.step(state, words); state = model.reorder(state, rows)
    Bad:  model.step(old_state, ...) after reorder: rows of a state and of `words` belong together.
    """

    @property
    def device(self) -> torch.device: ...

    def start(self, sources: Sequence[Ids]) -> State:
        """One row for each source sentence, before the first word."""
        ...

    def step(self, state: State, words: Tensor | None) -> tuple[Tensor, State]:
        """log p of every next word after `words` (R,), None before the first: (R, V), natural logarithm."""
        ...

    def reorder(self, state: State, rows: Tensor) -> State:
        """The state whose row i is row rows[i] of the given one; rows may repeat or be missing."""
        ...
