"""Encoders: packed source words -> one vector a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt import prefixes
from nmt.data.batches import Ids, Packed
from nmt.data.vocab import EOS
from nmt.errors import ConfigError
from nmt.layers.cells import GATES, GRU, LSTM, RESETS, Cell


@dataclass
class ModelConfig:
    """Defaults are chapter 6 of the document (RNNenc); chapter 4 uses embedding 100, output_rank 100."""

    cell: str = "gru"  # gru (eqs. 4.5-4.8) | lstm
    embedding: int = 620  # the rank of the input matrices
    hidden: int = 1000  # units of encoder and decoder
    maxout: int = 500  # maxout units of the output layer, each the larger of two sums
    output_rank: int = 0  # rank of the output matrix; 0: not factored
    dropout: float = 0.0  # on embeddings and maxout units, never on recurrent links; the papers use none
    bias: bool = False  # the document prints no biases; the authors' code has some
    init: str = "paper"  # paper: N(0, init_scale²), recurrent matrices orthogonal | glorot
    init_scale: float = 0.01
    gate: str = "keep_old"  # what the update gate z does with the old state: keep_old (document) | take_new (authors' code)
    reset: str = "before"  # reset gate before U (document), after it, or after_with_context: on U h + C c (supplement)
    summary: str = "state"  # c is the last encoder state (document) | tanh: tanh(V h) (supplement)
    first_word: str = "step"  # y_1 is read off h_1 = f(h_0, -, c) (document) | initial: off h_0 itself (authors' code)

    def check(self) -> None:
        """ConfigError for a value outside its choices."""
        choices = {
            "cell": ("gru", "lstm"),
            "init": ("paper", "glorot"),
            "gate": GATES,
            "reset": RESETS,
            "summary": ("state", "tanh"),
            "first_word": ("step", "initial"),
        }
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                raise ConfigError(f"model.{key}: {getattr(self, key)!r} is unknown, expected one of {', '.join(allowed)}")
        for key in ("embedding", "hidden", "maxout"):
            if getattr(self, key) < 1:
                raise ConfigError(f"model.{key}: {getattr(self, key)} is too small, expected 1 or more")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"model.dropout: {self.dropout} is out of range, expected 0 <= dropout < 1")
        if self.cell == "lstm" and (self.gate != "keep_old" or self.reset != "before"):
            raise ConfigError("model.gate and model.reset belong to cell gru; an lstm has neither")


def make_cell(config: ModelConfig, context: int = 0) -> Cell:
    if config.cell == "lstm":
        return LSTM(config.embedding, config.hidden, context)
    return GRU(config.embedding, config.hidden, context, config.bias, config.gate, config.reset)


class RNNEncoder(nn.Module):
    """Reads the source up to and including its end symbol; c is the state after it (section 4.2.1)."""

    def __init__(self, config: ModelConfig, words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, config.embedding)
        self.cell = make_cell(config)
        self.summary = nn.Parameter(torch.empty(config.hidden, config.hidden)) if config.summary == "tanh" else None  # V
        self.dropout = config.dropout

    def forward(self, source: Packed) -> Tensor:
        """B sentences -> c (B, H), in the order of the batch"""
        words = F.dropout(self.embedding(source.ids), self.dropout, self.training)
        start = words.new_zeros(len(source.order), self.cell.state_size)
        states = self.cell.unroll(words, source.sizes, start)
        last = states[source.last]  # (B, H), longest sentence first
        return self._summarize(torch.empty_like(last).index_copy(0, source.order, last))

    def _summarize(self, c: Tensor) -> Tensor:
        return c if self.summary is None else torch.tanh(F.linear(c, self.summary))

    def by_prefix(self, sources: Sequence[Ids]) -> Tensor:
        """As `forward`, of B sequences of ids, where what begins alike is read once: -> (B, H)"""
        device = self.embedding.weight.device
        levels = prefixes.levels([[*source, EOS] for source in sources])
        words, index = np.unique(np.concatenate([level.words for level in levels[1:]]), return_inverse=True)
        table = self.cell.project(self.embedding(torch.from_numpy(words).to(device)))
        state = table.new_zeros(1, self.cell.state_size)
        c, end = table.new_empty(len(sources), self.cell.hidden), 0
        for level in levels[1:]:
            rows = torch.from_numpy(index[end : end + len(level.words)]).to(device)
            end += len(level.words)
            parents = torch.from_numpy(level.parents).to(device)
            state = torch.cat([self.cell.advance(table.index_select(0, rows[cut]), state.index_select(0, parents[cut])) for cut in prefixes.blocks(len(rows))])
            if len(level.ended):
                c[torch.from_numpy(level.ended).to(device)] = self.cell.output(state[torch.from_numpy(level.nodes).to(device)])
        return self._summarize(c)
