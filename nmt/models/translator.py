"""Encoder and decoder together: a loss for training, scores for given pairs, and start / step / reorder for
search."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nmt.data.batches import Batch, Ids, pack_source
from nmt.errors import ConfigError
from nmt.layers.initialize import initialize
from nmt.models.config import ModelConfig
from nmt.models.decoder import DecoderState, RNNDecoder
from nmt.models.encoders import ENCODER_CLASSES, Encoded, RNNEncoder


class Translator(nn.Module):
    """Encoder and decoder of Cho et al. 2014, with or without attention. Logarithms are natural; the end
    symbol is part of a target."""

    def __init__(
        self,
        config: ModelConfig,
        source_words: int,
        target_words: int,
        fill: bool = True,
        spelling: Sequence[str] | None = None,
    ) -> None:
        """`fill=False` leaves the parameters as they are, for weights that are about to be loaded: singular
        vectors take time.

        `spelling` are the source words by id; only source_words: characters reads them.
        """
        super().__init__()
        config.check()
        self.encoder = ENCODER_CLASSES[config.encoder](config, source_words, spelling)
        self.decoder = RNNDecoder(config, target_words)
        if config.tied == "all":
            if source_words != target_words:
                raise ConfigError(
                    "model.tied: all needs one vocabulary for both sides: set data.shared_vocabulary"
                )
            self.encoder.embedding.weight = self.decoder.embedding.weight
        if fill:
            initialize(self, config.init, config.init_scale)

    @property
    def device(self) -> torch.device:
        return self.decoder.initial.device

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """Σ -log p(target | source) over the batch: (). With `smoothing` that share of each word's weight is
        spread over all words."""
        features = self.decoder.unroll(self.encoder(batch.source), batch.target, batch.previous)
        return self.decoder.output.cross_entropy(features, batch.target.ids, smoothing)

    def cost(self, batch: Batch, smoothing: float, carried: Tensor | None) -> tuple[Tensor, None]:
        """The loss, and what a language model of running text would carry to its next batch: nothing."""
        return self.loss(batch, smoothing), None

    def score(self, batch: Batch) -> Tensor:
        """log p of each target word, in packed order: (N,)"""
        with torch.no_grad():
            features = self.decoder.unroll(self.encoder(batch.source), batch.target, batch.previous)
            return self.decoder.output.log_probs_of(features, batch.target.ids)

    def start(self, sources: Sequence[Ids]) -> DecoderState:
        """One row for each source sentence (ids without end symbol), before the first word."""
        return self.decoder.start(self.encoder(pack_source(sources).to(self.device)))

    def step(self, state: DecoderState, words: Tensor | None) -> tuple[Tensor, DecoderState]:
        """log p of every next word: words (R,), None before the first -> (R, V) and the state after them"""
        return self.decoder.step(state, words)

    def start_by_prefix(self, sources: Sequence[Ids]) -> DecoderState:
        """As `start`, where sources that begin alike share the reading of their beginnings, if the encoder
        allows it."""
        if not self.encoder.shares_prefixes or self.decoder.attention:
            return self.start(sources)
        assert isinstance(self.encoder, RNNEncoder)
        return self.decoder.start(Encoded(self.encoder.by_prefix(sources)))

    def reorder(self, state: DecoderState, rows: Tensor) -> DecoderState:
        """The state whose row i is row rows[i] of `state`; rows may repeat or be missing."""
        return state.rows(rows)

    def join(self, states: Sequence[DecoderState]) -> DecoderState:
        """The rows of all states, one below the other."""
        return DecoderState.join(states)

    def attention(self, state: DecoderState) -> Tensor | None:
        """Where each row looked at its last step: (R, L) weights of the source words and the end symbol; None
        without attention"""
        if state.weights is None or not self.encoder.reverse:
            return state.weights
        assert state.sources.memory is not None
        places = torch.arange(state.weights.shape[1], device=self.device).expand_as(state.weights)
        last = (state.sources.memory.mask[state.sentence] == 0).sum(1, keepdim=True) - 2  # of the words
        return state.weights.gather(1, torch.where(places <= last, last - places, places))
