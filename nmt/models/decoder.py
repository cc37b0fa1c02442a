"""The decoder of the RNN encoder-decoder: what it sees of the source enters the gates, the candidate and the
output at every step (section 4.2.2). That is c, the same at all steps, or with attention the mean of the
annotations that this step looks at."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.data.batches import Packed
from nmt.data.vocab import BOS
from nmt.layers.attention import AdditiveAttention, Memory, attend
from nmt.layers.cells import GRU, repeat
from nmt.layers.output import DeepOutput
from nmt.models.config import ModelConfig
from nmt.models.encoders import Encoded

KEPT = 1 << 24  # floats of a kept table of words: 64 MiB


@dataclass
class Sources:
    """What belongs to S sentences as a whole, kept once, not once a hypothesis: projections of c, or the
    memory of an attention."""

    cell: Tensor | None = None  # (S, 3H or 4H) C c
    output: Tensor | None = None  # (S, 2M) O_c c
    memory: Memory | None = None

    def rows(self, rows: Tensor) -> "Sources":
        cell, output = (
            None if part is None else part.index_select(0, rows) for part in (self.cell, self.output)
        )
        return Sources(cell, output, self.memory and self.memory.rows(rows))

    @staticmethod
    def join(parts: "Sequence[Sources]") -> "Sources":
        memories = [part.memory for part in parts if part.memory is not None]
        if memories:
            return Sources(memory=Memory.join(memories))
        return Sources(torch.cat([part.cell for part in parts]), torch.cat([part.output for part in parts]))  # type: ignore[misc]


@dataclass
class DecoderState:
    """R hypotheses of S sentences, between two words."""

    hidden: Tensor  # (R, state sizes of all layers)
    sentence: Tensor  # (R,) which of the S sentences a row belongs to
    sources: Sources
    weights: Tensor | None = None  # (R, L) where the attention looked at the last step

    def rows(self, rows: Tensor) -> "DecoderState":
        """Row i of the result is row rows[i]; rows may repeat or be missing."""
        weights = None if self.weights is None else self.weights.index_select(0, rows)
        return DecoderState(
            self.hidden.index_select(0, rows), self.sentence.index_select(0, rows), self.sources, weights
        )

    @staticmethod
    def join(states: "Sequence[DecoderState]") -> "DecoderState":
        """All rows, one state's below the other's. Sentences without rows are forgotten."""
        sentences, sources, count = [], [], 0
        for state in states:
            used, index = state.sentence.unique(return_inverse=True)
            sentences.append(index + count)
            sources.append(state.sources.rows(used))
            count += len(used)
        return DecoderState(
            torch.cat([state.hidden for state in states]), torch.cat(sentences), Sources.join(sources)
        )


@dataclass
class WordTables:
    """W words as the decoder reads them, computed once however often a word occurs."""

    cell: Tensor  # (W, 3H or 4H) W e(y)
    output: Tensor  # (W, 2M) O_y e(y)

    def rows(self, rows: Tensor) -> "WordTables":
        return WordTables(
            self.cell.index_select(0, rows), self.output.index_select(0, rows)
        )  # 5 times faster than [rows]


class RNNDecoder(nn.Module):
    def __init__(self, config: ModelConfig, words: int) -> None:
        super().__init__()
        H, C, start = config.hidden, config.context, config.summary_size
        self.embedding = nn.Embedding(
            words, config.embedding, padding_idx=BOS
        )  # 'no word before' is a zero vector
        self.initial = nn.Parameter(torch.empty(H, start))  # V'
        self.initial_bias = nn.Parameter(torch.zeros(H)) if config.bias else None
        self.cell = config.cell_of(config.embedding, H, C)
        self.attention = AdditiveAttention(C, H, config.attention) if config.attention else None
        self.upper = nn.ModuleList(config.cell_of(H, H) for _ in range(1, config.decoder_layers))
        self.upper_initial = nn.ParameterList(torch.empty(H, start) for _ in self.upper)
        self.output = DeepOutput(
            H, config.embedding, C, config.maxout, words, config.output_rank, config.bias, config.dropout
        )
        self.tied = config.tied != "none"
        if self.tied:
            self.output.words = self.embedding.weight  # type: ignore[assignment]
        self.dropout = config.dropout
        self.first_word = config.first_word
        self._kept: tuple[object, WordTables] | None = None

    def train(self, mode: bool = True) -> "RNNDecoder":
        self._kept = None  # torch's fused optimizers change weights without changing their version
        return super().train(mode)

    def embed(self, words: Tensor) -> Tensor:
        """(N,) -> (N, E)"""
        embedded = self.embedding(words)
        # A tied row of <s> also gets the gradient of the softmax: here it has to stay 'no word before'.
        return embedded * (words != BOS)[:, None] if self.tied else embedded

    def first_states(self, summary: Tensor) -> list[Tensor]:
        """h'_0 = tanh(V' c) of each layer: (B, C) -> (B, state size)"""
        first = self.cell.start(torch.tanh(F.linear(summary, self.initial, self.initial_bias)))
        above = [
            cell.start(torch.tanh(F.linear(summary, matrix)))  # type: ignore[operator]
            for cell, matrix in zip(self.upper, self.upper_initial, strict=True)
        ]
        return [first, *above]

    def unroll(self, encoded: Encoded, target: Packed, previous: Tensor) -> Tensor:
        """Output features of all target words at once: previous words (N,) -> (N, K)"""
        words = F.dropout(self.embed(previous), self.dropout, self.training)  # (N, E)
        starts = self.first_states(encoded.summary[target.order])  # longest target first
        if self.attention is None:
            c = encoded.summary[target.order]
            hidden = self._unroll(
                words, target, starts[0], repeat(self.cell.project_context(c), target.sizes)
            )  # (N, H)
            seen = repeat(self.output.project_context(c), target.sizes)
        else:
            hidden, contexts = self._attend(self.attention, words, encoded, target, starts[0])
            seen = self.output.project_context(contexts)
        for cell, start in zip(self.upper, starts[1:], strict=True):
            hidden = cell.unroll(F.dropout(hidden, self.dropout, self.training), target.sizes, start)  # type: ignore[operator]
        return self.output.features(hidden, words, seen)

    def _unroll(self, words: Tensor, target: Packed, start: Tensor, context: Tensor) -> Tensor:
        if self.first_word == "step":
            return self.cell.unroll(words, target.sizes, start, context)
        # The first word is read off h'_0 itself: the cell runs on the words before the second to the last
        # only.
        rows = target.sizes[0]
        first = self.cell.output(start)
        later = target.sizes[1:]
        if not later:
            return first
        return torch.cat([first, self.cell.unroll(words[rows:], later, start[: later[0]], context[rows:])])

    def _attend(
        self, attention: AdditiveAttention, words: Tensor, encoded: Encoded, target: Packed, start: Tensor
    ) -> tuple[Tensor, Tensor]:
        """-> states (N, H), contexts (N, C)"""
        places = torch.empty_like(target.order)
        places[target.order] = torch.arange(len(places), device=places.device)
        memory = self.memory(attention, encoded, places)
        x = self.cell.project(words)
        if isinstance(self.cell, GRU) and self.cell.reset == "before" and self.cell.gate == "keep_old":
            return attend(attention, self.cell, x, start, memory, target.sizes)
        # Other cells by plain autograd: slower.
        state, end, states, contexts = start, 0, [], []
        for rows in target.sizes:
            seen, _ = attention(
                self.cell.output(state[:rows]),
                Memory(memory.keys[:rows], memory.values[:rows], memory.mask[:rows]),
            )
            state = self.cell.advance(x[end : end + rows], state[:rows], self.cell.project_context(seen))
            states.append(self.cell.output(state))
            contexts.append(seen)
            end += rows
        return torch.cat(states), torch.cat(contexts)

    @staticmethod
    def memory(attention: AdditiveAttention, encoded: Encoded, places: Tensor | None = None) -> Memory:
        """The annotations of each sentence as rows of a grid, keys projected once."""
        assert encoded.states is not None and encoded.source is not None, "this encoder gives no annotations"
        source = encoded.source
        lengths = torch.empty_like(source.order)
        lengths[source.order if places is None else places[source.order]] = source.lengths
        return attention.memory(source.grid(encoded.states, places), lengths)

    def start(self, encoded: Encoded) -> DecoderState:
        """One row for each sentence, before its first word."""
        c = encoded.summary
        rows = torch.arange(len(c), device=c.device)
        if self.attention is None:
            sources = Sources(self.cell.project_context(c), self.output.project_context(c))
        else:
            memory = self.memory(self.attention, encoded)
            # The mean of projections is the projection of the mean: made once a source word, not once a
            # hypothesis and step.
            projected = torch.cat(
                [self.cell.project_context(memory.values), self.output.project_context(memory.values)], 2
            )
            sources = Sources(memory=Memory(memory.keys, projected, memory.mask))
        return DecoderState(torch.cat(self.first_states(c), 1), rows, sources)

    def step(self, state: DecoderState, words: Tensor | None) -> tuple[Tensor, DecoderState]:
        """log p of every next word after `words` (None at the start): (R,) -> (R, V), natural logarithm"""
        read = torch.full_like(state.sentence, BOS) if words is None else words
        features, state = self.advance(state, self.tables_of(read), first=words is None)
        return self.output.log_probs(features), state

    def tables_of(self, words: Tensor) -> WordTables:
        """As `tables`, from a table of all words that is kept while no weight changes, if it is small enough
        to keep."""
        if (
            torch.is_grad_enabled()
            or self.embedding.num_embeddings * (len(self.cell.inputs) + len(self.output.hidden)) > KEPT
        ):
            return self.tables(words)
        weights = (self.embedding.weight, self.cell.inputs, self.cell.bias, self.output.previous)
        state = [
            (weight.data_ptr(), weight._version, weight.dtype) for weight in weights if weight is not None
        ]
        kept = self._kept  # read once: another thread may replace it
        if kept is None or kept[0] != state:
            kept = self._kept = (
                state,
                self.tables(torch.arange(self.embedding.num_embeddings, device=words.device)),
            )
        return kept[1].rows(words)

    def tables(self, words: Tensor) -> WordTables:
        """What the decoder makes of each of some words, whatever stands around them: (W,) -> (W, ...)"""
        embedded = self.embed(words)
        return WordTables(self.cell.project(embedded), self.output.project_previous(embedded))

    def advance(self, state: DecoderState, words: WordTables, first: bool) -> tuple[Tensor, DecoderState]:
        """One step: the row of the word read last for each row of the state -> output features (R, K) and the
        state after it"""
        sources, weights = state.sources, None
        parts = state.hidden.split([self.cell.state_size, *(cell.state_size for cell in self.upper)], 1)  # type: ignore[misc]
        if self.attention is None:
            assert sources.cell is not None and sources.output is not None
            into_cell, seen = (
                sources.cell.index_select(0, state.sentence),
                sources.output.index_select(0, state.sentence),
            )
        else:
            assert sources.memory is not None
            context, weights = self.attention(self.cell.output(parts[0]), sources.memory, state.sentence)
            into_cell, seen = context.split([len(self.cell.inputs), len(self.output.hidden)], 1)
        hidden = parts[0]
        if not (first and self.first_word == "initial"):
            hidden = self.cell.advance(words.cell, hidden, into_cell)
        after, top = [hidden], self.cell.output(hidden)
        for cell, below in zip(self.upper, parts[1:], strict=True):
            after.append(cell.step(top, below))  # type: ignore[operator]
            top = cell.output(after[-1])  # type: ignore[operator]
        features = self.output.combine(top, words.output, seen)
        return features, replace(
            state, hidden=torch.cat(after, 1) if len(after) > 1 else hidden, weights=weights
        )
