"""How much of its state a recurrent cell computes at each step (the sub-word thesis, section 2.4): a
scheduler decides on a share m of the dimensions, a mask e lets the first of them change.

m_t = σ(u h_{t-1} + v x_t + b), and e_i = Thres(σ(λ (m_t D - i))) for i = 0, ..., D - 1. The thesis counts i
from 1; from 0, a mask without slope (λ → ∞) has exactly the first ⌈m D⌉ dimensions, and all of them at m = 1.

D size of a vector, E input size, H hidden units, N tokens, R rows.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.settings import number

EPSILON = 1e-6  # values of the mask nearer than this to 0 or 1 are 0 or 1; the thesis gives no figure


@dataclass
class ComputationSettings:
    """The keys of cells vcrnn and vcgru, for sections `lm` and `model`."""

    computation: float = number(
        0.5,
        above=0,
        below=1,
        help="cells vcrnn and vcgru: share of the units that training wants computed, m; the thesis has 0.2 "
        "to 0.5",
    )
    computation_penalty: float = number(
        0.1, least=0, help="the same cells: weight of |m_t - computation| in the cost of each token"
    )
    sharpness: float = number(0.1, above=0, help="the same cells: slope of the mask in the first epoch")
    sharpness_step: float = number(0.1, least=0, help="the same cells: what each epoch adds to the slope")
    sharpness_most: float = number(1.0, above=0, help="the same cells: the steepest slope")


@runtime_checkable
class Paced(Protocol):
    """A part of a model that changes from epoch to epoch."""

    def set_pace(self, updates: int) -> None:
        """Told before a training how many updates an epoch has."""
        ...


@dataclass
class Computed:
    """What one layer computed of each of T words."""

    hidden: int  # its units
    equivalent: float  # units of an Elman layer with as many operations as one of its units
    shares: Tensor  # (T,) m
    dimensions: Tensor  # (T,) units that were computed


def mask_of(m: Tensor, size: int, sharpness: Tensor) -> Tensor:
    """The mask of a vector of this size: shares (R,), λ () -> (R, D), 0 or 1 where it is within EPSILON of
    them."""
    places = torch.arange(size, dtype=m.dtype, device=m.device)
    e = torch.sigmoid(sharpness * (m[:, None] * size - places))
    return torch.where(e < EPSILON, 0.0, torch.where(e > 1 - EPSILON, 1.0, e))


class Scheduler(nn.Module):
    """Decides on m. λ is saved with the weights; training makes the mask sharper from epoch to epoch."""

    sharpness: Tensor  # () λ

    def __init__(self, inputs: int, hidden: int, settings: ComputationSettings) -> None:
        super().__init__()
        self.settings = settings
        self.state = nn.Parameter(torch.zeros(hidden))  # u
        self.inputs = nn.Parameter(torch.zeros(inputs))  # v
        self.bias = nn.Parameter(torch.zeros(1))  # b
        self.register_buffer("sharpness", torch.tensor(settings.sharpness))
        self.pace = 0  # updates of an epoch
        self.noted: list[Tensor] = []

    def after_initialize(self) -> None:
        """At first m is what training wants it to be."""
        self.bias.fill_(math.log(self.settings.computation / (1 - self.settings.computation)))

    def project(self, inputs: Tensor) -> Tensor:
        """The inputs' part, v x + b: (N, E) -> (N, 1)"""
        return F.linear(inputs, self.inputs[None], self.bias)

    def share(self, projected: Tensor, state: Tensor) -> Tensor:
        """m of each row, given v x + b: (R,), (R, H) -> (R,)"""
        return torch.sigmoid(projected + state @ self.state)

    def set_pace(self, updates: int) -> None:
        self.pace = updates

    def updated(self, step: int) -> None:
        """After an update of a training: λ grows with each epoch. See nmt.layers.output.Evolves."""
        if self.pace and step % self.pace == 0:
            settings = self.settings
            slope = settings.sharpness + settings.sharpness_step * (step // self.pace)
            self.sharpness.fill_(min(max(settings.sharpness, settings.sharpness_most), slope))

    def note(self, m: Tensor) -> None:
        """Keep what was decided in training, (N,), until `penalty` asks for it."""
        if self.training and torch.is_grad_enabled():
            self.noted.append(m)

    def penalty(self) -> Tensor | float:
        """The weight times Σ |m - m̄| of what was noted since the last call: ()"""
        noted, self.noted = self.noted, []
        away = sum((m - self.settings.computation).abs().sum() for m in noted)
        return self.settings.computation_penalty * away


def schedulers(model: nn.Module) -> list[Scheduler]:
    """Those of a model; none where its cells compute everything."""
    return [part for part in model.modules() if isinstance(part, Scheduler)]


def penalty(found: Iterable[Scheduler]) -> Tensor | float:
    """What is added to the cost of a batch for the computation of all cells: ()"""
    return sum(part.penalty() for part in found)
