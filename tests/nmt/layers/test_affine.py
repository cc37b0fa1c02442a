"""A matrix and a bias."""

import torch

from nmt.layers.affine import Affine


def test_it_is_the_product_and_the_sum() -> None:
    layer = Affine(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 0, 2], [0, 1, 0]]))
        layer.bias.copy_(torch.tensor([0.5, -1]))
    assert layer(torch.tensor([1.0, 2, 3])).tolist() == [7.5, 1]
