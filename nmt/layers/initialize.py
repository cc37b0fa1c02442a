"""Initial values of parameters (van Merriënboer 2018, section 4.4.1: N(0, 0.01²), recurrent matrices
orthogonal)."""

import math

import torch
from torch import Tensor, nn


def orthogonal(size: int) -> Tensor:
    """A random orthogonal matrix, the left singular vectors of a white Gaussian one: (size, size)"""
    vectors: Tensor = torch.linalg.svd(torch.randn(size, size))[0]
    return vectors


def initialize(module: nn.Module, kind: str, scale: float) -> None:
    """Fill every parameter of a model, in place, with values from torch's generator. `kind`: the
    distribution.

    `paper`: N(0, scale²); `uniform`: U(±scale); `glorot`: U(±√(6 / (fan_in + fan_out))). In all of them
    parameters named `recurrent` are stacks of orthogonal matrices, biases are 0, gains of layer normalization
    1, and the embedding of <s> stays 0. Then the method `after_initialize` of each part that has one is
    called."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            leaf = name.rsplit(".", 1)[-1]
            if leaf.startswith("recurrent"):
                size = parameter.shape[1]
                for start in range(0, parameter.shape[0], size):
                    parameter[start : start + size] = orthogonal(size)
            elif parameter.dim() < 2:
                parameter.zero_()
            elif kind == "glorot":
                parameter.uniform_(-1, 1).mul_(math.sqrt(6 / sum(parameter.shape)))
            elif kind == "uniform":
                parameter.uniform_(-scale, scale)
            else:
                parameter.normal_(0, scale)
        for part in module.modules():
            if isinstance(part, nn.Embedding) and part.padding_idx is not None:
                part.weight[part.padding_idx] = 0
            if isinstance(part, nn.LayerNorm):
                part.weight.fill_(1)
            after = getattr(part, "after_initialize", None)
            if callable(after):
                after()
