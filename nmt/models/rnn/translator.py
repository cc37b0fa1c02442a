"""The RNN encoder-decoder: a loss for training, scores of given pairs, and steps for search."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.data.batches import Batch, Ids, pack_source
from nmt.layers.attention import alignment_cost
from nmt.layers.batch_scores import on_device
from nmt.layers.cells import penalized_parts, total_penalty
from nmt.layers.characters import CharacterWords
from nmt.layers.initialize import initialize
from nmt.layers.output import OutputLayer
from nmt.models.config import RNNConfig, check_one_vocabulary
from nmt.models.protocols import TranslationModel
from nmt.models.rnn.decoder import DecoderState, RNNDecoder
from nmt.models.rnn.encoders import ENCODER_CLASSES, Encoded, GrConvEncoder, RNNEncoder


class RNNTranslator(nn.Module, TranslationModel[DecoderState]):
    """The encoder-decoder of Cho et al. 2014a, with or without attention; `model.type: rnn`. It has every
    capability of nmt/models/protocols.py. Logarithms are natural; the end symbol is part of a target."""

    Config = RNNConfig

    def __init__(
        self,
        config: RNNConfig,
        source_vocab_size: int,
        target_vocab_size: int,
        fill: bool = True,
        spelling: Sequence[str] | None = None,
    ) -> None:
        """`fill=False` leaves the parameters uninitialized, for weights that are about to be loaded:
        orthogonal matrices take time. `spelling`: the source words by id, which only source_words: characters
        reads."""
        super().__init__()
        config.check()
        self.encoder = ENCODER_CLASSES[config.encoder](config, source_vocab_size, spelling)
        self.decoder = RNNDecoder(config, target_vocab_size)
        if config.tied == "all":
            check_one_vocabulary(source_vocab_size, target_vocab_size)
            self.encoder.embedding.weight = self.decoder.embedding.weight
        self.penalized = penalized_parts(self)
        if fill:
            initialize(self, config.init, config.init_scale)

    @property
    def device(self) -> torch.device:
        return self.decoder.initial.device

    @property
    def attends(self) -> bool:
        return self.decoder.attention is not None

    def unroll(self, batch: Batch) -> Tensor:
        """Output features of all target tokens: (N, K)"""
        return self.decoder.unroll(self.encoder(batch.source), batch.target, batch.previous)

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """Σ -log p(target | source) over the batch, with label smoothing, the cost of guided alignment and,
        in training, what parts of the model add to it: ()"""
        if batch.guidance is None:
            cost = self.decoder.layer.cross_entropy(self.unroll(batch), batch.target.ids, smoothing)
        else:
            features, weights = self.attended(batch)
            cost = self.decoder.layer.cross_entropy(features, batch.target.ids, smoothing)
            cost = cost + alignment_cost(weights, batch.guidance)
        return cost + total_penalty(self.penalized) if self.penalized else cost

    def attended(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """For `Attending`: output features (N, K) and attention weights (N, L) of all target tokens."""
        features, weights = self.decoder.attended(self.encoder(batch.source), batch.target, batch.previous)
        assert weights is not None, "this model has no attention"
        if self.encoder.reverse:
            lengths = torch.empty_like(batch.source.order)
            lengths[batch.source.order] = batch.source.lengths
            weights = unreverse(weights, lengths[batch.target.order[batch.target.rows]])
        return features, weights

    def token_log_probs(self, batch: Batch) -> Tensor:
        """log p of each target token, in packed order: (N,)"""
        with torch.no_grad():
            return self.decoder.layer.log_probs_of(self.unroll(batch), batch.target.ids)

    def start(self, sources: Sequence[Ids]) -> DecoderState:
        """One row for each source sentence (ids without end symbol), before the first word."""
        return self.decoder.start(self.encoder(pack_source(sources).to(self.device)))

    def features(self, state: DecoderState, token_ids: Tensor | None) -> tuple[Tensor, DecoderState]:
        """Input of the output layer after `token_ids` (R,): (R, K), and the new state."""
        return self.decoder.read(state, token_ids)

    def step(self, state: DecoderState, token_ids: Tensor | None) -> tuple[Tensor, DecoderState]:
        """log p of every next word after `token_ids` (R,), None before the first: (R, V), and the new
        state."""
        features, state = self.decoder.read(state, token_ids)
        return self.decoder.layer.log_probs(features), state

    @property
    def output_layer(self) -> OutputLayer:
        return self.decoder.layer

    @property
    def vocab_size(self) -> int:
        return self.decoder.layer.vocab_size

    def restrict(self, token_ids: Tensor) -> OutputLayer:
        return self.decoder.layer.restrict(token_ids)

    def reorder(self, state: DecoderState, rows: Tensor) -> DecoderState:
        return state.rows(rows)

    def join(self, states: Sequence[DecoderState]) -> DecoderState:
        return DecoderState.join(states)

    def attention(self, state: DecoderState) -> Tensor | None:
        """Attention weights of the last step for each row, over the source words and the end symbol: (R, L);
        None without attention."""
        if state.weights is None or not self.encoder.reverse:
            return state.weights
        assert state.sources.memory is not None
        return unreverse(state.weights, (state.sources.memory.mask[state.sentence] == 0).sum(1))

    def walk(self, sources: Sequence[Ids], token_ids: NDArray[np.int64]) -> "RNNWalk":
        """For `PrefixTrees`: the decoder after each of the sources."""
        return RNNWalk(self, sources, token_ids)

    def start_by_prefix(self, sources: Sequence[Ids]) -> DecoderState:
        """`start` that reads common prefixes of the sources once, if the encoder allows it."""
        if isinstance(self.encoder, RNNEncoder) and self.encoder.shares_prefixes and not self.attends:
            return self.decoder.start(Encoded(summary=self.encoder.summarize_by_prefix(sources)))
        return self.start(sources)

    @torch.no_grad()
    def source_vectors(self, sources: Sequence[Ids]) -> Tensor:
        """c of each sentence, or with attention what the decoder starts from: (B, C)"""
        encoded: Encoded = self.encoder(pack_source(sources).to(self.device))
        return encoded.summary

    def word_table(self, side: str) -> nn.Embedding:
        """For `WordTables`: the vectors of the words of a side."""
        table = self.encoder.embedding if side == "source" else self.decoder.embedding
        assert isinstance(table, nn.Embedding)
        return table

    @torch.no_grad()
    def word_vectors(self, side: str, token_ids: Tensor) -> Tensor:
        """Embeddings of words of the `source` or `target` vocabulary: (T,) -> (T, E)"""
        part = self.encoder if side == "source" else self.decoder
        vectors: Tensor = part.embedding(token_ids)
        return vectors

    def merge_gates(self, sources: Sequence[Ids]) -> list[Tensor] | None:
        """The gates of a gated recursive convolution, see `GrConvEncoder.gates`; None for another encoder."""
        return self.encoder.gates(sources) if isinstance(self.encoder, GrConvEncoder) else None

    def rows_of(
        self, source_vocab: Sequence[str], target_vocab: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        """Parameter name -> what each of its rows belongs to: words, or characters of a character encoder."""
        output = dict.fromkeys(
            (f"decoder.output.{name}" for name in self.decoder.layer.word_parameters()), target_vocab
        )
        rows = {"decoder.embedding.weight": target_vocab, **output}
        if isinstance(self.encoder.embedding, CharacterWords):
            return {"encoder.embedding.characters": self.encoder.embedding.row_names, **rows}
        return {"encoder.embedding.weight": source_vocab, **rows}


def unreverse(weights: Tensor, lengths: Tensor) -> Tensor:
    """Put attention weights (R, L) over a reversed source into the order of its words. `lengths` (R,) include
    the end symbol, which stays last."""
    positions = torch.arange(weights.shape[1], device=weights.device).expand_as(weights)
    last = lengths[:, None] - 2  # of the words
    return weights.gather(1, torch.where(positions <= last, last - positions, positions))


class RNNWalk:
    """Walks the decoder through tries of targets, one for each source. The part of the computation that
    depends on a word alone is done once for each word."""

    def __init__(self, model: RNNTranslator, sources: Sequence[Ids], token_ids: NDArray[np.int64]) -> None:
        self.model, self.sources, self.device = model, sources, model.device
        self.output = model.decoder.layer
        self.tables = model.decoder.project(on_device(token_ids, model.device))

    def start(self) -> DecoderState:
        return self.model.start_by_prefix(self.sources)

    def advance(
        self, state: DecoderState, rows: Tensor, words: Tensor, first: bool
    ) -> tuple[Tensor, DecoderState]:
        return self.model.decoder.advance(state.rows(rows), self.tables.rows(words), first)

    def reorder(self, state: DecoderState, rows: Tensor) -> DecoderState:
        return state.rows(rows)

    def join(self, states: Sequence[DecoderState]) -> DecoderState:
        """Concatenate the states of the blocks of a level, which are of the same sentences."""
        return replace(
            states[0],
            hidden=torch.cat([state.hidden for state in states]),
            sentence=torch.cat([state.sentence for state in states]),
            weights=None,
        )
