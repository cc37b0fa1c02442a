"""The cost of guided alignment is the cross-entropy between links and attention."""

import math

import pytest
import torch

from nmt.data.guidance import Guidance
from nmt.layers.guided import alignment_cost


def test_cross_entropy_of_tokens_that_have_links() -> None:
    torch.manual_seed(0)
    weights = torch.softmax(torch.randn(4, 3, dtype=torch.float64), 1)
    wanted = Guidance(torch.tensor([0, 0, 3]), torch.tensor([1, 2, 0]), torch.tensor([0.5, 0.5, 1.0]) * 2)
    expected = -(0.5 * math.log(weights[0, 1]) + 0.5 * math.log(weights[0, 2]) + math.log(weights[3, 0]))
    assert float(alignment_cost(weights, wanted).detach()) == pytest.approx(2 * expected, rel=1e-12)
    assert torch.autograd.gradcheck(lambda w: alignment_cost(w, wanted), weights.requires_grad_())


def test_no_links_cost_nothing_and_no_weight_is_no_infinity() -> None:
    weights = torch.tensor([[1.0, 0.0]], requires_grad=True)
    none = torch.zeros(0, dtype=torch.long)
    assert float(alignment_cost(weights, Guidance(none, none, torch.zeros(0))).detach()) == 0
    cost = alignment_cost(weights, Guidance(torch.tensor([0]), torch.tensor([1]), torch.tensor([1.0])))
    cost.backward()
    assert weights.grad is not None and weights.grad.isfinite().all() and 69 < float(cost.detach()) < 70
