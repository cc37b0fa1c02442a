"""The decoder of the RNN encoder-decoder: c enters the gates, the candidate and the output at every step (section 4.2.2)."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.data.batches import Packed
from nmt.data.vocab import BOS
from nmt.layers.cells import repeat
from nmt.layers.output import DeepOutput
from nmt.models.encoders import ModelConfig, make_cell


@dataclass
class DecoderState:
    """R hypotheses of S sentences, between two words. What belongs to a sentence is kept once, not once a hypothesis."""

    hidden: Tensor  # (R, state size of the cell)
    sentence: Tensor  # (R,) which of the S sentences a row belongs to
    cell_context: Tensor  # (S, 3H or 4H) C c
    output_context: Tensor  # (S, 2M) O_c c


@dataclass
class WordTables:
    """W words as the decoder reads them, computed once however often a word occurs."""

    cell: Tensor  # (W, 3H or 4H) W e(y)
    output: Tensor  # (W, 2M) O_y e(y)

    def rows(self, rows: Tensor) -> "WordTables":
        return WordTables(self.cell.index_select(0, rows), self.output.index_select(0, rows))  # 5 times faster than [rows]


class RNNDecoder(nn.Module):
    def __init__(self, config: ModelConfig, words: int) -> None:
        super().__init__()
        H = config.hidden
        self.embedding = nn.Embedding(words, config.embedding, padding_idx=BOS)  # 'no word before' is a zero vector
        self.initial = nn.Parameter(torch.empty(H, H))  # V'
        self.initial_bias = nn.Parameter(torch.zeros(H)) if config.bias else None
        self.cell = make_cell(config, context=H)
        self.output = DeepOutput(H, config.embedding, H, config.maxout, words, config.output_rank, config.bias, config.dropout)
        self.dropout = config.dropout
        self.first_word = config.first_word

    def first_state(self, c: Tensor) -> Tensor:
        """h'_0 = tanh(V' c): (B, H) -> (B, state size)"""
        return self.cell.start(torch.tanh(F.linear(c, self.initial, self.initial_bias)))

    def unroll(self, c: Tensor, target: Packed, previous: Tensor) -> Tensor:
        """Output features of all target words at once: c (B, H), previous words (N,) -> (N, K)"""
        c = c[target.order]  # longest target first
        words = F.dropout(self.embedding(previous), self.dropout, self.training)  # (N, E)
        context = repeat(self.cell.project_context(c), target.sizes)  # (N, 3H)
        start = self.first_state(c)
        hidden = self._unroll(words, target, start, context)  # (N, H)
        return self.output.features(hidden, words, repeat(self.output.project_context(c), target.sizes))

    def _unroll(self, words: Tensor, target: Packed, start: Tensor, context: Tensor) -> Tensor:
        if self.first_word == "step":
            return self.cell.unroll(words, target.sizes, start, context)
        # The first word is read off h'_0 itself: the cell runs on the words before the second to the last only.
        rows = target.sizes[0]
        first = self.cell.output(start)
        later = target.sizes[1:]
        if not later:
            return first
        return torch.cat([first, self.cell.unroll(words[rows:], later, start[: later[0]], context[rows:])])

    def start(self, c: Tensor) -> DecoderState:
        """One row for each sentence, before its first word."""
        rows = torch.arange(len(c), device=c.device)
        return DecoderState(self.first_state(c), rows, self.cell.project_context(c), self.output.project_context(c))

    def step(self, state: DecoderState, words: Tensor | None) -> tuple[Tensor, DecoderState]:
        """log p of every next word after `words` (None at the start): (R,) -> (R, V), natural logarithm"""
        tables = self.tables(torch.full_like(state.sentence, BOS) if words is None else words)
        features, state = self.advance(state, tables, first=words is None)
        return self.output.log_probs(features), state

    def tables(self, words: Tensor) -> WordTables:
        """What the decoder makes of each of some words, whatever stands around them: (W,) -> (W, ...)"""
        embedded = self.embedding(words)
        return WordTables(self.cell.project(embedded), self.output.project_previous(embedded))

    def advance(self, state: DecoderState, words: WordTables, first: bool) -> tuple[Tensor, DecoderState]:
        """One step: the row of the word read last for each row of the state -> output features (R, K) and the state after it"""
        hidden = state.hidden
        if not (first and self.first_word == "initial"):
            hidden = self.cell.advance(words.cell, hidden, state.cell_context.index_select(0, state.sentence))
        features = self.output.combine(self.cell.output(hidden), words.output, state.output_context.index_select(0, state.sentence))
        return features, DecoderState(hidden, state.sentence, state.cell_context, state.output_context)
