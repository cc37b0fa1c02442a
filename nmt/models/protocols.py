"""The interface of translation models, and capabilities that only some of them have.

A model is a subclass of `TranslationModel`, or of `AlignedModel` if it reads a word alignment;
`nmt/models/registry.py` maps the name in `model.type` to it. `StepModel` is what search needs of a model; the
protocols after `TranslationModel` are optional capabilities: callers check `isinstance(model, PrefixTrees)`,
and fall back or report in one line what the model cannot do.

Shapes: B sentences, N target tokens of a batch, R rows (hypotheses), S sentences in search, L source words, V
target words, T token ids, K output features; of aligned models n order, w source words of a window, P source
windows, H hidden units, G queries. Probabilities are natural logarithms.
"""

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import torch
from numpy import float64, int64
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.data.affiliation import Shape
from nmt.data.aligned import AlignedBatch
from nmt.data.batches import Batch, Ids
from nmt.layers.batch_scores import Walk
from nmt.layers.output import OutputLayer
from nmt.layers.output.softmax import counted_cross_entropy
from nmt.models.config import ModelConfig

State = TypeVar("State")
Begun = TypeVar("Begun", covariant=True)  # a state that a protocol only returns
Source = Any  # a sentence as the model reads it: Ids for most models, a Reading for an ensemble


def target_cost(layer: OutputLayer, features: Tensor, batch: Batch, smoothing: float) -> Tensor:
    """Σ -log p of the targets of a batch, padding left out, from output features (N, K): (). `smoothing`: the
    share of each token's weight that is spread over all words. Only `Softmax` takes padding."""
    return counted_cross_entropy(layer, features, batch.target.ids, batch.counted, smoothing)


@runtime_checkable
class StepModel(Protocol[State]):
    """Anything that predicts the next word: translators, ensembles, language models.

    Good: lp, state = model.step(state, token_ids); state = model.reorder(state, rows)

    Bad:  model.step(old_state, ...) after reorder: rows of a state and of `token_ids` belong together.
    """

    @property
    def device(self) -> torch.device: ...

    def start(self, sources: Sequence[Source]) -> State:
        """Create a state with one row for each source (ids without end symbol), before the first word."""
        ...

    def step(self, state: State, token_ids: Tensor | None) -> tuple[Tensor, State]:
        """log p of every next word after `token_ids` (R,), None at first: (R, V), and the new state."""
        ...

    def reorder(self, state: State, rows: Tensor) -> State:
        """Select rows of a state: row i of the result is row rows[i]; rows may repeat or be left out."""
        ...

    def join(self, states: Sequence[State]) -> State:
        """Concatenate the rows of all states."""
        ...

    def attention(self, state: State) -> Tensor | None:
        """Attention weights of the last step for each row of the state, over the source words and the end
        symbol: (R, L). None for a model without attention."""
        ...


class TranslationModel(nn.Module, Generic[State]):
    """A model of p(target | source), and a `StepModel`. Targets have end symbols; logarithms are natural."""

    required: ClassVar[Sequence[str]] = ("loss", "token_log_probs", "start", "step", "reorder", "join")
    Config: ClassVar[type[ModelConfig]]  # the dataclass of the keys of section `model`
    autocast: ClassVar[bool] = False  # bf16 on a GPU: activations are bf16, too (torch.autocast)

    def __init__(
        self,
        config: Any,  # an instance of Config
        source_vocab_size: int,
        target_vocab_size: int,
        fill: bool = True,
        spelling: Sequence[str] | None = None,
    ) -> None:
        """`fill=False` leaves the parameters uninitialized, for weights that are about to be loaded.
        `spelling`: the source words by id, for models that look inside them. ConfigError for a bad
        configuration."""
        super().__init__()

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    # ---- whole sentences -----------------------------------------------------------------------------------

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """Σ -log p(target | source) over a batch, and with `guidance` the cost of the attention weights: ().
        `smoothing`: the share of each token's weight that is spread over all words (label smoothing)."""
        raise NotImplementedError

    @property
    def takes_padding(self) -> bool:
        """Whether `loss` leaves out the padding of a batch, see `Batch.pad`."""
        return False

    def cost(self, batch: Batch, smoothing: float, carried: Tensor | None) -> tuple[Tensor, None]:
        """Loss, (), to differentiate, and the state to carry to the next batch: None, since only language
        models have one."""
        return self.loss(batch, smoothing), None

    def token_log_probs(self, batch: Batch) -> Tensor:
        """log p of each target token given those before it, in packed order, without gradient: (N,)"""
        raise NotImplementedError

    # ---- word by word --------------------------------------------------------------------------------------

    def start(self, sources: Sequence[Source]) -> State:
        raise NotImplementedError

    def step(self, state: State, token_ids: Tensor | None) -> tuple[Tensor, State]:
        raise NotImplementedError

    def reorder(self, state: State, rows: Tensor) -> State:
        raise NotImplementedError

    def join(self, states: Sequence[State]) -> State:
        raise NotImplementedError

    # ---- what only some models can do ----------------------------------------------------------------------

    @property
    def attends(self) -> bool:
        """Whether `attention` returns weights instead of None, and `attended` exists."""
        return False

    def attention(self, state: State) -> Tensor | None:
        return None

    def attended(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Output features (N, K) and attention weights over the source words and the end symbol, (N, L), of
        all target tokens in packed order, with gradient: for guided alignment, and to align given pairs."""
        raise NotImplementedError

    def source_vectors(self, sources: Sequence[Ids]) -> Tensor | None:
        """One vector for each whole source, without gradient: (B, width). None: the model has none."""
        return None

    def merge_gates(self, sources: Sequence[Ids]) -> list[Tensor] | None:
        """For each sentence of T words, the weights (new, left, right) of its T (T - 1) / 2 merges, level by
        level from the words up, which can be read as a parse: (nodes, 3). None: the encoder does not merge
        words pairwise."""
        return None


AnyStepModel = StepModel[Any]  # a model whose type of state does not matter to the caller


@runtime_checkable
class PrefixTrees(Protocol[State]):
    """A model that can score many targets through tries of their prefixes, as phrase tables need it."""

    def walk(self, sources: Sequence[Ids], token_ids: NDArray[int64]) -> Walk[State]:
        """Start a walk through one trie for each source, in which only these token ids (T,) occur."""
        ...


@runtime_checkable
class Layered(Protocol[State]):
    """A model whose output layer callers may use directly: short-lists compute only some of the words, and
    searches let the layer find the best words without scoring the others."""

    @property
    def output_layer(self) -> OutputLayer: ...

    def features(self, state: State, token_ids: Tensor | None) -> tuple[Tensor, State]:
        """Read `token_ids` (R,), None before the first, as `step` does. Returns the features that it passes
        to the output layer, (R, K), and the next state."""
        ...


@runtime_checkable
class Widening(Protocol[Begun]):
    """A model whose search is restricted to short-lists, to which words can be added for each sentence."""

    def start_with(self, sources: Sequence[Source], words: Sequence[Set[int]]) -> Begun:
        """Create a state as `start` does, in which each sentence may also use these target words (ids)."""
        ...


@runtime_checkable
class WordEmbeddings(Protocol):
    """A model that reads words as vectors: translators, joint models, and language models, which have one
    side, `target`."""

    def word_embedding(self, side: str) -> nn.Module:
        """The vectors of the `source` or `target` words, ids (T,) -> (T, width): an `nn.Embedding` for the
        `vector_sides` of the configuration, a table that pretrained vectors may be put into."""
        ...


@runtime_checkable
class WordParameters(Protocol):
    """A model that knows which of its parameters have a row for each word or character, so that these can be
    transferred between vocabularies."""

    def row_words(
        self, source_vocab: Sequence[str], target_vocab: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        """Parameter name -> the word or character of each of its rows, given both vocabularies by id."""
        ...


# ---- models that are given the alignment -------------------------------------------------------------------


class AlignedModel(nn.Module):
    """A model of p(target | source, alignment): the source word of each target word is part of its input. It
    scores pairs, in n-best lists and in the phrase-based search, but does not translate on its own."""

    required: ClassVar[Sequence[str]] = ("loss", "token_log_probs", "window_scores")
    Config: ClassVar[type[ModelConfig]]  # the dataclass of the keys of section `model`
    within: str  # the scope in which affiliations are searched: SENTENCE or PHRASE of nmt.data.affiliation

    def __init__(
        self,
        config: Any,  # an instance of Config
        source_vocab_size: int,
        target_vocab_size: int,
        fill: bool = True,
    ) -> None:
        """`fill=False` leaves the parameters uninitialized, for weights that are about to be loaded."""
        super().__init__()

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def shape(self) -> Shape:
        """Context of each target word: order, source window and direction."""
        raise NotImplementedError

    @property
    def self_normalized(self) -> bool:
        """Whether it was trained so that scores are log p without log Z."""
        raise NotImplementedError

    def loss(self, batch: AlignedBatch, smoothing: float = 0.0) -> Tensor:
        """Σ -log p(target | source, alignment) over a batch, in training with the model's penalties: ().
        `smoothing`: as in `TranslationModel.loss`."""
        raise NotImplementedError

    def cost(self, batch: AlignedBatch, smoothing: float, carried: None) -> tuple[Tensor, None]:
        """Loss, (), to differentiate, and the state to carry to the next batch: always None."""
        return self.loss(batch, smoothing), None

    def token_log_probs(self, batch: AlignedBatch) -> Tensor:
        """log p of each target word, end symbols included, without gradient: (N,)"""
        raise NotImplementedError

    def window_scores(self, normalized: bool = False, keep_tables: bool = False) -> "WindowScores":
        """Create a scorer of single words. `normalized`: take log Z as 0. `keep_tables`: compute tables for
        the whole vocabulary first, which pays for many small calls."""
        raise NotImplementedError


class WindowScores:
    """Natural log p of words given their windows, many at a time."""

    @property
    def shape(self) -> Shape:
        """Order, source window and direction of the model."""
        raise NotImplementedError

    def source_part(self, windows: NDArray[int64]) -> Tensor:
        """Contribution of source windows, computed once for all words that see them: (P, w) -> (P, H)"""
        raise NotImplementedError

    def score(
        self, parts: Tensor, source_index: NDArray[int64], contexts: NDArray[int64], words: NDArray[int64]
    ) -> NDArray[float64]:
        """Natural log p(word | context, window): `parts` of `source_part`, `source_index` (G,) rows of it,
        contexts (G, n - 1), words (G,) -> (G,)"""
        raise NotImplementedError
