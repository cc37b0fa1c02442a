"""Draws have the frequencies of the distribution."""

import numpy as np
import pytest
import torch

from nmt.layers.output.alias import alias_table, draw


@pytest.mark.parametrize("weights", [[1.0], [1, 1, 1], [5, 1, 0, 2], [1e-9, 1.0], 1 / np.arange(1, 40.0)])
def test_the_columns_add_up_to_the_probabilities(weights: list[float]) -> None:
    probabilities = np.array(weights) / np.sum(weights)
    share, other = alias_table(probabilities)
    total = share.copy()
    np.add.at(total, other, 1 - share)
    assert total / len(total) == pytest.approx(probabilities, abs=1e-12)
    assert (share >= 0).all() and (share <= 1).all()


def test_frequencies() -> None:
    """Chi-squared of 100,000 draws, 9 degrees of freedom: 27.9 is exceeded once in a thousand times."""
    probabilities = 1 / np.arange(1, 11)
    probabilities /= probabilities.sum()
    share, other = (torch.from_numpy(part) for part in alias_table(probabilities))
    torch.manual_seed(1)
    counts = torch.bincount(draw(share, other, 100_000), minlength=10).numpy()
    expected = 100_000 * probabilities
    assert ((counts - expected) ** 2 / expected).sum() < 27.9
    torch.manual_seed(1)
    assert np.array_equal(torch.bincount(draw(share, other, 100_000), minlength=10).numpy(), counts)
