"""Dropout keeps the expected share and the expected value."""

import pytest
import torch

from nmt.layers.dropout import dropout


@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_shares_and_means(share: float) -> None:
    torch.manual_seed(0)
    x = torch.ones(401, 499, dtype=torch.float64)
    found = dropout(x, share, True)
    kept = 1 - share
    deviation = (kept * (1 - kept) / x.numel()) ** 0.5
    assert float((found > 0).double().mean()) == pytest.approx(kept, abs=5 * deviation + 2**-16)
    assert torch.allclose(found[found > 0], torch.tensor(1 / kept, dtype=torch.float64), rtol=1e-4)
    rows, columns = (found > 0).double().mean(1), (found > 0).double().mean(0)
    for means, count in ((rows, 499), (columns, 401)):
        assert float((means - kept).abs().max()) < 6 * (kept * (1 - kept) / count) ** 0.5 + 1e-4


def test_the_gradient_is_of_what_was_kept() -> None:
    torch.manual_seed(0)
    x = torch.randn(7, 3, requires_grad=True)
    found = dropout(x, 0.5, True)
    found.sum().backward()
    assert x.grad is not None and torch.equal(x.grad, (found != 0) * 2.0)


def test_without_training_nothing_is_drawn() -> None:
    x, before = torch.randn(3), torch.get_rng_state()
    assert dropout(x, 0.5, False) is x and dropout(x, 0.0, True) is x
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    first = dropout(x, 0.5, True)
    torch.manual_seed(1)
    assert torch.equal(dropout(x, 0.5, True), first)
