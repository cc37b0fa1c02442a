"""The exponential moving average of the weights of a training: training.ema.

    m_1 = θ_1,   m_t = d_t m_{t-1} + (1 - d_t) θ_t,   d_t = min(ema, (t + 1) / (t + 10))

θ_t are the weights after update t. The smaller d_t of the first updates are the correction that Marian's
--exponential-smoothing and OpenNMT-py's average_decay have too: without it the mean would long remember the
random weights of the beginning.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import Parameter


def decay_at(step: int, decay: float) -> float:
    """d_t: the share of the mean that an update keeps, for updates from 1 on."""
    return min(decay, (step + 1) / (step + 10)) if step > 1 else 0.0


class WeightAverage:
    """The mean of the weights of a model. The model itself keeps its raw weights, from which training goes
    on."""

    def __init__(self, parameters: Iterable[Parameter], decay: float) -> None:
        self.decay = decay
        self.weights: list[Tensor] = [parameter.detach() for parameter in parameters]  # follow the model
        self.mean = [weight.clone() for weight in self.weights]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after an update, numbered from 1."""
        torch._foreach_lerp_(self.mean, self.weights, 1 - decay_at(step, self.decay))

    @torch.no_grad()
    def set(self) -> None:
        """The mean is what the model has now."""
        torch._foreach_copy_(self.mean, self.weights)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside, the model has the mean; afterwards its own weights again, bit for bit."""
        raw = [weight.clone() for weight in self.weights]
        with torch.no_grad():
            torch._foreach_copy_(self.weights, self.mean)
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self.weights, raw)
