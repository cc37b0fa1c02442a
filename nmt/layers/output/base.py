"""What models ask of an output layer, and the settings of all of them. A new layer usually changes the scores
of `Softmax`; see CONTRIBUTING.md.

N tokens, R rows, K features, V words, T selected words. All logarithms are natural.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.config.settings import choice, number, setting
from nmt.plugins import with_settings


@dataclass
@with_settings("output settings")
class OutputSettings:
    """The choice of an output layer and its settings. A layer reads only the keys that its `reads` lists."""

    output: str = setting("softmax", help="output layer: how features become probabilities")
    output_classes: str = choice(
        "frequency",
        "random",
        "clusters",
        help="classes: words in order of their frequency, classes equally likely; at random, classes equally "
        "large (Jernite 2018, eq. 2.6); or clustered by their neighbors in the training text",
    )
    output_class_count: int = number(
        0, least=0, help="classes: their number; 0: the square root of the vocabulary size"
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
        0.75,
        least=0,
        most=10,
        help="nce, negative-sampling: the noise is the frequency of a word to this power",
    )


class OutputLayer(nn.Module):
    """A distribution over V words from K features. The class attributes and `finds_best_sooner` say what
    a layer supports; callers check them before they use `learn`, `log_probs_of_words` or `best_words`."""

    reads: ClassVar[frozenset[str]] = frozenset()  # fields of OutputSettings that the layer uses
    refuses: ClassVar[Mapping[str, str]] = {}  # `tied`, `label_smoothing` or `ema` -> why not
    learns_text: ClassVar[bool] = False  # adapts to the training text: `learn` is called first
    word_by_word: ClassVar[bool] = False  # log p of one word costs much less than those of all
    self_normalized: ClassVar[bool] = False  # log Z is 0, or trained to be about 0

    def __init__(
        self, inputs: int, vocab_size: int, bias: bool = True, settings: OutputSettings | None = None
    ) -> None:
        """`inputs`: K. `bias`: whether each word has a bias. `settings`: for a layer that reads any;
        None: defaults."""
        super().__init__()

    @property
    def vocab_size(self) -> int:
        """Number of words, V, that the layer scores."""
        raise NotImplementedError

    def learn(self, text: NDArray[np.integer]) -> None:
        """Adapt to the targets of the training text, given as ids (n,) with an end symbol after each
        sentence. Called once, before training, if `learns_text` is set."""
        raise NotImplementedError

    def cross_entropy(
        self, features: Tensor, targets: Tensor, smoothing: float = 0.0, penalty: float = 0.0
    ) -> Tensor:
        """The loss Σ -log p(target): (N, K), (N,) -> (). `smoothing`: the share of each target's weight that
        is spread over all words; `penalty`: the weight of Σ (log Z)²."""
        raise NotImplementedError

    def log_probs(self, features: Tensor, out: Tensor | None = None) -> Tensor:
        """log p of every word: (R, K) -> (R, V). `out`: memory from `room` to compute it in, where no
        gradient is needed."""
        raise NotImplementedError

    def room(self, rows: int) -> Tensor:
        """Memory for `log_probs` of this many rows."""
        raise NotImplementedError

    def target_log_probs(self, features: Tensor, targets: Tensor) -> Tensor:
        """log p of the given words, without gradient: (N, K), (N,) -> (N,)"""
        raise NotImplementedError

    def selected_log_probs(self, features: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
        """log p of words, any number of them per row of features, with gradient: (R, K), rows (T,) in
        increasing order, words (T,) -> (T,)"""
        raise NotImplementedError

    def log_probs_of_words(self, features: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
        """log p of words, any number of them per row of features and in any order, without gradient: (R, K),
        rows (T,), words (T,) -> (T,). Only for layers with `word_by_word`."""
        raise NotImplementedError

    @property
    def finds_best_sooner(self) -> bool:
        """Whether `best_words` finds a beam's few best words faster than `log_probs` scores all words."""
        return False

    def best_words(self, features: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """log p and ids of the `count` most likely words, best first, without gradient and without computing
        log p of all words: (R, K) -> (R, count) twice"""
        raise NotImplementedError

    def scores(self, features: Tensor) -> Tensor:
        """Unnormalized log p, before log Z is subtracted: (R, K) -> (R, V)"""
        raise NotImplementedError

    def target_scores(self, features: Tensor, targets: Tensor) -> Tensor:
        """The scores of the given words alone, without gradient: (N, K), (N,) -> (N,)"""
        raise NotImplementedError

    def log_z(self, features: Tensor) -> Tensor:
        """The normalizer, log Σ exp(score): (R, K) -> (R,)"""
        raise NotImplementedError

    def restrict(self, token_ids: Tensor) -> "OutputLayer":
        """Output layer restricted to these words, (T,): its word i is token_ids[i]. Whether later changes of
        the weights affect it depends on the layer."""
        raise NotImplementedError

    def tie(self, embedding: nn.Embedding) -> None:
        """Use the word embeddings (V, K) as the output matrix. ConfigError for a layer that cannot."""
        raise NotImplementedError

    def word_parameters(self) -> Sequence[str]:
        """Names of the parameters that have a row for each word."""
        raise NotImplementedError
