"""The lifted tree-reweighted upper bound of A(θ) (000, section 4.3, equations 4.9 to 4.13).

The ring of N symbols is covered by K + 1 forests of stars, in which a symbol and the K after it are joined;
each edge is in exactly one forest. All stars are alike, so one is enough, whatever N is:

    A(θ) <= N / (K + 1) · log Z(δ),    for every δ

where Z(δ) is the partition function of a star with potentials θ0 - Σ_l δ^l at its center, θ0 + δ^l at leaf l
and (K + 1) θ^l on the edge to it. The bound is convex in δ (K, V), and tightest where leaves and center have
the same marginals.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

FIRST_STEP = 1e3  # α = 10³ / 2^t after t steps that did not lower the bound


def star(unary: Tensor, edges: Tensor, delta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log Z of a star, (), the marginals of its center, (V,), and the messages of its leaves before they are
    summed, (K, V, V): center, then leaf. One pass of belief propagation, from the leaves to the center."""
    joint = (len(edges) + 1) * edges + (unary + delta)[:, None, :]
    center = unary - delta.sum(0) + joint.logsumexp(2).sum(0)
    return center.logsumexp(0), center.softmax(0), joint


def log_z(unary: Tensor, edges: Tensor, delta: Tensor) -> Tensor:
    """log Z of a star: (). The bound of A for N symbols is N / (K + 1) times this."""
    return star(unary, edges, delta)[0]


def marginals(unary: Tensor, edges: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """Of a star: p of its center, (V,), and of center and each leaf, (K, V, V)."""
    _, center, joint = star(unary, edges, delta)
    return center, center[:, None] * joint.softmax(2)


@dataclass
class Tightened:
    """The tightest bound found: its δ, (K, V), and log Z after each step, the first that of the start."""

    delta: Tensor
    values: list[float]


@torch.no_grad()
def tighten(
    unary: Tensor, edges: Tensor, steps: int, start: Tensor | None = None, tolerance: float = 1e-5
) -> Tightened:
    """Algorithm 4.1: gradient descent on δ, from 0 or from `start`, until no marginal of a leaf differs from
    the center's by more than `tolerance`. A step that does not lower the bound is taken back, and all later
    steps are half as long."""
    delta = torch.zeros(len(edges), len(unary), dtype=unary.dtype) if start is None else start
    value, slope = slope_of(unary, edges, delta)
    values, rate = [value], FIRST_STEP
    for _ in range(steps):
        if slope.abs().max() <= tolerance:
            break
        trial = delta - rate * slope
        found, turn = slope_of(unary, edges, trial)
        if found < value:
            delta, value, slope = trial, found, turn
        else:
            rate /= 2
        values.append(value)
    return Tightened(delta, values)


def slope_of(unary: Tensor, edges: Tensor, delta: Tensor) -> tuple[float, Tensor]:
    """log Z of a star, and its gradient for δ: marginals of leaves less those of the center, (K, V), equation
    4.13."""
    value, center, joint = star(unary, edges, delta)
    leaves = torch.stack([center @ edge.softmax(1) for edge in joint])
    return float(value), leaves - center
