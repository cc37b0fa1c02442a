"""Highway layers (Srivastava et al. 2015), in the form of the sub-word thesis, section 2.2."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TRANSFORM_BIAS = -2.0  # b_T at the start: the layer carries y through


def highway(y: Tensor, matrix: Tensor, bias: Tensor, transform: Tensor, transform_bias: Tensor) -> Tensor:
    """t = σ(W_T y + b_T);  z = t ⊙ relu(W_H y + b_H) + (1 - t) ⊙ y: (N, K) -> (N, K)"""
    t = torch.sigmoid(F.linear(y, transform, transform_bias))
    return t * F.relu(F.linear(y, matrix, bias)) + (1 - t) * y


class Highway(nn.Module):
    """A highway layer of K units with its parameters."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.empty(size, size))  # W_H
        self.bias = nn.Parameter(torch.zeros(size))
        self.transform = nn.Parameter(torch.empty(size, size))  # W_T
        self.transform_bias = nn.Parameter(torch.full((size,), TRANSFORM_BIAS))

    def after_initialize(self) -> None:
        """Set what `initialize` made 0."""
        self.transform_bias.fill_(TRANSFORM_BIAS)

    def forward(self, y: Tensor) -> Tensor:
        """(N, K) -> (N, K)"""
        return highway(y, self.matrix, self.bias, self.transform, self.transform_bias)
