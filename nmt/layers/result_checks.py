"""Checks of what a model of the user's own returns: a wrong shape or type is reported where it arises, in one
line, instead of deep inside a training or a search."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from nmt import plugins
from nmt.data.batches import Batch
from nmt.errors import ConfigError

T = TypeVar("T")
ABOVE_0 = 0.1  # a natural log p may be as high by rounding, in bf16, too


def checked(kind: type[T], checks: type) -> type[T]:
    """A class of the toolkit as it is; for one of a plugin a subclass of the same name, with the methods of
    `checks`, a subclass of `ResultChecks`, before its own."""
    if plugins.is_own(kind.__module__):
        return kind
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return type(kind.__name__, (checks, kind), names)


class ResultChecks:
    """Mixin, placed before the class of a plugin, a translation model or a language model: its methods call
    those of the plugin, and raise ConfigError in one line for results that they must not return."""

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        loss: object = super().loss(batch, smoothing)  # type: ignore[misc]
        if not isinstance(loss, Tensor) or loss.shape != ():
            raise self._wrong("loss", loss, "a tensor of shape (), the sum of -log p over the batch")
        if torch.is_grad_enabled() and not loss.requires_grad:
            raise self._wrong("loss", "a tensor without gradient", "one that depends on the parameters")
        return loss

    def token_log_probs(self, batch: Batch) -> Tensor:
        log_probs: Tensor = super().token_log_probs(batch)  # type: ignore[misc]
        meaning = "log p of each target token"
        self._check_shape("token_log_probs", log_probs, (len(batch.target.ids),), meaning)
        self._check_sign("token_log_probs", log_probs, meaning)
        return log_probs

    def _check_shape(self, method: str, values: object, shape: tuple[int, ...], meaning: str) -> None:
        """ConfigError unless `values` are a tensor of this shape. `meaning`: what they stand for."""
        if not isinstance(values, Tensor) or values.shape != shape:
            raise self._wrong(method, values, f"a tensor of shape {shape}, {meaning}")

    def _check_sign(self, method: str, values: Tensor, meaning: str) -> None:
        """ConfigError unless `values` can be natural logarithms of probabilities."""
        if values.numel() and float(values.max()) > ABOVE_0:
            raise self._wrong(method, "logarithms above 0", f"{meaning}, as log_softmax gives")

    def _wrong(self, method: str, result: object, expected: str) -> ConfigError:
        """The error for a wrong result of the plugin's method. `result`: the result, or a text about it."""
        checks = next(kind for kind in type(self).__mro__ if method in vars(kind))
        own: Callable[..., object] = getattr(super(checks, self), method).__func__
        return plugins.wrong_result(own, described(result), expected)


def described(result: object) -> str:
    """Describe in a few words what a method has returned; texts stay as they are."""
    if isinstance(result, Tensor):
        return f"a tensor of shape {tuple(result.shape)}"
    if isinstance(result, str):
        return result
    return repr(result) if result is None else f"an object of type {type(result).__name__}"
