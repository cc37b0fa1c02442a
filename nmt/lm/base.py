"""What neural language models share: scores of sentences from one method, and a softmax over features.

A model of your own defines `embedding`, `output` and `read`, and for search and sampling `start` and `step`.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from nmt.data import prefix_tree
from nmt.data.batches import Batch, Ids
from nmt.data.running import Chunk
from nmt.layers.batch_scores import Walk, level_words, walk_tries, word_scores
from nmt.layers.output import OutputLayer, SelfNormalized, make_output
from nmt.lm.config import LMConfig
from nmt.lm.multiscale.dictionary import Dictionary
from nmt.lm.protocols import Carried, Floats, Ints


class LMBase(nn.Module):
    """Scores of texts from `token_log_probs`, which a model defines, with `loss`; both as in
    nmt.lm.protocols.LanguageModel."""

    Config: ClassVar[type[LMConfig]] = LMConfig
    needs_dictionary: ClassVar[bool] = False
    cpu_only: ClassVar[bool] = False

    @classmethod
    def build(
        cls, config: Any, symbols: Sequence[str], dictionary: Dictionary | None = None, fill: bool = True
    ) -> Self:
        """A model over the words of a vocabulary; see nmt.lm.protocols.LanguageModel."""
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

    def cost(self, batch: Batch | Chunk, smoothing: float, carried: Carried) -> tuple[Tensor, Carried]:
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
