"""What is left of an intercepted product: torch's own results, in place and with out=."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nmt.compute.products import deliver

A, B = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(3, 4)
C = torch.full((2, 4), 0.5)


@pytest.mark.parametrize(("function", "given"), [(torch.mm, (A, B)), (torch.addmm, (C, A, B))])
@pytest.mark.parametrize("target", [False, True])
def test_as_torch_does(function: Callable[..., Tensor], given: tuple[Tensor, ...], target: bool) -> None:
    expected = function(*given)
    out = torch.zeros(2, 4)
    found = deliver(function, given, {"out": out} if target else {}, A @ B)
    assert torch.equal(found, expected) and (found is out) == target
    assert torch.equal(out, expected) or not target
    assert (C == 0.5).all()


def test_in_place() -> None:
    ours, theirs = C.clone(), C.clone()
    assert deliver(Tensor.addmm_, (ours, A, B), {}, A @ B) is ours
    assert torch.equal(ours, theirs.addmm_(A, B))
