"""What neural language models share: scores of sentences from one method, and a softmax over features.

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
from nmt.layers.output import OutputLayer, OutputSettings, SelfNormalized, check_output, make_output

# ---- config ------------------------------------------------------------------------------------------------
# The settings that all neural language models share; each type adds its own, beside its model.


@dataclass
class LMConfig(OutputSettings):
    """The section `lm` of a run: `type` names a class in nmt.lm.registry.LANGUAGE_MODELS, whose `Config` has
    the keys of that type. An empty type: the run is a translator."""

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
        """`("target",)` where words have a table of vectors of size `embedding`; the class is then
        `WordTables` of nmt/models/protocols.py."""
        return ()


# ---- protocols ---------------------------------------------------------------------------------------------
# What callers may ask of a neural language model: one Protocol for all, and optional capabilities, each a
# Protocol of its own.
#
# B sentences of a batch, N units of all of them (end symbols included), R rows (hypotheses), V vocabulary, n
# order, G n-grams. Every log is natural.


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


class RunFile(Protocol):
    """What a kind of model learns from its training text beside its weights, in a file of the run."""

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


class LanguageModel(Scorer, Protocol):
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
        """Does it read running text, its state carried from line to line? Then it is a RunningTextModel."""
        ...

    def cost(self, batch: Batch | TrackChunk, smoothing: float, carried: Carried) -> tuple[Tensor, Carried]:
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

    def score_running(self, chunk: TrackChunk, carried: Carried) -> tuple[Tensor, Carried]:
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
        """A model over the words of a vocabulary; see nmt.lm.base.LanguageModel."""
        return cls(config, len(symbols), fill)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device

    @property
    def carries(self) -> bool:
        """Does it read running text, its state carried from line to line?"""
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
    """log p, natural, of each text, (texts,), through a trie: each prefix is computed once. `walk`: the model
    about to read a trie in which only these units occur. `ends`: with end symbols."""
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
        """Are its scores trained to be log p without log Z?"""
        return bool(self.normalizer) or isinstance(self.output, SelfNormalized)

    def read(self, batch: Batch) -> Tensor:
        """Features for each unit of some sentences, in packed order: (N, K)"""
        raise NotImplementedError

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """Σ -log p of the units of sentences on their own; in training with `normalizer` (log Z)²: ()"""
        return self.cross_entropy(self.read(batch), batch.target.ids, smoothing)

    def answers(self, token_ids: Tensor) -> Tensor:
        """The words of the output layer that some units are predicted as: (N,) -> (N,)"""
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
        """Nothing: a language model attends to no source."""


class FeatureLM(SoftmaxLM):
    """A distribution over the vocabulary from features. A search state is one tensor, a row for each
    hypothesis."""

    embedding: nn.Module  # word ids (N,) -> vectors (N, E)

    def word_table(self, side: str) -> nn.Embedding:
        """For `WordTables`: the vectors of the words, of the one side."""
        assert isinstance(self.embedding, nn.Embedding)
        return self.embedding

    @torch.no_grad()
    def word_vectors(self, side: str, token_ids: Tensor) -> Tensor:
        """The vectors that words are read as, without gradient; there is one side: (T,) -> (T, E)"""
        found: Tensor = self.embedding(token_ids)
        return found

    def reorder(self, state: Tensor, rows: Tensor) -> Tensor:
        """Row i of the new state is row rows[i] of the given one."""
        return state.index_select(0, rows)

    def join(self, states: Sequence[Tensor]) -> Tensor:
        """The rows of all states, one below the other."""
        return torch.cat(list(states))
