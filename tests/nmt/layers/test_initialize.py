"""Initial values by the name and the shape of a parameter."""

import pytest
import torch
from torch import nn

from nmt.layers.cells import LSTM
from nmt.layers.initialize import initialize, orthogonal


def test_orthogonal_matrices_keep_lengths() -> None:
    matrix = orthogonal(6, torch.Generator().manual_seed(1)).double()
    assert torch.allclose(matrix.t() @ matrix, torch.eye(6, dtype=torch.float64), atol=1e-5)


@pytest.mark.parametrize("kind", ["paper", "glorot", "uniform"])
def test_every_kind_of_parameter(kind: str) -> None:
    torch.manual_seed(0)
    layer = LSTM(40, 30)
    initialize(layer, kind, 0.5)
    for block in layer.recurrent.split(30):
        assert torch.allclose(block @ block.t(), torch.eye(30), atol=1e-4)
    assert layer.bias.tolist() == [0.0] * 30 + [1.0] * 30 + [0.0] * 60  # the forget gate
    deviation = {"paper": 0.5, "glorot": (2 / (120 + 40)) ** 0.5, "uniform": 0.5 / 3**0.5}[kind]
    assert float(layer.inputs.detach().std()) == pytest.approx(deviation, rel=0.05)


def test_the_row_of_no_word_stays_zero() -> None:
    table = nn.Embedding(5, 3, padding_idx=1)
    initialize(table, "paper", 1.0)
    assert table.weight[1].tolist() == [0.0] * 3 and bool((table.weight[0] != 0).all())
