"""What callers may ask of a neural language model: one Protocol for all, and optional capabilities, each a
Protocol of its own.

B sentences of a batch, N units of all of them (end symbols included), R rows (hypotheses), V vocabulary, n
order, G n-grams. Every log is natural.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.data.batches import Batch, Ids
from nmt.data.running import Chunk
from nmt.errors import ConfigError
from nmt.layers.computation import Computed
from nmt.lm.config import LMConfig
from nmt.lm.multiscale.dictionary import Dictionary

Carried = Tensor | tuple[Tensor, ...] | None  # the state after running text, as checkpoints keep it
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Scorer(Protocol):
    """Scores texts of ids, each a sentence on its own."""

    def score_texts(self, texts: Sequence[Ids]) -> list[list[float]]:
        """log p of each unit of each text and of its end symbol."""
        ...

    def score_sentences(self, texts: Sequence[Ids], ends: bool = True) -> Floats:
        """log p of each text as a whole, (texts,); what they have in common is computed once. `ends`: with
        the end symbol; else of the beginning of a sentence."""
        ...


class LanguageModel(Scorer, Protocol):
    """A neural language model: an nn.Module that is trained, and scores. nmt.lm.base is a start for one."""

    Config: ClassVar[type[LMConfig]]  # the keys of the section `lm` for this type
    needs_dictionary: ClassVar[bool]  # is a dictionary of tokens learned from the training text?
    cpu_only: ClassVar[bool]
    training: bool

    @classmethod
    def build(
        cls, config: Any, symbols: Sequence[str], dictionary: Dictionary | None = None, fill: bool = True
    ) -> Self:
        """A model over the words of a vocabulary. `config`: of the class's Config. `fill=False` leaves the
        parameters as they are, for weights that are about to be loaded."""
        ...

    @property
    def device(self) -> torch.device: ...

    @property
    def carries(self) -> bool:
        """Does it read running text, its state carried from line to line? Then it is a RunningTextModel."""
        ...

    def cost(self, batch: Batch | Chunk, smoothing: float, carried: Carried) -> tuple[Tensor, Carried]:
        """What training minimizes: Σ -log p of the units of a batch, smoothed, (); and the state after it for
        running text."""
        ...

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """Σ -log p of the units of sentences on their own: ()"""
        ...

    def token_log_probs(self, batch: Batch) -> Tensor:
        """log p of each unit of sentences on their own, in packed order, without gradient: (N,)"""
        ...

    # What nn.Module gives.

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...

    def state_dict(self) -> Mapping[str, Tensor]: ...

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> object: ...

    def train(self, mode: bool = True) -> Self: ...

    def eval(self) -> Self: ...

    def to(self, device: torch.device | str) -> Self: ...


@runtime_checkable
class RunningTextModel(Protocol):
    """A model that can carry its state from line to line."""

    @property
    def device(self) -> torch.device: ...

    def score_running(self, chunk: Chunk, carried: Carried) -> tuple[Tensor, Carried]:
        """log p of each unit of running text, (T * B,), without gradient, and the state after it."""
        ...


@runtime_checkable
class NormalizedScores(Protocol):
    """A model that can be trained so that its scores are log p without their normalizer log Z (Devlin et al.
    2014)."""

    @property
    def self_normalized(self) -> bool:
        """Was it trained so?"""
        ...

    def without_log_z(self) -> Scorer:
        """Scores with log Z taken as 0."""
        ...

    def log_normalizers(self, texts: Sequence[Ids]) -> Floats:
        """log Z of each distinct context of some sentences: near 0 where scores may be taken for log p."""
        ...


@runtime_checkable
class VariableComputation(Protocol):
    """A model that may decide how much it computes at each word."""

    @property
    def carries(self) -> bool: ...

    def computed(self, token_ids: Tensor, state: Tensor | None) -> tuple[Sequence[Computed], Tensor]:
        """What each layer computes when it reads running text (T,), from a state or, with None, from the
        beginning, and the state after it, without gradient. No layer where its cells compute everything."""
        ...


class NgramScores(Scorer, Protocol):
    """log p of n-grams, many at a time."""

    @property
    def order(self) -> int: ...

    def score(self, contexts: Ints, words: Ints) -> Floats:
        """log p(word | context): contexts (G, n - 1), words (G,) -> (G,)"""
        ...


@runtime_checkable
class NgramNetwork(Protocol):
    """A model that looks at the n - 1 words before: what the search of the phrase-based decoder can use."""

    def ngram_scores(self, normalized: bool = False, keep_tables: bool = False) -> NgramScores:
        """`normalized`: log Z is taken as 0. `keep_tables`: prepare for many small calls."""
        ...


@runtime_checkable
class OpenVocabulary(Protocol):
    """A model that reads words outside its vocabulary by their spelling."""

    def spelled(self, words: Sequence[str], token_ids: Sequence[int]) -> list[int]:
        """The ids of words, where each word that has none, UNK in `token_ids`, gets one above those of the
        vocabulary. The model reads them until the next call."""
        ...

    def filter_vectors(self, token_ids: Tensor) -> Tensor:
        """Vectors of words that only their spelling decides, without gradient: (T,) -> (T, width)"""
        ...


@runtime_checkable
class TokenSampler(Protocol):
    """A model whose units come in tokens of several symbols, which it draws itself. Others are sampled step
    by step (nmt.search.sampling)."""

    def sample(self, lines: int, max_length: int, seed: int, temperature: float = 1.0) -> Iterator[list[str]]:
        """Lines as tokens, each cut off after `max_length` symbols."""
        ...


def scorer_of(model: LanguageModel, normalized: bool, directory: Path) -> Scorer:
    """The model itself, or with `normalized` its scores without log Z. ConfigError for a model that was not
    trained for that."""
    if not normalized:
        return model
    if not isinstance(model, NormalizedScores) or not model.self_normalized:
        raise ConfigError(
            f"--assume-normalized: {directory} is not a CSLM trained with lm.normalizer; its scores are not "
            "log p without log Z"
        )
    return model.without_log_z()
