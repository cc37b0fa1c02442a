"""Functions with one result and with two, and their gradients."""

import torch
from torch import Tensor

from nmt.compute.autograd import Context, apply, apply_pair


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: Context, grad: Tensor) -> Tensor:
        return 2 * grad


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, y)
        return x + y, x * y

    @staticmethod
    def backward(ctx: Context, s: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return s + p * y, s + p * x


def test_results_and_gradients() -> None:
    x, y = (torch.tensor(values, dtype=torch.float64, requires_grad=True) for values in ([1.0, 2], [3.0, 5]))
    assert torch.autograd.gradcheck(lambda a: apply(Twice, a), (x,))
    assert torch.autograd.gradcheck(lambda a, b: apply_pair(Both, a, b), (x, y))
    total, product = apply_pair(Both, x, y)
    assert apply(Twice, x).tolist() == [2, 4] and total.tolist() == [4, 7] and product.tolist() == [3, 10]
