"""Both objectives learn what text there is; the bound's gradient is the difference of moments."""

from itertools import pairwise

import pytest
import torch

from nmt.lm.mrf import lifted
from nmt.lm.mrf.config import MRFConfig
from nmt.lm.mrf.model import ChainMRF, ring
from nmt.lm.mrf.training import Moments, lower_bound, train

LINES = [[3, 4, 5], [3, 4, 5], [5, 4], [3, 4, 5], [4]]


@pytest.mark.ci
@pytest.mark.parametrize("objective", ["pseudo-likelihood", "bound"])
def test_text_like_the_training_text_scores_higher(objective: str) -> None:
    config = MRFConfig(
        dimension=4, objective=objective, epochs=40, batch_size=64, learning_rate=0.1, rounds=8, dual_steps=60
    )
    told: list[float] = []
    model = train(config, LINES, 6, lambda done, value: told.append(value))
    assert told[-1] > told[0] + 0.02
    good, swapped, cut = model.score_sentences([[3, 4, 5], [4, 3, 5], [5, 3, 4]])
    assert good > swapped + 1 and good > cut + 1
    again = train(config, LINES, 6, lambda done, value: None)
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), again.parameters(), strict=True))


@pytest.mark.ci
def test_the_lower_bound_never_falls() -> None:
    config = MRFConfig(dimension=4, objective="bound", rounds=6, dual_steps=30, lbfgs_steps=5)
    told: list[float] = []
    train(config, LINES, 6, lambda done, value: told.append(value))
    assert all(after >= before - 1e-5 for before, after in pairwise(told))


def test_the_gradient_for_potentials_is_observed_less_expected() -> None:
    model = ChainMRF(MRFConfig(dimension=3), 6).double()
    symbols = ring(LINES, 2) + [1] * 2
    delta = 0.1 * torch.randn(2, 6, dtype=torch.float64)
    observed = Moments(symbols, 2)
    lower_bound(model, observed, delta).backward()
    center, joint = lifted.marginals(model.unary.detach(), model.edges().detach(), delta)
    leaves = joint.sum(1)
    expected = (center + leaves.sum(0)) / 3  # θ0 is in the center and in each leaf
    counts = torch.bincount(torch.tensor(symbols), minlength=6) / len(symbols)
    assert torch.allclose(model.unary.grad, counts - expected)  # type: ignore[arg-type]
    pairs = torch.zeros(2, 6, 6, dtype=torch.float64)
    for distance in (1, 2):
        for place, word in enumerate(symbols):
            pairs[distance - 1, word, symbols[(place + distance) % len(symbols)]] += 1 / len(symbols)
    slopes = pairs - joint
    right = torch.einsum("kst,sd->ktd", slopes, model.left.detach())
    assert torch.allclose(model.right.grad, right)  # type: ignore[arg-type]
