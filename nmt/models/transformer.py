"""The Transformer (Vaswani et al. 2017), `model.type: transformer`: its configuration and the model.

S sentences of L words, N target tokens of a batch, R rows (hypotheses), D width, V target words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.config.settings import MOST_UNITS, choice, number
from nmt.data.batches import Batch, Ids, Packed, pack_source
from nmt.errors import ConfigError
from nmt.layers.attention import (
    AttentionMemory,
    HypothesisGrid,
    WordGrid,
    alignment_cost,
    hypothesis_grid,
    join_sentences,
    sentence_grid,
)
from nmt.layers.batch_scores import Walk, on_device
from nmt.layers.initialize import initialize
from nmt.layers.key_values import (
    ROOM,
    KeyValueCache,
    SentenceCache,
    SourceStep,
    SourceWords,
)
from nmt.layers.output import OutputLayer, OutputSettings, check_output, make_output
from nmt.layers.output.softmax import Softmax
from nmt.layers.transformer import Stack, TransformerSizes, WeightSelection
from nmt.models.config import ModelConfig, check_one_vocabulary
from nmt.models.protocols import TranslationModel, target_cost
from nmt.text.vocab import BOS


@dataclass
class TransformerConfig(TransformerSizes, OutputSettings, ModelConfig):
    """The Transformer. Defaults are the base model of Vaswani et al. 2017; its embeddings are tied on both
    sides, which needs one vocabulary for both."""

    type: str = "transformer"
    encoder_layers: int = number(6, least=1, most=1000, help="layers of the encoder")
    decoder_layers: int = number(6, least=1, most=1000, help="layers of the decoder")
    attention_layer: int = number(
        0,
        least=0,
        most=1000,
        help="decoder layer, from 1, whose attention to the source is shown in maps and replaces unknown "
        "words, mean of its heads; 0: the last but one, which aligns best (Garg et al. 2019)",
    )
    attention_heads: int = number(
        0,
        least=0,
        most=MOST_UNITS,
        help="heads of that layer, from its first, whose mean is shown and learns guided alignment; 0: all. "
        "With 1 the others stay free (Garg et al. 2019)",
    )
    tied: str = choice(
        "target",
        "none",
        "all",
        help="target: the output matrix is the target embeddings; all: the source embeddings too",
    )

    def check(self) -> None:
        super().check()
        self.check_sizes("model.")
        check_output(self, "model", self.tied != "none")
        if self.attention_layer > self.decoder_layers:
            raise ConfigError(
                f"model.attention_layer: {self.attention_layer} is above model.decoder_layers, "
                f"{self.decoder_layers}; name a layer from 1, or 0"
            )
        if self.attention_heads > self.heads:
            raise ConfigError(
                f"model.attention_heads: {self.attention_heads} is above model.heads, {self.heads}; name "
                "fewer, or 0"
            )

    @property
    def attends(self) -> bool:
        return True

    @property
    def vector_sides(self) -> tuple[str, ...]:
        return "source", "target"

    @property
    def shown_layer(self) -> int:
        """Index, from 0, of the decoder layer that `attention_layer` selects."""
        return (self.attention_layer or max(1, self.decoder_layers - 1)) - 1


SPARSE = 4  # grid positions per hypothesis above which a cache of columns is faster
USED = 0.75  # if a smaller share of the sentences has hypotheses, the others are dropped


@dataclass
class TransformerState:
    """Decoder state of R hypotheses of S sentences."""

    cache: KeyValueCache | SentenceCache
    sentence: Tensor  # (R,) index of the sentence of each row
    sources: SourceWords  # the encoded sentences
    weights: Tensor | None = None  # (R, L) attention weights of the last step

    def rows(self, rows: Tensor) -> "TransformerState":
        """Select hypotheses by row; rows may repeat or be left out."""
        return TransformerState(
            cache=self.cache.rows(rows),
            sentence=self.sentence.index_select(0, rows),
            sources=self.sources,
            weights=None if self.weights is None else self.weights.index_select(0, rows),
        )

    @property
    def columns(self) -> KeyValueCache:
        """The cache, converted to columns unless it is one already."""
        return self.cache.columns(self.sentence) if isinstance(self.cache, SentenceCache) else self.cache

    def for_step(self) -> "tuple[TransformerState, HypothesisGrid]":
        """Prepare the state for a step: returns it with the layout of its hypotheses. Sentences without any
        are dropped if many; if beam sizes differ much, the cache is converted to columns."""
        S, R = len(self.sources), len(self.sentence)
        state = self
        if isinstance(self.cache, SentenceCache):
            grid = sentence_grid(self.sentence, S)
            used, sentence = self.sentence.unique(return_inverse=True)
            if len(used) < USED * S:
                state = TransformerState(
                    self.cache.sentences(used, sentence, ROOM * grid.shape[1]),
                    sentence,
                    self.sources.rows(used),
                )
                grid = sentence_grid(sentence, len(used))
            S, W = grid.shape
            if S * W <= SPARSE * R:
                return state, grid
            state = replace(state, cache=state.columns)
        return state, hypothesis_grid(state.sentence, S)

    @staticmethod
    def join(states: "Sequence[TransformerState]") -> "TransformerState":
        """Concatenate the rows of several states. Sentences without rows are dropped, unless all states share
        their sources and one has a cache of columns. The attention weights are dropped."""
        cache: KeyValueCache | SentenceCache
        sentence, used = join_sentences([state.sentence for state in states])
        shared = [state.cache for state in states if isinstance(state.cache, SentenceCache)]
        if len(shared) == len(states):
            index, first, packed = sentence.split([len(state.sentence) for state in states]), 0, []
            for part, sentences, of_rows in zip(shared, used, index, strict=True):
                packed.append(part.sentences(sentences, of_rows - first, 0))
                first += len(sentences)
            cache = SentenceCache.join(packed, int(torch.bincount(sentence).max()) if len(sentence) else 1)
        else:
            cache = KeyValueCache.join([state.columns for state in states])
            if all(state.sources is states[0].sources for state in states):
                sentence = torch.cat([state.sentence for state in states])
                return TransformerState(cache, sentence, states[0].sources)
        sources = [state.sources.rows(rows) for state, rows in zip(states, used, strict=True)]
        return TransformerState(cache, sentence, SourceWords.join(sources))


class Transformer(TranslationModel[TransformerState]):
    """An encoder-decoder of attention layers; `model.type: transformer`. Sources include the end symbol."""

    Config = TransformerConfig
    autocast = True

    def __init__(
        self,
        config: TransformerConfig,
        source_vocab_size: int,
        target_vocab_size: int,
        fill: bool = True,
        spelling: Sequence[str] | None = None,
    ) -> None:
        """`fill=False` leaves the parameters uninitialized, for weights to load. `spelling` is ignored."""
        super().__init__(config, source_vocab_size, target_vocab_size)
        config.check()
        self.encoder = Stack(config, config.encoder_layers, source_vocab_size, causal=False)
        self.decoder = Stack(config, config.decoder_layers, target_vocab_size, causal=True, sees_source=True)
        self.output = make_output(config, config.embedding, target_vocab_size)
        self.shown = WeightSelection(config.shown_layer, config.attention_heads)
        if config.tied != "none":
            self.output.tie(self.decoder.embedding)
        if config.tied == "all":
            check_one_vocabulary(source_vocab_size, target_vocab_size)
            self.encoder.embedding.weight = self.decoder.embedding.weight
        if fill:
            initialize(self, "glorot", 0)

    @property
    def attends(self) -> bool:
        return True

    # ---- whole sentences -----------------------------------------------------------------------------------

    def encode(self, source: Packed) -> tuple[Tensor, WordGrid]:
        """States of all source words in packed order, (N, D), and their layout."""
        grid = WordGrid.of(source, self.encoder.embedding.weight)
        return self.encoder(source.ids, grid), grid

    @property
    def takes_padding(self) -> bool:
        return type(self.output) is Softmax and not self.encoder.recompute

    def unroll(self, batch: Batch) -> Tensor:
        """Output features of all target tokens: (N, D)"""
        features: Tensor = self.decoder(batch.previous, *self.decoder_inputs(batch))
        return features

    def decoder_inputs(self, batch: Batch) -> tuple[WordGrid, list[AttentionMemory]]:
        """The layout of the target tokens, and the encoded source for each decoder layer."""
        memory = self.decoder.memory(*self.encode(batch.source))
        return WordGrid.of(batch.target, self.decoder.embedding.weight), memory

    def attended(self, batch: Batch) -> tuple[Tensor, Tensor]:
        features, weights = self.decoder.attended(batch.previous, *self.decoder_inputs(batch), self.shown)
        assert weights is not None
        return features, weights

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        if batch.guidance is None:
            return target_cost(self.output, self.unroll(batch), batch, smoothing)
        features, weights = self.attended(batch)
        return target_cost(self.output, features, batch, smoothing) + alignment_cost(weights, batch.guidance)

    def token_log_probs(self, batch: Batch) -> Tensor:
        with torch.no_grad():
            return self.output.target_log_probs(self.unroll(batch), batch.target.ids)

    # ---- word by word --------------------------------------------------------------------------------------

    @torch.no_grad()
    def start(self, sources: Sequence[Ids]) -> TransformerState:
        memory = self.decoder.memory(*self.encode(pack_source(sources).to(self.device)))
        words = SourceWords.of(memory, self.decoder.heads)
        rows = torch.arange(len(sources), device=self.device)
        return TransformerState(SentenceCache.start(len(sources), self.device), rows, words)

    def start_walk(self, sources: Sequence[Ids]) -> TransformerState:
        """Like `start`, but with a cache of columns: for hypotheses that share few words or are all kept."""
        state = self.start(sources)
        return replace(state, cache=KeyValueCache.start(len(sources), self.device))

    @torch.no_grad()
    def features(self, state: TransformerState, token_ids: Tensor | None) -> tuple[Tensor, TransformerState]:
        previous = torch.full_like(state.sentence, BOS) if token_ids is None else token_ids
        state, rows = state.for_step()
        source = SourceStep(state.sources, rows, *self.shown)
        step = state.cache.step(*self.decoder.step_sizes, rows)
        features = self.decoder.advance(step, previous, source)
        return features, replace(state, cache=step.after(), weights=source.weights)

    def step(self, state: TransformerState, token_ids: Tensor | None) -> tuple[Tensor, TransformerState]:
        features, state = self.features(state, token_ids)
        return self.output.log_probs(features), state

    def reorder(self, state: TransformerState, rows: Tensor) -> TransformerState:
        return state.rows(rows)

    def join(self, states: Sequence[TransformerState]) -> TransformerState:
        return TransformerState.join(states)

    def attention(self, state: TransformerState) -> Tensor | None:
        """Mean attention weights over the `attention_heads` of one layer, `attention_layer`."""
        return state.weights

    # ---- capabilities --------------------------------------------------------------------------------------

    @property
    def output_layer(self) -> OutputLayer:
        return self.output

    def walk(self, sources: Sequence[Ids], token_ids: NDArray[np.int64]) -> Walk[TransformerState]:
        """Start a walk for `PrefixTrees`. Each step embeds its words: nothing is computed in advance."""
        ids = on_device(token_ids, self.device)

        def step(state: TransformerState, words: Tensor, first: bool) -> tuple[Tensor, TransformerState]:
            return self.features(state, ids[words])

        return Walk(
            self.device, self.output, partial(self.start_walk, sources), step, self.reorder, self.join
        )

    @torch.no_grad()
    def source_vectors(self, sources: Sequence[Ids]) -> Tensor:
        """The mean of the encoder's states over the words of each sentence and its end symbol: (B, D)"""
        source = pack_source(sources).to(self.device)
        states, grid = self.encode(source)
        lengths = torch.empty_like(source.order)
        lengths[source.order] = source.lengths
        return grid.pad(states).sum(1) / lengths[:, None]

    def word_embedding(self, side: str) -> nn.Embedding:
        return (self.encoder if side == "source" else self.decoder).embedding

    def row_words(
        self, source_vocab: Sequence[str], target_vocab: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        """Map the name of each parameter with a row for each word to these words."""
        output = dict.fromkeys((f"output.{name}" for name in self.output.word_parameters()), target_vocab)
        return {"encoder.embedding.weight": source_vocab, "decoder.embedding.weight": target_vocab, **output}
