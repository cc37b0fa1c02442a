"""What remains of an intercepted matrix product once the product itself is computed."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor


def deliver(
    function: Callable[..., object], args: Sequence[Tensor], kwargs: Mapping[str, Tensor], product: Tensor
) -> Tensor:
    """The result of torch's mm, addmm or addmm_ (`function`) with these arguments, where `product` is that of
    its two matrices: the sum, the target of `out=`."""
    if function is Tensor.addmm_:
        return args[0].add_(product)
    if function is torch.addmm:
        product += args[0]
    return kwargs["out"].copy_(product) if "out" in kwargs else product
