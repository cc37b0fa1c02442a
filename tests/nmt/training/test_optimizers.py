"""Optimizers by hand and against torch; clipping, the average of weights, schedules of the learning rate."""

import math

import pytest
import torch
from torch.nn import Parameter

from nmt.errors import ConfigError
from nmt.training import optimizers
from nmt.training.optimizers import (
    Adadelta,
    WeightAverage,
    clip,
    ema_decay,
    make_optimizer,
    rate_factor,
    update_all_at_once,
    update_in_blocks,
)

# ---- optimizers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, optimizers.BLOCK + 7])
def test_adadelta_equals_torchs(size: int) -> None:
    torch.manual_seed(0)
    ours, theirs = (torch.nn.Parameter(torch.ones(size)) for _ in range(2))
    a, b = Adadelta([ours]), torch.optim.Adadelta([theirs], lr=1.0, rho=0.95, eps=1e-6)
    for _ in range(20):
        ours.grad = torch.randn(size)
        theirs.grad = ours.grad.clone()
        a.step()
        b.step()
    assert torch.allclose(ours, theirs, atol=1e-6, rtol=0)


def test_adadelta_for_a_gpu_is_that_for_a_processor() -> None:
    """The same update of two tensors, block by block and by operations on all tensors."""
    torch.manual_seed(0)
    sizes = (3, optimizers.BLOCK + 7)
    ours, theirs = ([[torch.ones(n), torch.zeros(n), torch.zeros(n)] for n in sizes] for _ in range(2))
    for _ in range(20):
        grads = [torch.randn(n) for n in sizes]
        for step, state in ((update_in_blocks, ours), (update_all_at_once, theirs)):
            parameters, squares, deltas = (list(parts) for parts in zip(*state, strict=True))
            step(parameters, grads, squares, deltas, 0.5, 0.95, 1e-6)
    for a, b in zip(ours, theirs, strict=True):
        for one, other in zip(a, b, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)
    assert not torch.allclose(ours[0][0], torch.ones(3))


def test_adadelta_by_hand() -> None:
    """Two steps of gradient 2: G = .05·4 = .2, Δ = -√1e-6/√(.2+1e-6)·2, D = .05Δ²; then the same again."""
    parameter = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = Adadelta([parameter])
    G = D = value = 0.0
    for _ in range(2):
        parameter.grad = torch.full((1,), 2.0, dtype=torch.float64)
        optimizer.step()
        G = 0.95 * G + 0.05 * 4
        move = -math.sqrt(D + 1e-6) / math.sqrt(G + 1e-6) * 2
        D = 0.95 * D + 0.05 * move**2
        value += move
    assert parameter.item() == pytest.approx(value, abs=1e-15)


def test_clip_keeps_the_direction() -> None:
    parameters = [Parameter(torch.zeros(size)) for size in (2, 1, 1)]
    parameters[0].grad, parameters[1].grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0])
    assert clip(parameters, 10.0) == 5.0
    assert parameters[0].grad.tolist() == [3.0, 0.0]
    assert clip(parameters, 1.0) == 5.0
    assert parameters[0].grad.tolist() == pytest.approx([0.6, 0.0])
    assert parameters[1].grad.tolist() == pytest.approx([0.8])
    assert clip(parameters, 0.0) == pytest.approx(1.0)


def test_unknown_optimizer_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected one of adadelta, adam, sgd"):
        make_optimizer("adamw", [torch.nn.Parameter(torch.zeros(1))], 1, 0, 0)


def test_clip_is_that_of_one_long_vector_in_double_precision() -> None:
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.zeros(size)) for size in (1000, 7, 1)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    together = torch.cat([p.grad for p in parameters if p.grad is not None]).double()
    norm = clip(parameters, 0.5)
    assert norm == pytest.approx(float(together.norm()), rel=1e-7)
    after = torch.cat([p.grad for p in parameters if p.grad is not None])
    assert torch.allclose(after.double(), together * (0.5 / norm), rtol=1e-6, atol=0)


# ---- ema ---------------------------------------------------------------------------------------------------
# The average of weights; see test_state.py for how it is saved and resumed.


def test_the_average_is_the_formula_written_out() -> None:
    torch.manual_seed(1)
    weight = Parameter(torch.randn(3, 2, dtype=torch.float64))
    average, mean = WeightAverage([weight], 0.9), torch.zeros(3, 2, dtype=torch.float64)
    for step in range(1, 120):
        with torch.no_grad():
            weight.add_(torch.randn_like(weight))
        average.update(step)
        kept = min(0.9, (step + 1) / (step + 10)) if step > 1 else 0
        mean = kept * mean + (1 - kept) * weight.detach()
        torch.testing.assert_close(average.mean[0], mean)
    # The first updates count little later on: (t + 1) / (t + 10) reaches 0.9 at update 80.
    assert [ema_decay(step, 0.9) for step in (1, 2, 8, 80, 81)] == [0, 3 / 12, 9 / 18, 0.9, 0.9]


def test_weights_come_back_after_an_error() -> None:
    weight = Parameter(torch.ones(2))
    average = WeightAverage([weight], 0.5)
    with torch.no_grad():
        weight.fill_(3)
    with pytest.raises(ZeroDivisionError), average.in_place():
        assert weight.tolist() == [1, 1]
        raise ZeroDivisionError
    assert weight.tolist() == [3, 3]


# ---- schedules ---------------------------------------------------------------------------------------------
# The learning rate after the warm-up.


def test_schedules_by_hand() -> None:
    assert [rate_factor("constant", 0, step) for step in (1, 100)] == [1.0, 1.0]
    assert [rate_factor("constant", 4, step) for step in (1, 2, 4, 9)] == [0.25, 0.5, 1.0, 1.0]
    assert [rate_factor("inverse_sqrt", 4, step) for step in (1, 4, 16, 64)] == [0.25, 1.0, 0.5, 0.25]
    assert [rate_factor("linear", 2, step, 5) for step in (1, 2, 3, 5, 6)] == [0.5, 1.0, 0.75, 0.25, 0.0]
    assert [rate_factor("linear", 2, step, used=0.25) for step in (1, 2, 9)] == [
        0.5,
        0.75,
        0.75,
    ]  # time alone
    assert [rate_factor("linear", 0, 5, 9, used) for used in (0.25, 0.75)] == [0.5, 0.25]  # the nearer end
    assert [rate_factor(name, 1, 1, used=0.5) for name in ("constant", "inverse_sqrt")] == [1.0, 1.0]
    assert [rate_factor("linear", 9, step, 5) for step in (3, 9, 10)] == [1 / 3, 0.0, 0.0]  # a long warm-up
