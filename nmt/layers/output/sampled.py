"""Training by telling words of the text from words of a noise distribution Ψ, without the sum over the
vocabulary: noise-contrastive estimation (Gutmann and Hyvärinen 2010; Mnih and Teh 2012) and negative sampling
(Mikolov et al. 2013).

    loss of a word y after features f:   -log σ(Δ(y)) - Σ_k log σ(-Δ(w_k)),   k noise words w_k drawn from Ψ
    NCE:                 Δ(w) = s(w) - log k Ψ(w),  s(w) = g_w f + b_w - log V   ->  s = log p
    negative sampling:   Δ(w) = g_w f + b_w  ->  PMI(w, f) - log k,  so that s(w) = Δ(w) + log k Ψ(w) -> log p

At the optimum the scores s are log p themselves, log Z is 0. In training the noise words are the same for all
words of a batch. Elsewhere the layer is a softmax of s.

V words, K features, N tokens.
"""

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from nmt.layers.output.base import OutputSettings
from nmt.layers.output.softmax import Softmax

# ---- alias -------------------------------------------------------------------------------------------------
# Draws from a fixed distribution in constant time: the alias method (Walker 1977; Vose 1991).


def alias_table(probabilities: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Build the alias table of a distribution (V,): for each column, the share that belongs to the outcome of
    the same index, (V,), and the outcome that has the rest, (V,)."""
    size = len(probabilities)
    share = probabilities * (size / probabilities.sum())
    alias = np.arange(size)
    small = np.flatnonzero(share < 1).tolist()
    large = np.flatnonzero(share >= 1).tolist()
    while small and large:
        poor, rich = small.pop(), large[-1]
        alias[poor] = rich
        share[rich] -= 1 - share[poor]
        if share[rich] < 1:
            small.append(large.pop())
    share[small + large] = 1  # they are 1 up to rounding errors
    return share, alias


def alias_draw(share: Tensor, alias: Tensor, count: int) -> Tensor:
    """Draw outcomes (count,) from the distribution of an `alias_table`, by torch's generator."""
    column = torch.randint(len(share), (count,), device=share.device)
    own = torch.rand(count, device=share.device, dtype=share.dtype) < share[column]
    return torch.where(own, column, alias[column])


# ---- sampled -----------------------------------------------------------------------------------------------


UNSEEN = 0.1  # count of a word that does not occur in the text: every word must have a chance to be drawn


class NoiseContrastive(Softmax):
    """Output layer trained by noise-contrastive estimation. The noise is uniform before `learn`."""

    reads: ClassVar[frozenset[str]] = frozenset({"output_samples", "output_power"})
    refuses: ClassVar[Mapping[str, str]] = {
        "label_smoothing": "its training compares a word with a few others"
    }
    learns_text: ClassVar[bool] = True
    self_normalized: ClassVar[bool] = True

    noise: Tensor  # (V,) log Ψ
    share: Tensor  # (V,) the alias table of the noise, see `alias_table`
    alias: Tensor  # (V,)

    def __init__(
        self, inputs: int, vocab_size: int, bias: bool = True, settings: OutputSettings | None = None
    ) -> None:
        super().__init__(inputs, vocab_size, bias)
        settings = settings or OutputSettings()
        self.samples, self.power = settings.output_samples, settings.output_power
        self.register_buffer("noise", torch.full((vocab_size,), -math.log(vocab_size)))
        self.register_buffer("share", torch.ones(vocab_size), persistent=False)
        self.register_buffer("alias", torch.arange(vocab_size), persistent=False)
        self.register_load_state_dict_post_hook(restore_alias_table)  # type: ignore[no-untyped-call]

    def learn(self, text: NDArray[np.integer]) -> None:
        """Set the noise to the word distribution of a text (n,), raised to the power `output_power`, and the
        biases, if there are any, so that s = log Ψ for features of 0."""
        counts = np.bincount(text, minlength=self.vocab_size)
        powers = np.maximum(counts, UNSEEN) ** self.power
        self.noise.copy_(torch.from_numpy(np.log(powers / powers.sum())))
        if self.words_bias is not None:
            with torch.no_grad():
                self.words_bias.copy_(self.noise - self.base)
        self.update_alias_table()

    def update_alias_table(self) -> None:
        """Recompute the alias table from the noise."""
        share, alias = alias_table(self.noise.double().exp().cpu().numpy())
        self.share.copy_(torch.from_numpy(share))
        self.alias.copy_(torch.from_numpy(alias))

    @property
    def base(self) -> Tensor:
        """Term of s that does not depend on the parameters: s = g_w f + b_w + base, (V,)"""
        return torch.full_like(self.noise, -math.log(self.vocab_size))

    def weights(self) -> tuple[Tensor, Tensor | None]:
        """The matrix and the bias of s."""
        return self.words, self.base if self.words_bias is None else self.words_bias + self.base

    def cross_entropy(
        self, features: Tensor, targets: Tensor, smoothing: float = 0.0, penalty: float = 0.0
    ) -> Tensor:
        """In training the loss above: (N, K), (N,) -> (), without `penalty`. Otherwise Σ -log p(target)."""
        if not self.training:
            return super().cross_entropy(features, targets, smoothing, penalty)
        assert not smoothing, self.refuses["label_smoothing"]
        drawn = torch.cat([targets, alias_draw(self.share, self.alias, self.samples)])
        shift = (self.base - self.noise - math.log(self.samples)).index_select(0, drawn)
        if self.words_bias is not None:
            shift = shift + self.words_bias.index_select(0, drawn)
        rows = self.words.index_select(0, drawn)  # once: its gradient is as large as `words`
        N = len(targets)
        true = (features * rows[:N]).sum(1) + shift[:N]
        noise = F.linear(features, rows[N:], shift[N:])
        loss: Tensor = F.softplus(-true).sum() + F.softplus(noise).sum()
        return loss


class NegativeSampling(NoiseContrastive):
    """Output layer trained by negative sampling: the score includes the noise as log k Ψ."""

    @property
    def base(self) -> Tensor:
        """log k Ψ, the noise scaled by the number of samples: (V,)"""
        return self.noise + math.log(self.samples)


def restore_alias_table(layer: NoiseContrastive, incompatible: object) -> None:
    """Recompute the alias table from the noise, which was read from a file."""
    layer.update_alias_table()
