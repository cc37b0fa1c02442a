"""The RNN encoder-decoder, `model.type: rnn`: its decoder (van Merriënboer 2018, section 4.2.2), and the
model.

A context of the source enters the gates, the candidate and the output at every step: c, the same at all
steps, or with attention this step's weighted mean of the annotations.

B sentences of a batch, N tokens of all of them, R rows (hypotheses), S sentences in search, L source words, E
embedding size, H hidden units, C context size, M maxout units, K features: M, or the rank.

The summary of a sentence initializes the decoder: c itself, or with attention another vector of the encoder,
whose width, `summary_size`, may differ from C.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.data.batches import Batch, Ids, Packed, pack_source
from nmt.layers.attention import AdditiveAttention, AttentionMemory, alignment_cost, attend, join_sentences
from nmt.layers.batch_scores import Walk, on_device
from nmt.layers.cells import GRU, Cell, penalized_parts, repeat, total_penalty
from nmt.layers.characters import CharacterWords
from nmt.layers.initialize import initialize
from nmt.layers.output import OutputLayer, make_output
from nmt.layers.output.softmax import Softmax
from nmt.models.config import RNNConfig, check_one_vocabulary
from nmt.models.encoders import ENCODER_CLASSES, Encoded, GrConvEncoder, RNNEncoder
from nmt.models.protocols import TranslationModel, target_cost
from nmt.text.vocab import BOS

# ---- deep output -------------------------------------------------------------------------------------------


class DeepOutput(nn.Module):
    """The deep output with maxout of Cho et al. 2014a, between decoder states and the output layer.

        s = O_h h + O_y e(y) + O_c c;  m_i = max(s_2i, s_2i+1);  features m, or with `rank` G_right m

    With `rank` the output matrix is G_left G_right of that rank, and G_left belongs to the output layer.
    """

    words: nn.Parameter
    words_bias: nn.Parameter | None

    def __init__(self, config: RNNConfig, vocab_size: int) -> None:
        super().__init__()
        maxout, rank = config.maxout, config.output_rank
        self.hidden = nn.Parameter(torch.empty(2 * maxout, config.hidden))  # O_h
        self.previous = nn.Parameter(torch.empty(2 * maxout, config.embedding))  # O_y
        self.context = nn.Parameter(torch.empty(2 * maxout, config.context))  # O_c
        self.right = nn.Parameter(torch.empty(rank, maxout)) if rank else None  # G_right
        self.layer = make_output(config, rank or maxout, vocab_size, config.bias)
        self.adopt("words")
        self.bias = nn.Parameter(torch.zeros(2 * maxout)) if config.bias else None
        self.adopt("words_bias")
        self.dropout = config.dropout

    def adopt(self, name: str) -> None:
        """Register a parameter of the output layer as one of this module, with the name and the position
        (`words`, `words_bias`) that saved weights and optimizer states expect."""
        parameter = getattr(self.layer, name, None)
        if not isinstance(parameter, nn.Parameter):
            self.register_parameter(name, None)
            return
        delattr(self.layer, name)
        self.register_parameter(name, parameter)
        vars(self.layer)[name] = parameter  # the same tensor, but not registered by the layer

    def tie(self, embedding: nn.Embedding) -> None:
        """Use the matrix of word embeddings (V, K) as the output matrix, instead of one of its own.
        ConfigError for an output layer that cannot."""
        vars(self.layer).pop("words", None)
        self.layer.tie(embedding)
        self.adopt("words")

    def project_context(self, context: Tensor) -> Tensor:
        """O_c c, computed once for each sentence: (B, C) -> (B, 2M), and for any shape (..., C)"""
        return F.linear(context, self.context)

    def project_previous(self, previous: Tensor) -> Tensor:
        """O_y e(y): (N, E) -> (N, 2M)"""
        return F.linear(previous, self.previous)

    def combine(self, hidden: Tensor, previous: Tensor, context: Tensor) -> Tensor:
        """Output features from hidden states (N, H), projected previous words (N, 2M) and projected contexts
        (N, 2M): (N, K)"""
        sums = F.linear(hidden, self.hidden, self.bias) + previous + context
        maxout = sums.view(len(sums), -1, 2).amax(2)
        maxout = F.dropout(maxout, self.dropout, self.training)
        return maxout if self.right is None else F.linear(maxout, self.right)


# ---- decoder -----------------------------------------------------------------------------------------------


MOST_CACHED = 1 << 24  # floats of a cached table of all words: 64 MiB


@dataclass
class Sources:
    """S encoded sentences, stored once for all hypotheses: projections of c, or an attention's memory."""

    cell: Tensor | None = None  # (S, 3H or 4H) C c
    output: Tensor | None = None  # (S, 2M) O_c c
    memory: AttentionMemory | None = None

    def rows(self, rows: Tensor) -> "Sources":
        """Select sentences: sentence i of the result is sentence rows[i]; rows may repeat or be left out."""
        cell, output = (
            None if part is None else part.index_select(0, rows) for part in (self.cell, self.output)
        )
        return Sources(cell=cell, output=output, memory=self.memory and self.memory.rows(rows))

    @staticmethod
    def join(parts: "Sequence[Sources]") -> "Sources":
        memories = [part.memory for part in parts if part.memory is not None]
        if memories:
            return Sources(memory=AttentionMemory.join(memories))
        return Sources(
            cell=torch.cat([part.cell for part in parts if part.cell is not None]),
            output=torch.cat([part.output for part in parts if part.output is not None]),
        )


@dataclass
class DecoderState:
    """State of R hypotheses of S sentences between two words."""

    hidden: Tensor  # (R, state sizes of all layers)
    sentence: Tensor  # (R,) index of the sentence of each row
    sources: Sources
    weights: Tensor | None = None  # (R, L) attention weights of the last step

    def rows(self, rows: Tensor) -> "DecoderState":
        """Select rows: row i of the result is row rows[i]; rows may repeat or be left out."""
        weights = None if self.weights is None else self.weights.index_select(0, rows)
        return DecoderState(
            hidden=self.hidden.index_select(0, rows),
            sentence=self.sentence.index_select(0, rows),
            sources=self.sources,
            weights=weights,
        )

    @staticmethod
    def join(states: "Sequence[DecoderState]") -> "DecoderState":
        """Concatenate the rows of states. Attention weights, and sentences without rows, are dropped."""
        sentence, used = join_sentences([state.sentence for state in states])
        sources = [state.sources.rows(rows) for state, rows in zip(states, used, strict=True)]
        return DecoderState(
            hidden=torch.cat([state.hidden for state in states]),
            sentence=sentence,
            sources=Sources.join(sources),
        )


@dataclass
class ProjectedWords:
    """Projections of T distinct words (not steps), each computed once however often it occurs."""

    cell: Tensor  # (T, 3H or 4H) W e(y)
    output: Tensor  # (T, 2M) O_y e(y)

    def rows(self, rows: Tensor) -> "ProjectedWords":
        # index_select is 5 times as fast as [rows].
        return ProjectedWords(cell=self.cell.index_select(0, rows), output=self.output.index_select(0, rows))


class RNNDecoder(nn.Module):
    """Recurrent layers above the target embeddings, and the deep output."""

    def __init__(self, config: RNNConfig, vocab_size: int) -> None:
        super().__init__()
        H, C, summary_size = config.hidden, config.context, config.summary_size
        # The row of <s>, 'no previous word', is a zero vector.
        self.embedding = nn.Embedding(vocab_size, config.embedding, padding_idx=BOS)
        self.initial = nn.Parameter(torch.empty(H, summary_size))  # V' of h'_0 = tanh(V' summary)
        self.initial_bias = nn.Parameter(torch.zeros(H)) if config.bias else None
        self.cell = config.make_cell(config.embedding, H, C)
        self.attention = AdditiveAttention(C, H, config.attention) if config.attention else None
        self.upper = nn.ModuleList(config.make_cell(H, H) for _ in range(1, config.decoder_layers))
        self.upper_initial = nn.ParameterList(torch.empty(H, summary_size) for _ in self.upper)
        self.output = DeepOutput(config, vocab_size)
        self.tied = config.tied != "none"
        if self.tied:
            self.output.tie(self.embedding)
        self.dropout = config.dropout
        self.first_word = config.first_word
        self._cache: tuple[object, ProjectedWords] | None = None  # version of the weights, all words

    @property
    def layer(self) -> OutputLayer:
        return self.output.layer

    @property
    def upper_cells(self) -> list[Cell]:
        """The layers above the first."""
        return list(self.upper)  # type: ignore[arg-type]

    def train(self, mode: bool = True) -> "RNNDecoder":
        self._cache = None  # torch's fused optimizers change weights without changing their version
        return super().train(mode)

    def embed(self, token_ids: Tensor) -> Tensor:
        """Embeddings of words, a zero vector for <s>: (N,) -> (N, E)"""
        embedded: Tensor = self.embedding(token_ids)
        # A tied row of <s> also gets the gradient of the softmax, but has to stay 'no previous word' here.
        return embedded * (token_ids != BOS)[:, None] if self.tied else embedded

    def first_states(self, summary: Tensor) -> list[Tensor]:
        """h'_0 = tanh(V' summary) of each layer: (B, summary_size) -> (B, state size) each"""
        first = self.cell.start(torch.tanh(F.linear(summary, self.initial, self.initial_bias)))
        above = [
            cell.start(torch.tanh(F.linear(summary, matrix)))
            for cell, matrix in zip(self.upper_cells, self.upper_initial, strict=True)
        ]
        return [first, *above]

    def attended(self, encoded: Encoded, target: Packed, previous: Tensor) -> tuple[Tensor, Tensor | None]:
        """Output features of all target tokens, (N, K), and attention weights, (N, L); None without
        attention. `previous` (N,): the token before each of them."""
        embedded = F.dropout(self.embed(previous), self.dropout, self.training)  # (N, E)
        starts = self.first_states(encoded.summary[target.order])  # longest target first
        if self.attention is None:
            c = encoded.summary[target.order]
            hidden = self._unroll(
                embedded, target, starts[0], repeat(self.cell.project_context(c), target.sizes)
            )  # (N, H)
            output_context, weights = repeat(self.output.project_context(c), target.sizes), None
        else:
            hidden, contexts, weights = self._attend(self.attention, embedded, encoded, target, starts[0])
            output_context = self.output.project_context(contexts)
        for cell, start in zip(self.upper_cells, starts[1:], strict=True):
            hidden = cell.unroll(F.dropout(hidden, self.dropout, self.training), target.sizes, start)
        return self.output.combine(hidden, self.output.project_previous(embedded), output_context), weights

    def _unroll(self, embedded: Tensor, target: Packed, start: Tensor, context: Tensor) -> Tensor:
        if self.first_word == "step":
            return self.cell.unroll(embedded, target.sizes, start, context)
        # The first word is predicted from h'_0 itself, so the cell runs from the second word on and
        # never reads the last one.
        rows = target.sizes[0]
        first = self.cell.output(start)
        later = target.sizes[1:]
        if not later:
            return first
        return torch.cat([first, self.cell.unroll(embedded[rows:], later, start[: later[0]], context[rows:])])

    def _attend(
        self, attention: AdditiveAttention, embedded: Tensor, encoded: Encoded, target: Packed, start: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """States (N, H), contexts (N, C), attention weights (N, L)."""
        rows = torch.empty_like(target.order)
        rows[target.order] = torch.arange(len(rows), device=rows.device)
        memory = self.memory(attention, encoded, rows)
        x = self.cell.project(embedded)
        if isinstance(self.cell, GRU) and self.cell.reset == "before" and self.cell.gate == "keep_old":
            return attend(attention, self.cell, x, start, memory, target)
        # Other cells use plain autograd, which is slower.
        state, end, states, contexts, weights = start, 0, [], [], []
        for size in target.sizes:
            context, step_weights = attention(
                self.cell.output(state[:size]),
                AttentionMemory(
                    keys=memory.keys[:size], values=memory.values[:size], mask=memory.mask[:size]
                ),
            )
            state = self.cell.advance(x[end : end + size], state[:size], self.cell.project_context(context))
            states.append(self.cell.output(state))
            contexts.append(context)
            weights.append(step_weights)
            end += size
        return torch.cat(states), torch.cat(contexts), torch.cat(weights)

    @staticmethod
    def memory(attention: AdditiveAttention, encoded: Encoded, rows: Tensor | None = None) -> AttentionMemory:
        """Lay out annotations as a grid with a row for each sentence, and project the keys once. `rows`: the
        row of each sentence, by default its index."""
        assert encoded.states is not None and encoded.source is not None, "this encoder has no annotations"
        source = encoded.source
        lengths = torch.empty_like(source.order)
        lengths[source.order if rows is None else rows[source.order]] = source.lengths
        return attention.memory(source.grid(encoded.states, rows), lengths)

    def start(self, encoded: Encoded) -> DecoderState:
        """Create a state with one row for each sentence, before its first word."""
        summary = encoded.summary
        rows = torch.arange(len(summary), device=summary.device)
        if self.attention is None:
            sources = Sources(
                cell=self.cell.project_context(summary), output=self.output.project_context(summary)
            )
        else:
            memory = self.memory(self.attention, encoded)
            # The mean of projections is the projection of the mean: project source words once, rather than
            # contexts in each step of each hypothesis.
            projected = torch.cat(
                [self.cell.project_context(memory.values), self.output.project_context(memory.values)], 2
            )
            sources = Sources(memory=AttentionMemory(keys=memory.keys, values=projected, mask=memory.mask))
        return DecoderState(hidden=torch.cat(self.first_states(summary), 1), sentence=rows, sources=sources)

    def read(self, state: DecoderState, token_ids: Tensor | None) -> tuple[Tensor, DecoderState]:
        """Read `token_ids` (R,), None at the start. Returns output features (R, K) and the new state."""
        previous = torch.full_like(state.sentence, BOS) if token_ids is None else token_ids
        return self.advance(state, self.project_cached(previous), first=token_ids is None)

    def project_cached(self, token_ids: Tensor) -> ProjectedWords:
        """Like `project`, but without gradients it looks the words up in a table of all words, unless that is
        too large. The table is cached until the weights change."""
        size = self.embedding.num_embeddings * (len(self.cell.inputs) + len(self.output.hidden))
        if torch.is_grad_enabled() or size > MOST_CACHED:
            return self.project(token_ids)
        weights = (self.embedding.weight, self.cell.inputs, self.cell.bias, self.output.previous)
        state = [
            (weight.data_ptr(), weight._version, weight.dtype) for weight in weights if weight is not None
        ]
        cache = self._cache  # read once: another thread may replace it
        if cache is None or cache[0] != state:
            words = torch.arange(self.embedding.num_embeddings, device=token_ids.device)
            cache = self._cache = state, self.project(words)
        return cache[1].rows(token_ids)

    def project(self, token_ids: Tensor) -> ProjectedWords:
        """Compute what depends on each word alone, for token ids (T,); see `ProjectedWords`."""
        embedded = self.embed(token_ids)
        return ProjectedWords(cell=self.cell.project(embedded), output=self.output.project_previous(embedded))

    def advance(self, state: DecoderState, words: ProjectedWords, first: bool) -> tuple[Tensor, DecoderState]:
        """Read a word for each row of the state. `first`: the words are <s>, before the first word. Returns
        output features (R, K) and the new state."""
        sources, weights = state.sources, None
        parts = state.hidden.split([self.cell.state_size, *(cell.state_size for cell in self.upper_cells)], 1)
        if self.attention is None:
            assert sources.cell is not None and sources.output is not None
            cell_context = sources.cell.index_select(0, state.sentence)
            output_context = sources.output.index_select(0, state.sentence)
        else:
            assert sources.memory is not None
            context, weights = self.attention(self.cell.output(parts[0]), sources.memory, state.sentence)
            cell_context, output_context = context.split([len(self.cell.inputs), len(self.output.hidden)], 1)
        hidden = parts[0]
        if not (first and self.first_word == "initial"):
            hidden = self.cell.advance(words.cell, hidden, cell_context)
        after, top = [hidden], self.cell.output(hidden)
        for cell, below in zip(self.upper_cells, parts[1:], strict=True):
            after.append(cell.step(top, below))
            top = cell.output(after[-1])
        features = self.output.combine(top, words.output, output_context)
        return features, replace(
            state, hidden=torch.cat(after, 1) if len(after) > 1 else hidden, weights=weights
        )


# ---- translator --------------------------------------------------------------------------------------------


class RNNTranslator(TranslationModel[DecoderState]):
    """The encoder-decoder of Cho et al. 2014a, with or without attention; `model.type: rnn`. It has every
    capability of nmt/models/protocols.py but `Widening`."""

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
        super().__init__(config, source_vocab_size, target_vocab_size)
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
    def attends(self) -> bool:
        return self.decoder.attention is not None

    @property
    def takes_padding(self) -> bool:
        plain = type(self.decoder.layer) is Softmax and not self.penalized
        return plain and isinstance(self.encoder, RNNEncoder)

    def unroll(self, batch: Batch) -> Tensor:
        """Output features of all target tokens: (N, K)"""
        features, _ = self.decoder.attended(self.encoder(batch.source), batch.target, batch.previous)
        return features

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """The loss of `TranslationModel` and, in training, the penalties that parts of the model add: ()"""
        if batch.guidance is None:
            cost = target_cost(self.decoder.layer, self.unroll(batch), batch, smoothing)
        else:
            features, weights = self.attended(batch)
            cost = target_cost(self.decoder.layer, features, batch, smoothing)
            cost = cost + alignment_cost(weights, batch.guidance)
        return cost + total_penalty(self.penalized) if self.penalized else cost

    def attended(self, batch: Batch) -> tuple[Tensor, Tensor]:
        features, weights = self.decoder.attended(self.encoder(batch.source), batch.target, batch.previous)
        assert weights is not None, "this model has no attention"
        if self.encoder.reverse:
            lengths = torch.empty_like(batch.source.order)
            lengths[batch.source.order] = batch.source.lengths
            weights = unreverse(weights, lengths[batch.target.order[batch.target.rows]])
        return features, weights

    def token_log_probs(self, batch: Batch) -> Tensor:
        with torch.no_grad():
            return self.decoder.layer.target_log_probs(self.unroll(batch), batch.target.ids)

    def start(self, sources: Sequence[Ids]) -> DecoderState:
        return self.decoder.start(self.encoder(pack_source(sources).to(self.device)))

    def features(self, state: DecoderState, token_ids: Tensor | None) -> tuple[Tensor, DecoderState]:
        return self.decoder.read(state, token_ids)

    def step(self, state: DecoderState, token_ids: Tensor | None) -> tuple[Tensor, DecoderState]:
        features, state = self.decoder.read(state, token_ids)
        return self.decoder.layer.log_probs(features), state

    @property
    def output_layer(self) -> OutputLayer:
        return self.decoder.layer

    def reorder(self, state: DecoderState, rows: Tensor) -> DecoderState:
        return state.rows(rows)

    def join(self, states: Sequence[DecoderState]) -> DecoderState:
        return DecoderState.join(states)

    def attention(self, state: DecoderState) -> Tensor | None:
        if state.weights is None or not self.encoder.reverse:
            return state.weights
        assert state.sources.memory is not None
        return unreverse(state.weights, (state.sources.memory.mask[state.sentence] == 0).sum(1))

    def walk(self, sources: Sequence[Ids], token_ids: NDArray[np.int64]) -> Walk[DecoderState]:
        """Start a walk for `PrefixTrees`. What depends on a word alone is computed once for each id."""
        tables = self.decoder.project(on_device(token_ids, self.device))

        def step(state: DecoderState, words: Tensor, first: bool) -> tuple[Tensor, DecoderState]:
            return self.decoder.advance(state, tables.rows(words), first)

        def join(states: Sequence[DecoderState]) -> DecoderState:  # states of the same sentences
            hidden = torch.cat([state.hidden for state in states])
            sentence = torch.cat([state.sentence for state in states])
            return replace(states[0], hidden=hidden, sentence=sentence, weights=None)

        start = partial(self.start_by_prefix, sources)
        return Walk(self.device, self.decoder.layer, start, step, self.reorder, join)

    def start_by_prefix(self, sources: Sequence[Ids]) -> DecoderState:
        """The state of `start`; reads common prefixes of the sources only once, if the encoder allows it."""
        if isinstance(self.encoder, RNNEncoder) and self.encoder.shares_prefixes and not self.attends:
            return self.decoder.start(Encoded(summary=self.encoder.summarize_by_prefix(sources)))
        return self.start(sources)

    @torch.no_grad()
    def source_vectors(self, sources: Sequence[Ids]) -> Tensor:
        """c of each sentence, or with attention the vector that initializes the decoder: (B, summary_size)"""
        encoded: Encoded = self.encoder(pack_source(sources).to(self.device))
        return encoded.summary

    def word_embedding(self, side: str) -> nn.Module:
        return self.encoder.embedding if side == "source" else self.decoder.embedding

    def merge_gates(self, sources: Sequence[Ids]) -> list[Tensor] | None:
        return self.encoder.gates(sources) if isinstance(self.encoder, GrConvEncoder) else None

    def row_words(
        self, source_vocab: Sequence[str], target_vocab: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        """Parameter name -> the word, or the character of a character encoder, of each of its rows."""
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
