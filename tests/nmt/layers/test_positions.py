"""Vectors of places."""

import math

import pytest
import torch

from nmt.layers.positions import KNOWN, Learned, NoPositions, Sinusoidal, sinusoids


def test_sinusoids_are_what_the_paper_says() -> None:
    table = sinusoids(5, 6)
    for place in range(5):
        for i in range(3):
            angle = place / 10000 ** (2 * i / 6)
            assert table[place, 2 * i] == pytest.approx(math.sin(angle), abs=1e-12)
            assert table[place, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-12)


def test_a_shift_is_a_rotation() -> None:
    """The product of two places' vectors depends on their distance alone."""
    table = sinusoids(30, 8)
    assert torch.allclose((table[3] * table[7]).sum(), (table[20] * table[24]).sum())


def test_places_behind_the_table() -> None:
    positions, far = Sinusoidal(4, 1), torch.tensor([0, KNOWN + 5])
    assert torch.equal(positions(far), sinusoids(KNOWN + 6, 4).float()[far])
    assert not positions.state_dict(), "they are not weights"
    learned = Learned(4, 3)
    torch.nn.init.normal_(learned.weight)
    assert torch.equal(learned(torch.tensor([2, 9])), learned.weight[[2, 2]])
    assert not NoPositions(4, 3)(torch.tensor([2, 9])).any()
    assert positions(torch.zeros(0, dtype=torch.long)).shape == (0, 4)
