"""Base classes of neural language models, which score sentences, and the optional methods of a model.

A model of your own defines `embedding`, `output` and `read`, and for search and sampling `start` and `step`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

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
from nmt.layers.batch_scores import Walk, level_words, on_device, walk_tries, word_scores
from nmt.layers.output import OutputLayer, OutputSettings, check_output
from nmt.layers.output.softmax import counted_cross_entropy
from nmt.layers.result_checks import ResultChecks
from nmt.text.vocab import BOS


@dataclass
class LMConfig(OutputSettings):
    """The section `lm` of a run: `type` names a class in nmt.lm.LANGUAGE_MODELS, whose `Config` has the keys
    of that type. If `type` is empty, the run is a translator."""

    # As in nmt.models.config.ModelConfig.
    noun: ClassVar[str] = "a language model"
    remedy: ClassVar[str] = ""
    reads: ClassVar[str] = "text"
    translates: ClassVar[bool] = False
    # ("target",) if words have a table of vectors of size `embedding`, which `word_embedding` returns
    vector_sides: ClassVar[tuple[str, ...]] = ()
    type: str = setting("", help="what kind of language model to train; empty: a translator")
    embedding: int = number(512, least=1, most=MOST_UNITS, help="size of a word vector")
    dropout: float = number(
        0.0,
        least=0,
        below=1,
        help="share of values set to 0 in training, on embeddings and outputs of layers, never on recurrent "
        "connections",
    )
    init: str = choice(
        "uniform",
        "paper",
        "glorot",
        help="distribution of initial weights; paper: N(0, init_scale²), as in Cho et al. 2014a; uniform: "
        "U(±init_scale); glorot: by the size of each matrix",
    )
    init_scale: float = number(
        0.01,
        above=0,
        help="scale of uniform and paper; Cho et al. 2014a initialize their CSLM by U(±0.01); for recurrent "
        "models use 0.1",
    )

    def check(self) -> None:
        """ConfigError for a value out of range, and for values that contradict each other."""
        settings.check(self, "lm.")
        check_output(self, "lm")


# ---- scores and files --------------------------------------------------------------------------------------
# B sentences of a batch, N units of all of them (end symbols included), R rows (hypotheses), V vocabulary, n
# order, G n-grams. Every log is natural.

Carried = Tensor | tuple[Tensor, ...] | None  # the state after running text, as checkpoints keep it
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class TextScorer(Protocol):
    """Scores texts of ids, each as a sentence of its own."""

    def score_texts(self, texts: Sequence[Ids]) -> list[list[float]]:
        """Natural log p of each unit of each text and of its end symbol."""
        ...

    def score_sentences(self, texts: Sequence[Ids], ends: bool = True) -> Floats:
        """Natural log p of each text, (texts,). `ends`: with the end symbol; otherwise texts are prefixes."""
        ...


class RunFile(Protocol):
    """A file of a run that stores data other than weights that a model type learns from its training text."""

    @classmethod
    def learn(cls, config: Any, lines: Iterator[list[str]], show_bar: bool) -> Self:
        """Learn from the training text, given as the units of each line. `config`: the section `lm`."""
        ...

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file. DataError for a damaged one."""
        ...

    def save(self, path: Path) -> None:
        """Write the file that `load` reads."""
        ...


NO_FILES: Mapping[str, RunFile] = {}


class NgramScores(TextScorer, Protocol):
    """Natural log p of n-grams, many at a time."""

    @property
    def order(self) -> int: ...

    def score(self, contexts: Ints, words: Ints) -> Floats:
        """Natural log p(word | context): contexts (G, n - 1), words (G,) -> (G,)"""
        ...


# ---- base classes ------------------------------------------------------------------------------------------


class LanguageModel(nn.Module):
    """A neural language model that can be trained and scores text. A subclass defines `loss` and
    `token_log_probs`; optional methods return None or raise NotImplementedError here."""

    required: ClassVar[Sequence[str]] = ("loss", "token_log_probs")
    Config: ClassVar[type[LMConfig]] = LMConfig  # the keys of the section `lm` for this type
    # what else a run of this type stores, by the file's name, one of nmt.runs.directory.RUN_FILES
    run_files: ClassVar[Mapping[str, type[RunFile]]] = {}
    cpu_only: ClassVar[bool] = False

    @classmethod
    def build(
        cls, config: Any, symbols: Sequence[str], files: Mapping[str, RunFile] = NO_FILES, fill: bool = True
    ) -> Self:
        """Build a model over the words of a vocabulary. `config`: an instance of the class's Config. `files`:
        the content of its `run_files`. `fill=False`: parameters stay uninitialized, as weights are loaded
        next."""
        return cls(config, len(symbols), fill)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def carries(self) -> bool:
        """Whether its state is carried from line to line of running text, for `score_running`."""
        return False

    @property
    def takes_padding(self) -> bool:
        """Whether `loss` leaves out the padding of a batch, see `Batch.pad`. On a GPU such a model trains
        with CUDA graphs (nmt/training/cuda_graphs.py)."""
        return False

    def cost(self, batch: Batch | TrackChunk, smoothing: float, carried: Carried) -> tuple[Tensor, Carried]:
        """The objective of training: Σ -log p of the units of a batch, with label smoothing, (); for models
        that carry their state also the one after a chunk of running text. `carried`: that before, None at
        first."""
        assert isinstance(batch, Batch), "this model does not read running text"
        return self.loss(batch, smoothing), None

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """Σ -log p of the units of independent sentences: (). `smoothing`: the share of each unit's weight
        that is spread over the vocabulary."""
        raise NotImplementedError

    def token_log_probs(self, batch: Batch) -> Tensor:
        """Natural log p of each unit, in packed order, without gradient: (N,)"""
        raise NotImplementedError

    def score_texts(self, texts: Sequence[Ids]) -> list[list[float]]:
        return word_scores(self, [((), text) for text in texts])

    def score_sentences(self, texts: Sequence[Ids], ends: bool = True) -> Floats:
        return np.array([sum(scores if ends else scores[:-1]) for scores in self.score_texts(texts)])

    def score_running(self, chunk: TrackChunk, carried: Carried) -> tuple[Tensor, Carried]:
        """Natural log p of each unit of running text, (T * B,), without gradient, and the state after it.
        `carried`: the state before it; None at the start."""
        raise NotImplementedError

    def without_log_z(self) -> TextScorer | None:
        """A scorer with log Z as 0, for a self-normalized model (Devlin et al. 2014); None for others."""
        return None

    def log_normalizers(self, texts: Sequence[Ids]) -> Floats:
        """log Z of each distinct context of some sentences. If they are near 0, unnormalized scores
        approximate log p."""
        raise NotImplementedError

    def ngram_scores(self, normalized: bool = False, keep_tables: bool = False) -> NgramScores | None:
        """A scorer of n-grams for the phrase-based decoder, for a model of the previous n - 1 words; None for
        others. `normalized`: take log Z as 0. `keep_tables`: prepare for many small calls."""
        return None

    def spelling_ids(self, words: Sequence[str], token_ids: Sequence[int]) -> list[int]:
        """Ids of words. If the model reads words by their spelling, words outside the vocabulary (UNK in
        `token_ids`) get ids above those of the vocabulary, which are valid until the next call."""
        return list(token_ids)

    def filter_vectors(self, token_ids: Tensor) -> Tensor | None:
        """Vectors of words that depend only on their spelling, without gradient: (T,) -> (T, width); None if
        the model has none."""
        return None

    def sample(
        self, lines: int, max_length: int, seed: int, temperature: float, top_k: int, top_p: float
    ) -> Iterator[list[str]] | None:
        """Sample `lines` lines, each as the texts of its tokens, cut after `max_length` symbols; for a model
        whose tokens have several symbols. The settings are those of SamplingConfig. None for models that are
        sampled step by step (nmt.search.sampling)."""
        return None


def choose_scorer(model: LanguageModel, normalized: bool, directory: Path) -> TextScorer:
    """The model itself or, with `normalized`, its scorer without log Z. `directory`: the run, for messages.
    ConfigError for a model that is not self-normalized."""
    scorer = model.without_log_z() if normalized else model
    if scorer is None:
        raise ConfigError(
            f"--assume-normalized: {directory} is not a CSLM trained with lm.normalizer; its scores are not "
            "log p without log Z; leave the option out"
        )
    return scorer


def trie_scores(model: Any, texts: Sequence[Ids], ends: bool, first_word: int = BOS) -> Floats:
    """Natural log p of each text, (texts,), through a trie: each prefix is computed once. `model`: a
    SoftmaxLM with the methods `start`, `advance`, `reorder` and `join`; `ends`: include end symbols;
    `first_word`: the id that the model reads before the first word."""
    if not texts:
        return np.zeros(0)
    levels = prefix_tree.levels(texts)
    words, index = level_words(levels)
    ids = on_device(np.where(words == BOS, first_word, words), model.device)

    walk = Walk(
        device=model.device,
        output=model.output,
        start=lambda: model.start([()]),
        step=lambda state, rows, first: model.advance(state, ids[rows]),
        reorder=model.reorder,
        join=model.join,
    )
    with torch.no_grad():
        return walk_tries(walk, levels, index, len(texts), ends)


class SoftmaxLM(LanguageModel):
    """A language model with a softmax over the vocabulary, computed from one row of features per unit."""

    output: OutputLayer
    normalizer: float = 0.0  # weight of (log Z)² in training

    @property
    def self_normalized(self) -> bool:
        return bool(self.normalizer) or self.output.self_normalized

    def read(self, batch: Batch) -> Tensor:
        """Features for each unit of some sentences, in packed order: (N, K)"""
        raise NotImplementedError

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """Σ -log p of the units of independent sentences, in training plus `normalizer` times (log Z)²: ()"""
        return self.cross_entropy(self.read(batch), batch.target.ids, smoothing, batch.counted)

    def answers(self, token_ids: Tensor) -> Tensor:
        """Map ids of units to the ids that the output layer predicts: (N,) -> (N,)"""
        return token_ids

    def cross_entropy(
        self, features: Tensor, ids: Tensor, smoothing: float, counted: Tensor | None = None
    ) -> Tensor:
        """Σ -log p of units given their features, (N, K), (N,) -> (). `counted` (N,): 0 for padding."""
        penalty = self.normalizer if self.training else 0.0
        return counted_cross_entropy(self.output, features, self.answers(ids), counted, smoothing, penalty)

    def token_log_probs(self, batch: Batch) -> Tensor:
        with torch.no_grad():
            return self.output.target_log_probs(self.read(batch), self.answers(batch.target.ids))

    def attention(self, state: Any) -> None:
        """Returns None: a language model attends to no source."""


class CheckedSoftmaxLM(ResultChecks, SoftmaxLM):
    """Mixin for the language model of a plugin, see `ResultChecks`."""

    def read(self, batch: Batch) -> Tensor:
        features: object = super().read(batch)
        tokens = len(batch.target.ids)
        if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != tokens:
            raise self._wrong("read", features, f"a tensor of shape ({tokens}, K), features of each token")
        return features


class FeatureLM(SoftmaxLM):
    """A softmax language model whose search state is one tensor, with one row per hypothesis."""

    embedding: nn.Module  # word ids (N,) -> vectors (N, E)

    def word_embedding(self, side: str) -> nn.Module:
        return self.embedding

    def reorder(self, state: Tensor, rows: Tensor) -> Tensor:
        return state.index_select(0, rows)

    def join(self, states: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(states))
