"""What models ask of an output layer. A new one usually changes the scores of `Softmax`; see CONTRIBUTING.md.

The other protocols are optional capabilities: whoever needs one asks `isinstance(layer, LearnsText)`.

N tokens, R rows, K features, V words, T of the words. All logarithms are natural.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.config.settings import choice, number, setting
from nmt.plugins import with_settings

# ---- settings ----------------------------------------------------------------------------------------------
# The settings of output layers: keys of the sections `model` and `lm`.


@dataclass
@with_settings("output settings")
class OutputSettings:
    """Which output layer, and what it is made of. A layer reads the keys that its `reads` names."""

    output: str = setting("softmax", help="output layer: how features become probabilities")
    output_classes: str = choice(
        "frequency",
        "random",
        "clusters",
        help="classes: words in order of their frequency, classes equally likely; at random, classes equally "
        "large (Jernite 2018, eq. 2.6); or clustered by their neighbors in the training text",
    )
    output_class_count: int = number(
        0, least=0, help="classes: how many; 0: the square root of the vocabulary"
    )
    output_tree: str = choice(
        "huffman", "random", help="tree: frequent words near the root, or words at random, all equally deep"
    )
    output_arity: int = number(
        0,
        least=0,
        most=100_000,
        help="trees: children of a node; 0: 2 of a Huffman tree, else as many as three levels need",
    )
    output_samples: int = number(100, least=1, help="nce, negative-sampling: noise words drawn for a batch")
    output_power: float = number(
        0.75, least=0, help="nce, negative-sampling: the noise is the frequency of a word to this power"
    )


# ---- protocol ----------------------------------------------------------------------------------------------


class OutputLayer(Protocol):
    """A distribution over V words from K features; a `torch.nn.Module`."""

    reads: ClassVar[frozenset[str]]  # the fields of OutputSettings that mean something to it
    refuses: ClassVar[Mapping[str, str]]  # `tied`, `label_smoothing` or `ema` -> why not

    def __init__(
        self, inputs: int, vocab_size: int, bias: bool = True, settings: OutputSettings | None = None
    ) -> None:
        """`inputs`: K. `bias`: whether each word has a bias. `settings`: of the section, for
        a layer that reads any; None: defaults."""
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


@runtime_checkable
class LearnsText(Protocol):
    """A layer that is made for a text: by the frequencies of its words, or by what stands beside them."""

    def learn(self, text: NDArray[np.integer]) -> None:
        """Told once, before a training: the targets of the training text as ids, (n,), an end symbol after
        each sentence."""
        ...


@runtime_checkable
class WordByWord(Protocol):
    """A layer for which log p of one word costs much less than those of all words."""

    def log_probs_of_words(self, features: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
        """log p of words, any number of them for a row, in any order, without gradient: (R, K), rows (T,),
        (T,) -> (T,)"""
        ...


@runtime_checkable
class BestWords(WordByWord, Protocol):
    """A layer that finds the most likely words without log p of all."""

    @property
    def finds_best_sooner(self) -> bool:
        """Is `best_words` of a beam search's few words faster than log p of all?"""
        ...

    def best_words(self, features: Tensor, count: int, width: int = 0) -> tuple[Tensor, Tensor]:
        """Natural log p and words of the `count` most likely ones, the best first, without gradient: (R, K)
        -> (R, count) twice. `width`: by a beam search; 0: exact."""
        ...


@runtime_checkable
class SelfNormalized(Protocol):
    """A layer whose scores are log p, or are always trained to be: log Z is 0, or about 0."""

    self_normalized: bool
