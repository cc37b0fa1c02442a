"""The cost of an attention that should follow a word alignment."""

from torch import Tensor

from nmt.data.guidance import Guidance

LEAST = 1e-30  # attention weights below it are taken for it: log 0 would end a training


def alignment_cost(weights: Tensor, wanted: Guidance) -> Tensor:
    """The cross-entropy Σ_t Σ_j -A_tj log a_tj between normalized links A and attention weights a (N, L),
    over the target tokens that have links: (). Natural logarithm; the shares of `wanted` have the weight of
    this cost in them."""
    looked = weights.flatten().index_select(0, wanted.tokens * weights.shape[1] + wanted.places)
    return -(wanted.shares * looked.clamp_min(LEAST).log()).sum()
