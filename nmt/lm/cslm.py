"""The continuous space language model: p(w | previous n - 1 words) by a feed-forward network (Schwenk 2007).
With one tanh layer it is the model of Bengio et al. 2003; without a hidden layer the log-bilinear model.

Positions before the beginning of a sentence hold <s>, which has a vector of its own here. E size of a word
vector, n order, U distinct contexts, G n-grams, N words, H units of the first layer, K features, V
vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config.settings import MOST_UNITS, choice, number, setting
from nmt.data.batches import Batch, Ids, Packed
from nmt.errors import ConfigError
from nmt.layers.batch_scores import distinct_windows, on_device, window_scores
from nmt.layers.initialize import initialize
from nmt.layers.output import check_output, make_output
from nmt.layers.output.softmax import Softmax
from nmt.lm.base import FeatureLM, Floats, Ints, LMConfig
from nmt.text.vocab import BOS, EOS

NORMALIZER_ROWS = 200  # contexts at a time for log Z
MOST_TABLE = 1 << 27  # floats of a first-layer table: 512 MiB
Activation = Callable[[Tensor], Tensor]


@dataclass
class NgramConfig(LMConfig):
    """The keys of `lm` that networks of n-grams share."""

    vector_sides: ClassVar[tuple[str, ...]] = ("target",)
    order: int = number(7, least=2, most=1000, help="words of an n-gram, the predicted one included")
    normalizer: float = number(
        0.0,
        least=0,
        help="weight of (log Z)²; 0.1 makes scores log p themselves, which --assume-normalized needs",
    )
    tied: bool = setting(False, help="the same vectors for the words before and for the predicted word")

    def check(self) -> None:
        super().check()
        check_output(self, "lm", self.tied)

    @property
    def sizes(self) -> list[int]:
        """Sizes of the layers above the word vectors."""
        raise NotImplementedError

    @property
    def function(self) -> Activation:
        """Activation function of these layers."""
        raise NotImplementedError


@dataclass
class CSLMConfig(NgramConfig):
    """The keys of `lm` for type cslm."""

    type: str = "cslm"
    layers: list[int] = number(
        [1536, 1024],
        least=1,
        most=MOST_UNITS,
        help="sizes of the hidden layers; one layer with tanh is the model of Bengio et al. 2003",
    )
    activation: str = choice("relu", "tanh", help="activation function of the hidden layers")

    def check(self) -> None:
        super().check()
        if not self.layers:
            raise ConfigError("lm.layers: expected one size or more, each 1 or more, e.g. [1536, 1024]")
        if self.tied and self.layers[-1] != self.embedding:
            raise ConfigError(
                f"lm.tied: the last of lm.layers is {self.layers[-1]}, expected the size of a word vector, "
                f"lm.embedding: {self.embedding}; make them equal, or set tied: false"
            )

    @property
    def sizes(self) -> list[int]:
        return self.layers

    @property
    def function(self) -> Activation:
        return torch.relu if self.activation == "relu" else torch.tanh


class CSLM(FeatureLM):
    """A feed-forward language model. `CSLMScores` scores many n-grams at once with it."""

    Config: ClassVar[type[LMConfig]] = CSLMConfig
    embedding: nn.Embedding

    def __init__(self, config: NgramConfig, vocab_size: int, fill: bool = True) -> None:
        super().__init__()
        config.check()
        self.order, self.dropout, self.normalizer = config.order, config.dropout, config.normalizer
        self.embedding = nn.Embedding(vocab_size, config.embedding)
        sizes = [(config.order - 1) * config.embedding, *config.sizes]
        self.first = nn.Linear(sizes[0], sizes[1])
        self.layers = nn.ModuleList(nn.Linear(below, above) for below, above in pairwise(sizes[1:]))
        self.activate = config.function
        self.output = make_output(config, sizes[-1], vocab_size)
        if config.tied:
            self.output.tie(self.embedding)
        if fill:
            initialize(self, config.init, config.init_scale)

    @property
    def takes_padding(self) -> bool:
        return type(self.output) is Softmax

    def features(self, contexts: Tensor) -> Tensor:
        """Contexts (N, n - 1), the last word last -> input of the output layer (N, K)"""
        vectors = F.dropout(self.embedding(contexts).flatten(1), self.dropout, self.training)
        return self.above(self.first(vectors))

    def above(self, first: Tensor) -> Tensor:
        """Pre-activations of the first layer (N, H) -> input of the output layer (N, K)"""
        hidden = F.dropout(self.activate(first), self.dropout, self.training)
        for layer in self.layers:
            hidden = F.dropout(self.activate(layer(hidden)), self.dropout, self.training)
        return hidden

    def contexts(self, text: Packed) -> Tensor:
        """The previous n - 1 words of each word, with <s> before the beginning of the sentence: (N, n - 1)"""
        steps, columns = text.steps, []
        for back in range(self.order - 1, 0, -1):
            exists = steps >= back
            index = text.starts[(steps - back).clamp(min=0)] + text.rows
            columns.append(torch.where(exists, text.ids[torch.where(exists, index, 0)], BOS))
        return torch.stack(columns, 1)

    def read(self, batch: Batch) -> Tensor:
        return self.features(self.contexts(batch.target))

    def start(self, sources: Sequence[Ids]) -> Tensor:
        """Contexts before the first word, a row for each source: (R, n - 1). Sources are ignored."""
        return torch.full((len(sources), self.order - 1), BOS, device=self.device)

    def step(self, state: Tensor, token_ids: Tensor | None) -> tuple[Tensor, Tensor]:
        if token_ids is not None:
            state = torch.cat([state[:, 1:], token_ids[:, None]], 1)
        return self.output.log_probs(self.features(state)), state

    def ngram_scores(self, normalized: bool = False, keep_tables: bool = False) -> "CSLMScores":
        with torch.no_grad():
            table = first_layer_table(self, self.embedding.weight) if keep_tables else None
        return CSLMScores(self, normalized, table)

    def score_texts(self, texts: Sequence[Ids]) -> list[list[float]]:
        return self.ngram_scores().score_texts(texts)

    def score_sentences(self, texts: Sequence[Ids], ends: bool = True) -> Floats:
        return self.ngram_scores().score_sentences(texts, ends)

    def without_log_z(self) -> "CSLMScores | None":
        return self.ngram_scores(normalized=True) if self.self_normalized else None

    @torch.no_grad()
    def log_normalizers(self, texts: Sequence[Ids]) -> Floats:
        unique, _ = distinct_windows(on_device(ngrams(texts, self.order)[0], self.device))
        first, parts = FirstLayer(self, unique), [np.zeros(0)]
        for start in range(0, len(unique), NORMALIZER_ROWS):
            features = self.above(first.rows(start, start + NORMALIZER_ROWS))
            parts.append(self.output.log_z(features).double().cpu().numpy())
        return np.concatenate(parts)


class CSLMScores:
    """Natural log p of many n-grams by a CSLM.

    Each distinct context is computed once; its first layer sums entries of a table of each word's
    contribution at each position.
    """

    def __init__(self, model: CSLM, normalized: bool = False, table: Tensor | None = None) -> None:
        """`normalized`: take log Z as 0. `table`: a `first_layer_table`, by default computed at each call."""
        self.model, self.normalized, self.table = model, normalized, table

    @property
    def order(self) -> int:
        return self.model.order

    @torch.no_grad()
    def score(self, contexts: Ints, words: Ints) -> Floats:
        model = self.model
        unique, index = distinct_windows(on_device(contexts, model.device))
        first = FirstLayer(model, unique, self.table)

        def features(start: int, stop: int) -> Tensor:
            return model.above(first.rows(start, stop))

        return window_scores(model.output, features, len(unique), index, words, self.normalized)

    def score_texts(self, texts: Sequence[Ids]) -> list[list[float]]:
        if not texts:
            return []
        flat = self.score(*ngrams(texts, self.order))
        return [part.tolist() for part in np.split(flat, np.cumsum([len(text) + 1 for text in texts])[:-1])]

    def score_sentences(self, texts: Sequence[Ids], ends: bool = True) -> Floats:
        if not texts:
            return np.zeros(0)
        contexts, words = ngrams(texts, self.order)
        scores = self.score(contexts, words)
        if not ends:
            scores[words == EOS] = 0.0
        return np.add.reduceat(scores, np.cumsum([0, *(len(text) + 1 for text in texts[:-1])]))


def ngrams(texts: Sequence[Ids], order: int) -> tuple[Ints, Ints]:
    """The n-grams of some sentences, end symbols included: contexts (N, n - 1), words (N,). `order`: n."""
    lengths = np.array([len(text) + 1 for text in texts], np.int64)
    count = int(lengths.sum())
    positions = np.arange(count) + np.repeat(np.arange(1, len(texts) + 1) * (order - 1), lengths)
    padded = np.full(count + len(texts) * (order - 1), BOS, np.int64)
    padded[positions] = np.fromiter(chain.from_iterable((*text, EOS) for text in texts), np.int64, count)
    return padded[positions[:, None] + np.arange(1 - order, 0)], padded[positions]


def first_layer_table(model: CSLM, vectors: Tensor) -> Tensor | None:
    """Contribution of each of W words, given by their vectors, to the first layer at each position: ((n - 1)
    * W, H). None if the table would be too large."""
    parts = torch.split(model.first.weight, vectors.shape[1], 1)
    if len(parts) * len(vectors) * model.first.out_features > MOST_TABLE:
        return None
    return torch.cat([vectors @ part.t() for part in parts])


class FirstLayer:
    """Pre-activations of the first layer, Σ_k W_k e(w_k) + b, for contexts (U, n - 1); from a table of W_k
    e(w) if there are fewer distinct words than contexts."""

    def __init__(self, model: CSLM, contexts: Tensor, table: Tensor | None = None) -> None:
        self.model, self.table, self.contexts = model, table, contexts
        if table is None:
            used = torch.zeros(len(model.embedding.weight), dtype=torch.bool, device=contexts.device)
            used[contexts.flatten()] = True
            words = used.nonzero()[:, 0]
            if len(words) < len(contexts):
                self.table = first_layer_table(model, model.embedding(words))
            if self.table is not None:
                self.contexts = (used.cumsum(0) - 1)[contexts]  # indices among the words
        if self.table is not None:
            positions = model.order - 1
            starts = torch.arange(positions, device=contexts.device) * (len(self.table) // positions)
            self.contexts = self.contexts + starts

    def rows(self, start: int, stop: int) -> Tensor:
        """The pre-activations of contexts `start` to `stop`, or to the last one: (stop - start, H)"""
        contexts = self.contexts[start:stop]
        if self.table is None:
            return F.linear(
                self.model.embedding(contexts).flatten(1), self.model.first.weight, self.model.first.bias
            )
        sums = F.embedding_bag(contexts, self.table, mode="sum")
        bias: Tensor | None = self.model.first.bias
        return sums if bias is None else sums + bias


# ---- log bilinear ------------------------------------------------------------------------------------------
# The log-bilinear language model (Mnih and Hinton 2007; Jernite 2018, sections 3.2 and 3.5): a network of
# n-grams without a hidden layer.
#
#     r = Σ_k R_k u(w_{t-k});  p(w | context) = softmax(u(w)ᵀ r + b_w)
#
# Context words and predicted words share the vectors u, unless `tied` is false.


@dataclass
class LogBilinearConfig(NgramConfig):
    """The keys of `lm` for type log-bilinear."""

    type: str = "log-bilinear"
    embedding: int = number(200, least=1, most=MOST_UNITS, help="size of a word vector, and of r")
    order: int = number(5, least=2, most=1000, help="words of an n-gram, the predicted one included")
    tied: bool = setting(True, help="the same vectors for the words before and for the predicted word")

    @property
    def sizes(self) -> list[int]:
        return [self.embedding]

    @property
    def function(self) -> Activation:
        return lambda values: values


class LogBilinear(CSLM):
    """A CSLM with a single layer that has no activation and no bias, and the width of a word vector."""

    Config: ClassVar[type[LMConfig]] = LogBilinearConfig

    def __init__(self, config: LogBilinearConfig, vocab_size: int, fill: bool = True) -> None:
        super().__init__(config, vocab_size, fill=False)
        self.first.register_parameter("bias", None)
        if fill:
            initialize(self, config.init, config.init_scale)
