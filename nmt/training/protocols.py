"""The interfaces of the training loop: a model, its batches, and the parts of a model that follow its
progress."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn

from nmt.data.batches import ALL_BATCHES, Share
from nmt.lm.base import Carried


class AnyBatch(Protocol):
    """A batch of sentence pairs, or a chunk of running text: its number of sentences, of target tokens with
    end symbols, of tokens on the side that has more of them, and of tokens of its longest sentence."""

    @property
    def sentences(self) -> int: ...

    @property
    def target_tokens(self) -> int: ...

    @property
    def tokens(self) -> int: ...

    @property
    def longest(self) -> int: ...

    def to(self, device: torch.device | str) -> Self: ...


class Stream(Protocol):
    """The batches of each epoch; epochs and batches are counted from 0."""

    def count(self, epoch: int) -> int:
        """The number of batches of an epoch."""
        ...

    def batches(self, epoch: int, start: int = 0, share: Share = ALL_BATCHES) -> Iterator[AnyBatch]:
        """The batches of an epoch from number `start` on that belong to a share, the part of one process."""
        ...


class Trainable(Protocol):
    """A model: an nn.Module with a cost for each batch of its stream."""

    training: bool

    @property
    def device(self) -> torch.device: ...

    def cost(self, batch: Any, smoothing: float, carried: Any) -> tuple[Tensor, Carried]:
        """Compute the cost of a batch, (), to be differentiated: Σ -log p (natural logarithm) of the target
        tokens, and the penalties of the model. Also returns the state after this chunk of running text; None
        for other models.

        `smoothing`: share of each token's weight that is spread over the vocabulary. `carried`: state after
        the previous chunk; None at the start.
        """
        ...

    def train(self, mode: bool = True) -> Self: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...

    def state_dict(self) -> Mapping[str, Tensor]: ...

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> object: ...


# Follows a training: called with `train` or `dev`, the number of the update, and the values of that line of
# train.tsv or dev.tsv by name: cost, norm, rate, words_per_second; cost, bleu, chrf.
TrainingObserver = Callable[[str, int, Mapping[str, float]], None]


class Callback:
    """A part of a model, a `torch.nn.Module`, that is notified of training. Methods here do nothing."""

    def on_start(self, epoch_updates: int) -> None:
        """Called before the first update of each start. `epoch_updates`: updates of an epoch."""

    def on_update(self, step: int) -> None:
        """Called after each update, with its number from 1."""
