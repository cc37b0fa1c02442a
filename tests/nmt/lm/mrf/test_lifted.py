"""The lifted bound against log Z of the ring by enumeration: never below it, tighter with each step."""

import itertools

import pytest
import torch
from torch import Tensor

from nmt.lm.mrf import lifted

V = 4


def potentials(order: int, seed: int, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """θ0 and θ^l, in float64."""
    made = torch.Generator().manual_seed(seed)
    unary = torch.randn(V, generator=made, dtype=torch.float64)
    return unary, scale * torch.randn(order, V, V, generator=made, dtype=torch.float64)


def exact(unary: Tensor, edges: Tensor, size: int) -> Tensor:
    """A(θ) of a ring: the sum over all texts."""
    texts = torch.tensor(list(itertools.product(range(V), repeat=size)))
    total = unary[texts].sum(1)
    for distance, edge in enumerate(edges, 1):
        total = total + edge[texts, texts.roll(-distance, 1)].sum(1)
    return total.logsumexp(0)


EIGHT = pytest.mark.ci  # 65,536 texts


@pytest.mark.parametrize(
    ("order", "size"),
    [
        (1, 2),
        (1, 4),
        pytest.param(1, 8, marks=EIGHT),
        (2, 3),
        (2, 6),
        (3, 4),
        pytest.param(3, 8, marks=EIGHT),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_bound_is_never_below_the_exact_value(order: int, size: int, seed: int) -> None:
    unary, edges = potentials(order, seed)
    least = float(exact(unary, edges, size))
    stars = size / (order + 1)
    found = lifted.tighten(unary, edges, 100)
    assert all(stars * value >= least - 1e-9 for value in found.values)
    noise = torch.randn(order, V, dtype=torch.float64)
    assert stars * float(lifted.log_z(unary, edges, noise)) >= least  # for every δ
    assert stars * float(lifted.log_z(unary, edges, found.delta)) == pytest.approx(stars * found.values[-1])
    assert found.values[-1] <= found.values[0]


def test_without_edges_the_bound_is_exact() -> None:
    unary, edges = potentials(2, 3, scale=0)
    bound = 6 / 3 * lifted.log_z(unary, edges, torch.zeros(2, V, dtype=torch.float64))
    assert float(bound) == pytest.approx(float(exact(unary, edges, 6)))


def test_tightening_never_raises_the_bound_and_ends_with_equal_marginals() -> None:
    unary, edges = potentials(2, 5)
    found = lifted.tighten(unary, edges, 400)
    assert all(after <= before for before, after in itertools.pairwise(found.values))
    assert found.values[-1] < found.values[0] - 0.01
    center, joint = lifted.marginals(unary, edges, found.delta)
    assert joint.sum((1, 2)).tolist() == pytest.approx([1, 1])
    for pair in joint:
        assert pair.sum(1).tolist() == pytest.approx(center.tolist())  # (4.10), true of every δ
        assert pair.sum(0).tolist() == pytest.approx(center.tolist(), abs=1e-4)  # at the tightest one
    loose = lifted.marginals(unary, edges, torch.zeros(2, V, dtype=torch.float64))[1]
    assert (loose.sum(1) - center).abs().max() > 1e-2
    again = lifted.tighten(unary, edges, 5, found.delta)
    assert again.values[-1] <= found.values[-1]


def test_one_pass_over_the_star_is_the_sum_over_its_states() -> None:
    """Log Z and marginals of a star with two leaves, by enumeration; gradients by finite differences."""
    unary, edges = potentials(2, 6)
    delta = 0.3 * torch.randn(2, V, dtype=torch.float64)
    grid = torch.zeros(V, V, V, dtype=torch.float64)
    for center, one, two in itertools.product(range(V), repeat=3):
        grid[center, one, two] = (
            unary[center] - delta[:, center].sum() + unary[one] + delta[0, one] + unary[two] + delta[1, two]
            + 3 * edges[0, center, one] + 3 * edges[1, center, two]
        )  # fmt: skip
    assert float(lifted.log_z(unary, edges, delta)) == pytest.approx(float(grid.logsumexp((0, 1, 2))))
    share = (grid - grid.logsumexp((0, 1, 2))).exp()
    center_share, joint = lifted.marginals(unary, edges, delta)
    assert torch.allclose(center_share, share.sum((1, 2)))
    assert torch.allclose(joint, torch.stack([share.sum(2), share.sum(1)]))
    value, slope = lifted.slope_of(unary, edges, delta)
    assert value == pytest.approx(float(lifted.log_z(unary, edges, delta)))
    delta.requires_grad_()
    assert torch.allclose(torch.autograd.grad(lifted.log_z(unary, edges, delta), delta)[0], slope)
    assert torch.autograd.gradcheck(lifted.log_z, (unary.requires_grad_(), edges.requires_grad_(), delta))


@pytest.mark.ci
def test_longer_rings_come_closer_to_the_bound() -> None:
    """Figure 4.5: per symbol the bound does not depend on N; the exact value approaches a limit below."""
    unary, edges = potentials(1, 7, scale=0.5)
    bound = lifted.tighten(unary, edges, 200).values[-1] / 2
    gaps = [bound - float(exact(unary, edges, size)) / size for size in (4, 6, 8)]
    assert all(gap > 0 for gap in gaps) and abs(gaps[2] - gaps[1]) < abs(gaps[1] - gaps[0]) + 1e-9
