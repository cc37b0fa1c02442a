"""The neural network joint model: p(target | source, alignment), word by word, by a feed-forward network that
reads the n - 1 previous target words and a window of source words around the one that the target word is
affiliated with (Devlin et al. 2014). From right to left, it reads the n - 1 target words that follow.

n order, w source words of a window, E size of a word vector, H units of the first layer, K features, V target
words; N words, P source positions, G queries, U distinct queries.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.config.settings import MOST_UNITS, choice, number
from nmt.data.affiliation import PHRASE, SENTENCE, Shape
from nmt.data.aligned import AlignedBatch
from nmt.errors import ConfigError
from nmt.layers.batch_scores import distinct_windows, on_device, window_scores
from nmt.layers.initialize import initialize
from nmt.layers.output import OutputSettings, check_output, make_output
from nmt.models.config import ALIGNED_PAIRS, ModelConfig
from nmt.models.protocols import AlignedModel, WindowScores

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
LEFT_TO_RIGHT, RIGHT_TO_LEFT = "left-to-right", "right-to-left"


@dataclass
class JointConfig(OutputSettings, ModelConfig):
    """The keys of `model` for type joint."""

    noun: ClassVar[str] = "a joint model"
    reads: ClassVar[str] = ALIGNED_PAIRS
    translates: ClassVar[bool] = False
    remedy: ClassVar[str] = "; joint models score aligned text: nmt-score --alignment"
    type: str = "joint"
    order: int = number(
        4, least=2, most=1000, help="words of an n-gram of the target, the predicted one included"
    )
    window: int = number(
        11, least=1, most=1001, help="source words around the affiliated one, which is in the middle"
    )
    affiliation: str = choice(
        SENTENCE,
        PHRASE,
        help="where a target word without links looks for the nearest one that has: in the sentence, or, as "
        "the search does, in its phrase",
    )
    direction: str = choice(
        LEFT_TO_RIGHT,
        RIGHT_TO_LEFT,
        help="right-to-left: the history is the words that follow; for n-best lists, not for the search",
    )
    embedding: int = number(192, least=1, most=MOST_UNITS, help="size of a word's vector")
    layers: list[int] = number([512, 512], least=1, most=MOST_UNITS, help="sizes of the hidden layers")
    activation: str = choice("tanh", "relu", help="activation function of the hidden layers")
    normalizer: float = number(
        0.1, least=0, help="weight of (log Z)²: scores become log p themselves; 0: they do not"
    )
    dropout: float = number(
        0.0, least=0, below=1, help="share of values set to 0 in training, on embeddings and hidden layers"
    )
    init: str = choice(
        "uniform",
        "paper",
        "glorot",
        help="distribution of initial weights; paper: N(0, init_scale²), as in Cho et al. 2014a; uniform: "
        "U(±init_scale); glorot: by the size of each matrix",
    )
    init_scale: float = number(0.05, above=0, help="scale of uniform and paper")

    def check(self) -> None:
        super().check()
        if not self.layers:
            raise ConfigError("model.layers: expected one size or more, each 1 or more, e.g. [512, 512]")
        if self.window % 2 == 0:
            raise ConfigError(
                f"model.window: {self.window} is even, but the affiliated word is in the middle; expected an "
                "odd number such as 11"
            )
        check_output(self, "model")

    @property
    def vector_sides(self) -> tuple[str, ...]:
        return "source", "target"


class JointModel(AlignedModel):
    """A feed-forward joint model. `JointScores` scores many words at once with it."""

    Config: ClassVar[type[ModelConfig]] = JointConfig

    def __init__(
        self, config: JointConfig, source_vocab_size: int, target_vocab_size: int, fill: bool = True
    ) -> None:
        super().__init__(config, source_vocab_size, target_vocab_size)
        config.check()
        self.order, self.window, self.dropout = config.order, config.window, config.dropout
        self.within, self.normalizer = config.affiliation, config.normalizer
        self.backward = config.direction == RIGHT_TO_LEFT
        self.source_embedding = nn.Embedding(source_vocab_size, config.embedding)
        self.target_embedding = nn.Embedding(target_vocab_size, config.embedding)
        sizes = config.layers
        # one layer split in two, so that each part is computed again only where its words change
        self.from_source = nn.Linear(config.window * config.embedding, sizes[0])
        self.from_target = nn.Linear((config.order - 1) * config.embedding, sizes[0], bias=False)
        self.layers = nn.ModuleList(nn.Linear(below, above) for below, above in pairwise(sizes))
        self.activate = torch.relu if config.activation == "relu" else torch.tanh
        self.output = make_output(config, sizes[-1], target_vocab_size)
        if fill:
            initialize(self, config.init, config.init_scale)

    def word_embedding(self, side: str) -> nn.Embedding:
        return self.source_embedding if side == "source" else self.target_embedding

    @property
    def shape(self) -> Shape:
        return Shape(self.order, self.window, self.backward)

    @property
    def self_normalized(self) -> bool:
        return bool(self.normalizer) or self.output.self_normalized

    def features(self, contexts: Tensor, windows: Tensor) -> Tensor:
        """Output features of target contexts (N, n - 1) and source windows (N, w): (N, K)"""
        source = F.dropout(self.source_embedding(windows).flatten(1), self.dropout, self.training)
        target = F.dropout(self.target_embedding(contexts).flatten(1), self.dropout, self.training)
        return self.above(self.from_source(source) + self.from_target(target))

    def above(self, first: Tensor) -> Tensor:
        """Apply all layers above the first one to its sums: (N, H) -> (N, K)"""
        hidden = F.dropout(self.activate(first), self.dropout, self.training)
        for layer in self.layers:
            hidden = F.dropout(self.activate(layer(hidden)), self.dropout, self.training)
        return hidden

    def loss(self, batch: AlignedBatch, smoothing: float = 0.0) -> Tensor:
        """Σ -log p of the target words, (), in training plus `normalizer` times Σ (log Z)²."""
        penalty = self.normalizer if self.training else 0.0
        features = self.features(batch.contexts, batch.windows)
        return self.output.cross_entropy(features, batch.words, smoothing, penalty)

    def token_log_probs(self, batch: AlignedBatch) -> Tensor:
        with torch.no_grad():
            return self.output.target_log_probs(self.features(batch.contexts, batch.windows), batch.words)

    def window_scores(self, normalized: bool = False, keep_tables: bool = False) -> "JointScores":
        return JointScores(self, normalized, self.table(None) if keep_tables else None)

    @torch.no_grad()
    def table(self, words: Tensor | None) -> Tensor:
        """Contribution of each word to the first layer at each position of the history: ((n - 1) * words, H).
        `words`: their ids; None for the whole vocabulary."""
        vectors = self.target_embedding.weight
        if words is not None:
            vectors = vectors[words]
        parts = torch.split(self.from_target.weight, vectors.shape[1], 1)
        return torch.cat([vectors @ part.t() for part in parts])

    @torch.no_grad()
    def log_normalizers(self, batch: AlignedBatch) -> Floats:
        """log Z at each word of a batch, (N,); scores can be used as log p where it is near 0."""
        log_z = self.output.log_z(self.features(batch.contexts, batch.windows))
        return np.asarray(log_z.double().cpu().numpy())


class JointScores(WindowScores):
    """log p of words by a joint model. The source's contribution to the first layer is computed once for each
    position, that of the target words is a sum of rows of a table; equal queries are computed once."""

    def __init__(self, model: JointModel, normalized: bool, table: Tensor | None = None) -> None:
        """`normalized`: take log Z as 0. `table`: contributions of all words; without it, each call computes
        those that it needs."""
        self.model, self.normalized, self.table = model, normalized, table

    @property
    def shape(self) -> Shape:
        return self.model.shape

    @torch.no_grad()
    def source_part(self, windows: Ints) -> Tensor:
        ids = on_device(windows, self.model.device)
        part: Tensor = self.model.from_source(self.model.source_embedding(ids).flatten(1))
        return part

    def score(self, parts: Tensor, source_index: Ints, contexts: Ints, words: Ints) -> Floats:
        model = self.model
        queries = np.column_stack([source_index, contexts])
        unique, index = distinct_windows(on_device(queries, model.device))
        positions = unique[:, 0]
        rows, table = self.table_rows(unique[:, 1:])

        def features(start: int, stop: int) -> Tensor:
            target = F.embedding_bag(rows[start:stop], table, mode="sum")
            return model.above(parts[positions[start:stop]] + target)

        return window_scores(model.output, features, len(unique), index, words, self.normalized)

    def table_rows(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """Look up contexts (U, n - 1): returns their row indices, (U, n - 1), into a table of contributions
        of words, and the table, (rows, H)."""
        table, ids, count = self.table, contexts, len(self.model.target_embedding.weight)
        if table is None:
            words, ids = contexts.unique(return_inverse=True)
            table, count = self.model.table(words), len(words)
        return ids + torch.arange(contexts.shape[1], device=contexts.device) * count, table
