"""x Wᵀ + b, without initial values of its own: see nmt/layers/initialize.py."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Affine(nn.Module):
    """A matrix and a bias."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)"""
        return F.linear(x, self.weight, self.bias)
