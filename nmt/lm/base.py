"""Common parts of neural language models: their Protocols, and base classes that score sentences.

A model of your own defines `embedding`, `output` and `read`, and for search and sampling `start` and `step`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.config import settings
from nmt.config.settings import MOST_UNITS, choice, number, setting
from nmt.data import prefix_tree
from nmt.data.batches import Batch, Ids
from nmt.data.running import TrackChunk
from nmt.errors import ConfigError
from nmt.layers.batch_scores import Walk, level_words, walk_tries, word_scores
from nmt.layers.output import OutputLayer, OutputSettings, check_output, make_output


@dataclass
class LMConfig(OutputSettings):
    """The section `lm` of a run: `type` names a class in nmt.lm.registry.LANGUAGE_MODELS, whose `Config` has
    the keys of that type. An empty type: the run is a translator."""

    noun: ClassVar[str] = "a language model"
    remedy: ClassVar[str] = ""
    reads: ClassVar[str] = "text"
    translates: ClassVar[bool] = False
    type: str = setting("", help="what kind of language model to train; empty: a translator")
    embedding: int = number(512, least=1, most=MOST_UNITS, help="size of a word vector")
    dropout: float = number(
        0.0, least=0, below=1, help="on embeddings and outputs of layers, never on recurrent connections"
    )
    init: str = choice("uniform", "paper", "glorot", help="distribution of initial weights; paper: normal")
    init_scale: float = number(
        0.01,
        above=0,
        help="width of uniform and normal; the paper's CSLM is U(±0.01), recurrent models want 0.1",
    )

    def check(self) -> None:
        """ConfigError for a value out of range, and for values that do not go together."""
        settings.check(self, "lm.")
        check_output(self, "lm")

    @property
    def vector_sides(self) -> tuple[str, ...]:
        """`("target",)` where words have a table of vectors of size `embedding`: the `word_embedding` of
        the model."""
        return ()


# ---- protocols ---------------------------------------------------------------------------------------------
# B sentences of a batch, N units of all of them (end symbols included), R rows (hypotheses), V vocabulary, n
# order, G n-grams. Every log is natural.


Carried = Tensor | tuple[Tensor, ...] | None  # the state after running text, as checkpoints keep it
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class TextScorer(Protocol):
    """Scores texts of ids, each a sentence on its own."""

    def score_texts(self, texts: Sequence[Ids]) -> list[list[float]]:
        """log p of each unit of each text and of its end symbol."""
        ...

    def score_sentences(self, texts: Sequence[Ids], ends: bool = True) -> Floats:
        """log p of each text as a whole, (texts,); common beginnings are computed once. `ends`: include the
        end symbol; otherwise texts are beginnings of sentences."""
        ...


class RunFile(Protocol):
    """File of a run with what a type of model learns from its training text besides its weights."""

    @classmethod
    def learn(cls, config: Any, lines: Iterator[list[str]], show_bar: bool) -> Self:
        """Learn from the units of each line of the training text; `config`: the section `lm`."""
        ...

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file. DataError for a damaged one."""
        ...

    def save(self, path: Path) -> None:
        """Write the file that `load` reads."""
        ...


NO_FILES: Mapping[str, RunFile] = {}


class LanguageModel(TextScorer, Protocol):
    """A neural language model: an nn.Module that is trained, and scores. nmt.lm.base is a start for one."""

    Config: ClassVar[type[LMConfig]]  # the keys of the section `lm` for this type
    run_files: ClassVar[Mapping[str, type[RunFile]]]  # by names of nmt.runs.directory.RUN_FILES
    cpu_only: ClassVar[bool]
    training: bool

    @classmethod
    def build(
        cls, config: Any, symbols: Sequence[str], files: Mapping[str, RunFile] = NO_FILES, fill: bool = True
    ) -> Self:
        """A model over the words of a vocabulary. `config`: of the class's Config. `files`: the content of
        its `run_files`. `fill=False` leaves the parameters as they are, for weights that are about to be
        loaded."""
        ...

    @property
    def device(self) -> torch.device: ...

    @property
    def carries(self) -> bool:
        """Whether its state is carried from line to line of running text; then it is a RunningTextModel."""
        ...

    def cost(self, batch: Batch | TrackChunk, smoothing: float, carried: Carried) -> tuple[Tensor, Carried]:
        """The objective of training: Σ -log p of the units of a batch, with label smoothing, (); and the
        state after it for running text."""
        ...

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """Σ -log p of the units of sentences on their own: ()"""
        ...

    def token_log_probs(self, batch: Batch) -> Tensor:
        """log p of each unit of sentences on their own, in packed order, without gradient: (N,)"""
        ...

    # Methods of nn.Module.

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

    def score_running(self, chunk: TrackChunk, carried: Carried) -> tuple[Tensor, Carried]:
        """log p of each unit of running text, (T * B,), without gradient, and the state after it."""
        ...


@runtime_checkable
class NormalizedScores(Protocol):
    """A model that can be trained so that its scores are log p without their normalizer log Z (Devlin et al.
    2014)."""

    @property
    def self_normalized(self) -> bool:
        """Whether scores are log p without log Z."""
        ...

    def without_log_z(self) -> TextScorer:
        """Scores with log Z taken as 0."""
        ...

    def log_normalizers(self, texts: Sequence[Ids]) -> Floats:
        """log Z of each distinct context of some sentences. Near 0, unnormalized scores approximate log p."""
        ...


class NgramScores(TextScorer, Protocol):
    """log p of n-grams, many at a time."""

    @property
    def order(self) -> int: ...

    def score(self, contexts: Ints, words: Ints) -> Floats:
        """log p(word | context): contexts (G, n - 1), words (G,) -> (G,)"""
        ...


@runtime_checkable
class NgramNetwork(Protocol):
    """A model whose context is the n - 1 words before, as the phrase-based decoder can use it."""

    def ngram_scores(self, normalized: bool = False, keep_tables: bool = False) -> NgramScores:
        """`normalized`: take log Z as 0. `keep_tables`: prepare for many small calls."""
        ...


@runtime_checkable
class OpenVocabulary(Protocol):
    """A model that reads words outside its vocabulary by their spelling."""

    def spelled(self, words: Sequence[str], token_ids: Sequence[int]) -> list[int]:
        """Ids of words; those outside the vocabulary, UNK in `token_ids`, get ids above those of the
        vocabulary, which are valid until the next call."""
        ...

    def filter_vectors(self, token_ids: Tensor) -> Tensor:
        """Vectors of words that depend on their spelling alone, without gradient: (T,) -> (T, width)"""
        ...


@runtime_checkable
class TokenSampler(Protocol):
    """A model that samples lines itself, as tokens of several symbols. Others are sampled step by step
    (nmt.search.sampling)."""

    def sample(self, lines: int, max_length: int, seed: int, temperature: float = 1.0) -> Iterator[list[str]]:
        """Lines as tokens, each cut off after `max_length` symbols."""
        ...


def choose_scorer(model: LanguageModel, normalized: bool, directory: Path) -> TextScorer:
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


# ---- base --------------------------------------------------------------------------------------------------


class LMBase(nn.Module):
    """Scores of texts from `token_log_probs`, which a model defines, with `loss`; both as in
    nmt.lm.base.LanguageModel."""

    Config: ClassVar[type[LMConfig]] = LMConfig
    run_files: ClassVar[Mapping[str, type[RunFile]]] = {}
    cpu_only: ClassVar[bool] = False

    @classmethod
    def build(
        cls, config: Any, symbols: Sequence[str], files: Mapping[str, RunFile] = NO_FILES, fill: bool = True
    ) -> Self:
        return cls(config, len(symbols), fill)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def carries(self) -> bool:
        return False

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """Σ -log p of the units of sentences on their own: ()"""
        raise NotImplementedError

    def token_log_probs(self, batch: Batch) -> Tensor:
        """log p of each unit, natural, in packed order, without gradient: (N,)"""
        raise NotImplementedError

    def cost(self, batch: Batch | TrackChunk, smoothing: float, carried: Carried) -> tuple[Tensor, Carried]:
        """The loss of sentences; models that carry their state take chunks of running text too."""
        assert isinstance(batch, Batch), "this model does not read running text"
        return self.loss(batch, smoothing), None

    def score_texts(self, texts: Sequence[Ids]) -> list[list[float]]:
        """log p, natural, of each unit of each text and of its end symbol."""
        return word_scores(self, [((), text) for text in texts])

    def score_sentences(self, texts: Sequence[Ids], ends: bool = True) -> Floats:
        """log p, natural, of each text, (texts,), its end symbol counted or not."""
        return np.array([sum(scores if ends else scores[:-1]) for scores in self.score_texts(texts)])


def output_layer(config: LMConfig, inputs: int, vocab_size: int) -> OutputLayer:
    """The output layer that `lm.output` names."""
    return make_output(config, inputs, vocab_size)


def trie_scores(texts: Sequence[Ids], ends: bool, walk: Callable[[Ints], Walk[Any]]) -> Floats:
    """log p, natural, of each text, (texts,), through a trie: each prefix is computed once. `walk`: starts a
    walk through tries of some units. `ends`: include end symbols."""
    if not texts:
        return np.zeros(0)
    levels = prefix_tree.levels(texts, [0] * len(texts))
    words, index = level_words(levels)
    with torch.no_grad():
        return walk_tries(walk(words), levels, index, len(texts), ends)


class SoftmaxLM(LMBase):
    """A distribution over the vocabulary from features, a row for each unit."""

    output: OutputLayer
    normalizer: float = 0.0  # weight of (log Z)² in training

    @property
    def self_normalized(self) -> bool:
        return bool(self.normalizer) or self.output.self_normalized

    def read(self, batch: Batch) -> Tensor:
        """Features for each unit of some sentences, in packed order: (N, K)"""
        raise NotImplementedError

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """Σ -log p of the units of sentences on their own; in training with `normalizer` (log Z)²: ()"""
        return self.cross_entropy(self.read(batch), batch.target.ids, smoothing)

    def answers(self, token_ids: Tensor) -> Tensor:
        """Ids in the output layer to predict for some units: (N,) -> (N,)"""
        return token_ids

    def cross_entropy(self, features: Tensor, ids: Tensor, smoothing: float) -> Tensor:
        """Σ -log p of units given their features, (N, K), (N,) -> ()"""
        penalty = self.normalizer if self.training else 0.0
        return self.output.cross_entropy(features, self.answers(ids), smoothing, penalty)

    def token_log_probs(self, batch: Batch) -> Tensor:
        """log p of each unit, natural, in packed order, without gradient: (N,)"""
        with torch.no_grad():
            return self.output.log_probs_of(self.read(batch), self.answers(batch.target.ids))

    def attention(self, state: Any) -> None:
        """Return None: a language model attends to no source."""


class FeatureLM(SoftmaxLM):
    """A distribution over the vocabulary from features. A search state is one tensor, a row for each
    hypothesis."""

    embedding: nn.Module  # word ids (N,) -> vectors (N, E)

    def word_embedding(self, side: str) -> nn.Module:
        """For `WordEmbeddings` of nmt/models/protocols.py; there is one side."""
        return self.embedding

    def reorder(self, state: Tensor, rows: Tensor) -> Tensor:
        return state.index_select(0, rows)

    def join(self, states: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(states))
