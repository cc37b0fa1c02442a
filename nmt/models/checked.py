"""Checks of what a model of the user's own returns: a wrong shape or type is reported where it arises, in one
line, instead of deep inside a training or a search.

Shapes: N target tokens of a batch, R rows (hypotheses), V target words, T token ids.
"""

import inspect
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from nmt import plugins
from nmt.data.batches import Batch
from nmt.errors import ConfigError
from nmt.models.protocols import Source, State, TranslationModel

ABOVE_0 = 0.1  # a natural log p may be as high by rounding, in bf16, too


def checked(kind: type[TranslationModel[State]]) -> type[TranslationModel[State]]:
    """A class of the toolkit as it is; for one of a plugin a subclass of the same name, with the checks of
    `CheckedModel`."""
    if plugins.is_own(kind.__module__):
        return kind
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return type(kind.__name__, (CheckedModel, kind), names)


class CheckedModel(TranslationModel[State]):
    """Mixin, placed before the class of a plugin: its methods call those of the plugin, and raise ConfigError
    in one line for results that they must not return."""

    def __init__(
        self,
        config: object,
        source_vocab_size: int,
        target_vocab_size: int,
        fill: bool = True,
        spelling: Sequence[str] | None = None,
    ) -> None:
        super().__init__(config, source_vocab_size, target_vocab_size, fill, spelling)
        self._target_vocab_size = target_vocab_size
        self._started: tuple[State, int] | None = None  # the last state of `start`, and its rows

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        loss: object = super().loss(batch, smoothing)
        if not isinstance(loss, Tensor) or loss.shape != ():
            raise self._wrong("loss", loss, "a tensor of shape (), the sum of -log p over the batch")
        if torch.is_grad_enabled() and not loss.requires_grad:
            raise self._wrong("loss", "a tensor without gradient", "one that depends on the parameters")
        return loss

    def token_log_probs(self, batch: Batch) -> Tensor:
        log_probs = super().token_log_probs(batch)
        meaning = "log p of each target token"
        self._check_shape("token_log_probs", log_probs, (len(batch.target.ids),), meaning)
        self._check_sign("token_log_probs", log_probs, meaning)
        return log_probs

    def start(self, sources: Sequence[Source]) -> State:
        state = super().start(sources)
        self._started = (state, len(sources))
        return state

    def step(self, state: State, token_ids: Tensor | None) -> tuple[Tensor, State]:
        result: object = super().step(state, token_ids)
        if not isinstance(result, tuple) or len(result) != 2:
            raise self._wrong("step", result, "a pair: log p of every word, and the next state")
        log_probs, meaning = result[0], "log p of every target word for each row of the state"
        if token_ids is not None:
            rows = len(token_ids)
        elif self._started and self._started[0] is state:
            rows = self._started[1]
        else:  # rows of several states, which only the model can count
            rows = len(log_probs) if isinstance(log_probs, Tensor) and log_probs.ndim else 0
        self._check_shape("step", log_probs, (rows, self._target_vocab_size), meaning)
        if token_ids is None:  # once for each sentence
            self._check_sign("step", log_probs, meaning)
        self._started = None
        return result

    def _check_shape(self, method: str, values: object, shape: tuple[int, ...], meaning: str) -> None:
        """ConfigError unless `values` are a tensor of this shape. `meaning`: what they stand for."""
        if not isinstance(values, Tensor) or values.shape != shape:
            raise self._wrong(method, values, f"a tensor of shape {shape}, {meaning}")

    def _check_sign(self, method: str, values: Tensor, meaning: str) -> None:
        """ConfigError unless `values` can be natural logarithms of probabilities."""
        if values.numel() and float(values.max()) > ABOVE_0:
            raise self._wrong(method, "logarithms above 0", f"{meaning}, as log_softmax gives")

    def _wrong(self, method: str, result: object, expected: str) -> ConfigError:
        """The error for a wrong result. `result`: the result itself, or a text that describes it."""
        own: Callable[..., object] = inspect.unwrap(getattr(super(), method).__func__)
        code = own.__code__
        location = f"{code.co_filename}:{code.co_firstlineno}: {code.co_qualname}"
        return ConfigError(
            f"{plugins.VARIABLE}: {location}: returned {described(result)}, expected {expected}"
        )


def described(result: object) -> str:
    """Describe in a few words what a method has returned; texts stay as they are."""
    if isinstance(result, Tensor):
        return f"a tensor of shape {tuple(result.shape)}"
    if isinstance(result, str):
        return result
    return repr(result) if result is None else f"an object of type {type(result).__name__}"
