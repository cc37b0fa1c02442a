"""The mask, the scheduler's sharpness and what computation costs."""

import math

import pytest
import torch

from nmt.layers.computation import EPSILON, ComputationSettings, Scheduler, mask_of, penalty, schedulers
from nmt.layers.initialize import initialize

D = 8


@pytest.mark.parametrize("m", [0.0, 0.01, 0.25, 0.3, 0.5, 0.99, 1.0])
def test_a_sharp_mask_is_the_first_dimensions(m: float) -> None:
    """λ → ∞: ones at the first ⌈m D⌉ dimensions, but for one half where m D is a whole number."""
    mask = mask_of(torch.tensor([m]).double(), D, torch.tensor(1e9))[0]
    whole = math.ceil(m * D)
    assert mask[:whole].eq(1).all() and mask[whole + 1 :].eq(0).all()
    assert whole == D or mask[whole] in (0, 0.5)


def test_a_soft_mask_falls_and_is_cut_off() -> None:
    shares = torch.tensor([0.2, 0.9]).double()
    mask = mask_of(shares, 1000, torch.tensor(0.1))
    assert (mask.diff(dim=1) <= 0).all()
    assert mask.min() == 0 and mask.max() == 1
    inside = mask[(mask > 0) & (mask < 1)]
    assert inside.min() >= EPSILON and inside.max() <= 1 - EPSILON
    expected = torch.sigmoid(0.1 * (shares[:, None] * 1000 - torch.arange(1000)))
    assert torch.allclose(mask, expected, atol=2 * EPSILON)


def scheduler(**settings: float) -> Scheduler:
    made = Scheduler(2, 3, ComputationSettings(**settings))
    initialize(made, "uniform", 0.1)
    return made


def test_m_starts_where_training_wants_it() -> None:
    made = scheduler(computation=0.3)
    found = made.share(made.project(torch.randn(4, 2))[:, 0], torch.randn(4, 3))
    assert found.tolist() == pytest.approx([0.3] * 4)


def test_sharpness_grows_from_epoch_to_epoch() -> None:
    made, found = scheduler(), []
    made.set_pace(3)
    for step in range(1, 40):
        made.updated(step)
        found.append(round(float(made.sharpness), 6))
    assert found[:6] == [0.1, 0.1, 0.2, 0.2, 0.2, 0.3] and found[-12:] == [1.0] * 12
    made = scheduler(sharpness=2.0)
    made.set_pace(1)
    made.updated(1)
    assert made.sharpness == 2, "it never falls"


def test_penalty() -> None:
    """The weight times the distances from the target, of training alone, and each once."""
    made = scheduler(computation=0.5, computation_penalty=2)
    m = torch.tensor([0.25, 0.5, 1.0], requires_grad=True)
    made.note(m)
    made.note(torch.tensor([0.0]))
    found = penalty(schedulers(torch.nn.ModuleList([made])))
    assert isinstance(found, torch.Tensor) and float(found.detach()) == pytest.approx(2 * 1.25)
    torch.autograd.backward(found)
    assert m.grad is not None and m.grad.tolist() == [-2, 0, 2]
    made.eval().note(m)
    assert penalty([made]) == 0
