"""Arcs are the tokens that end at each symbol; the forward recursion against sums written out."""

import numpy as np
import torch
from torch import Tensor

from nmt.lm.multiscale.lattice import marginal
from tests.nmt.lm.multiscale.test_model import tokens_of


def test_arcs_are_the_tokens_that_end_at_each_symbol() -> None:
    tokens, rng = tokens_of(), np.random.default_rng(1)
    symbols = rng.integers(-1, 6, (4, 40))
    arcs = tokens.arcs(symbols, 33)
    found = set(
        zip(arcs.rows.tolist(), arcs.ends.tolist(), arcs.lengths.tolist(), arcs.tokens.tolist(), strict=True)
    )
    expected = {
        (row, end + 1, len(spelling), token)
        for row in range(4)
        for end in range(33)
        for token, spelling in enumerate(tokens.spelling)
        if symbols[row, end + 8 - len(spelling) : end + 8].tolist() == spelling
    }
    assert found == expected and len(arcs.rows) == len(found)
    assert (np.diff(arcs.ends * 100 + arcs.rows) >= 0).all()


def test_the_marginal_and_its_gradient() -> None:
    torch.manual_seed(2)
    scores = torch.randn(5, 2, 3, dtype=torch.float64)
    scores[torch.rand(5, 2, 3) < 0.3] = -torch.inf
    scores[:, :, 0] = torch.randn(5, 2, dtype=torch.float64)
    before = torch.tensor([[-1e30, -1e30], [-1e30, -2.0], [0.0, 0.0]], dtype=torch.float64)

    def plain(values: Tensor) -> Tensor:
        alpha = list(before)
        for t in range(5):
            alpha.append(
                torch.logsumexp(
                    torch.stack([values[t, :, length] + alpha[-1 - length] for length in range(3)]), 0
                )
            )
        return torch.stack(alpha[3:])

    assert torch.allclose(marginal(scores, before), plain(scores))
    weights = torch.randn(5, 2, dtype=torch.float64)
    finite = scores.isfinite()
    grads = []
    for function in (lambda values: marginal(values, before), plain):
        values = scores.clone().requires_grad_()
        (grad,) = torch.autograd.grad((function(values) * weights).sum(), values)
        grads.append(grad[finite])
    assert torch.allclose(grads[0], grads[1], atol=1e-10)
