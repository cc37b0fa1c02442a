"""What models ask of an output layer. A new one usually changes the scores of `Softmax`; see CONTRIBUTING.md.

N tokens, R rows, K features, V words, T of the words. All logarithms are natural.
"""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor, nn


class OutputLayer(Protocol):
    """A distribution over V words from K features; a `torch.nn.Module`."""

    def __init__(self, inputs: int, vocab_size: int, bias: bool = True) -> None:
        """`inputs`: K. `bias`: whether each word has a bias."""
        ...

    @property
    def vocab_size(self) -> int: ...

    def cross_entropy(
        self, features: Tensor, targets: Tensor, smoothing: float = 0.0, penalty: float = 0.0
    ) -> Tensor:
        """The loss Σ -log p(target): (N, K), (N,) -> (). `smoothing`: the share of each target's weight that
        is spread over all words; `penalty`: the weight of Σ (log Z)²."""
        ...

    def log_probs(self, features: Tensor, out: Tensor | None = None) -> Tensor:
        """log p of every word: (R, K) -> (R, V). `out`: memory from `room` to compute it in, where no
        gradient is needed."""
        ...

    def room(self, rows: int) -> Tensor:
        """Memory for `log_probs` of this many rows."""
        ...

    def log_probs_of(self, features: Tensor, targets: Tensor) -> Tensor:
        """log p of the given words, without gradient: (N, K), (N,) -> (N,)"""
        ...

    def log_probs_at(self, features: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
        """log p of words, any number of them for a row, with gradient: (R, K), rows (T,) in increasing order,
        (T,) -> (T,)"""
        ...

    def scores(self, features: Tensor) -> Tensor:
        """log p short of the normalizer, log Z: (R, K) -> (R, V)"""
        ...

    def scores_of(self, features: Tensor, targets: Tensor) -> Tensor:
        """The scores of the given words alone, without gradient: (N, K), (N,) -> (N,)"""
        ...

    def log_z(self, features: Tensor) -> Tensor:
        """The normalizer, log Σ exp(score): (R, K) -> (R,)"""
        ...

    def restrict(self, token_ids: Tensor) -> "OutputLayer":
        """An output layer over these words alone, (T,), that follows later changes of the weights or not."""
        ...

    def tie(self, embedding: nn.Embedding) -> None:
        """Use the matrix of word embeddings (V, K) as the output matrix. ConfigError for a layer that
        cannot."""
        ...

    def word_parameters(self) -> Sequence[str]:
        """Names of the parameters that have a row for each word."""
        ...
