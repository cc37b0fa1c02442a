"""Encoders of source sentences: one vector for each sentence and, for attention, an annotation for each
word."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.compute.device import block_rows
from nmt.data import prefix_tree
from nmt.data.batches import Ids, Packed, pack_source
from nmt.layers.cells import Cell
from nmt.layers.characters import CharacterWords
from nmt.layers.grconv import GatedConvolution
from nmt.models.config import RNNConfig
from nmt.text.vocab import EOS


@dataclass
class Encoded:
    """B sentences after the encoder."""

    summary: Tensor  # (B, summary_size) in batch order: c, or with attention what initializes the decoder
    states: Tensor | None = None  # (N, D) annotations in packed order; None for an encoder without them
    source: Packed | None = None  # the layout of the annotations


def word_vectors(config: RNNConfig, vocab_size: int, spelling: Sequence[str] | None) -> nn.Module:
    """Create the layer that maps source ids to vectors: a table, or a network that computes them from
    `spelling`, the source words by id."""
    if config.source_words == "table":
        return nn.Embedding(vocab_size, config.embedding)
    assert spelling is not None and len(spelling) == vocab_size, "a character encoder needs the source words"
    return CharacterWords(spelling, config.embedding)


def summary_matrix(config: RNNConfig) -> nn.Parameter | None:
    """V of c = tanh(V h), for `summary: tanh`; None for other encoders."""
    size = config.context
    return nn.Parameter(torch.empty(size, size)) if config.summary == "tanh" else None


def summarize(vectors: Tensor, matrix: nn.Parameter | None) -> Tensor:
    """c of B sentences: tanh(V h) for their vectors h (B, C), or h itself without a matrix V."""
    return vectors if matrix is None else torch.tanh(F.linear(vectors, matrix))


def compute_both(
    device: torch.device, first: Callable[[], Tensor], second: Callable[[], Tensor]
) -> tuple[Tensor, Tensor]:
    """The results of two computations; a CUDA graph that is being recorded runs them at the same time."""
    if device.type != "cuda" or not torch.cuda.is_current_stream_capturing():
        return first(), second()
    current, second_stream = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    second_stream.wait_stream(current)
    with torch.cuda.stream(second_stream):
        second_result = second()
    first_result = first()
    current.wait_stream(second_stream)
    return first_result, second_result


class RNNEncoder(nn.Module):
    """Reads the source including its end symbol; c is the last state (van Merriënboer 2018, section 4.2.1).

    With `birnn` a second network reads from the end: an annotation is the two states at a word, c the two
    last states. With attention the decoder starts from the backward state at the first word alone
    (RNNsearch). Upper layers read the annotations of the layer below.
    """

    def __init__(self, config: RNNConfig, vocab_size: int, spelling: Sequence[str] | None = None) -> None:
        super().__init__()
        H, wide = config.encoder_units, config.context
        self.embedding = word_vectors(config, vocab_size, spelling)
        self.cell = config.make_cell(config.embedding, H)
        self.upper = nn.ModuleList(config.make_cell(wide, H) for _ in range(1, config.encoder_layers))
        both = config.encoder == "birnn"
        self.backward_cells: nn.ModuleList | None = None
        if both:
            widths = [config.embedding, *[wide] * (config.encoder_layers - 1)]
            self.backward_cells = nn.ModuleList(config.make_cell(width, H) for width in widths)
        self.summary = summary_matrix(config)
        self.dropout, self.reverse = config.dropout, config.reverse
        self.from_backward = both and bool(config.attention)

    def forward(self, source: Packed) -> Encoded:
        """Encode B sentences, end symbols included."""
        ids = source.ids[source.reversed_order(fixed=1)] if self.reverse else source.ids
        states = F.dropout(self.embedding(ids), self.dropout, self.training)
        for layer, cell in enumerate([self.cell, *self.upper]):
            if layer:
                states = F.dropout(states, self.dropout, self.training)
            states = self._layer(
                cell,
                self.backward_cells[layer] if self.backward_cells else None,  # type: ignore[arg-type]
                states,
                source,
            )
        H = self.cell.hidden
        last = states[source.last]  # (B, C), longest sentence first
        if self.backward_cells:
            first = states[: len(source.order), H:]  # the backward states at the first word
            last = first if self.from_backward else torch.cat([last[:, :H], first], 1)
        summary = summarize(torch.empty_like(last).index_copy(0, source.order, last), self.summary)
        return Encoded(summary=summary, states=states, source=source)

    @staticmethod
    def _layer(cell: Cell, backward: Cell | None, inputs: Tensor, source: Packed) -> Tensor:
        """States of one layer at all words: (N, E) -> (N, H), or (N, 2H) for both directions"""
        start = inputs.new_zeros(len(source.order), cell.state_size)
        if backward is None:
            return cell.unroll(inputs, source.sizes, start)
        reversal = source.reversed_order()
        states, backward_states = compute_both(
            inputs.device,
            lambda: cell.unroll(inputs, source.sizes, start),
            lambda: backward.unroll(inputs.index_select(0, reversal), source.sizes, start),
        )
        return torch.cat([states, backward_states.index_select(0, reversal)], 1)

    @property
    def shares_prefixes(self) -> bool:
        """Whether the state after a prefix depends on this prefix alone."""
        return not (self.backward_cells or self.upper or self.reverse)

    def summarize_by_prefix(self, sources: Sequence[Ids]) -> Tensor:
        """c of B sequences of ids, reading common prefixes once: (B, H). Only if it `shares_prefixes`."""
        assert self.shares_prefixes
        device = self.cell.inputs.device
        levels = prefix_tree.levels([[*source, EOS] for source in sources])
        words, index = np.unique(
            np.concatenate([level.token_ids for level in levels[1:]]), return_inverse=True
        )
        table = self.cell.project(self.embedding(torch.from_numpy(words).to(device)))
        state = table.new_zeros(1, self.cell.state_size)
        size = block_rows(device, prefix_tree.BLOCK, table.shape[1])
        c, end = table.new_empty(len(sources), self.cell.hidden), 0
        for level in levels[1:]:
            rows = torch.from_numpy(index[end : end + len(level.token_ids)]).to(device)
            end += len(level.token_ids)
            parents = torch.from_numpy(level.parents).to(device)
            state = torch.cat(
                [
                    self.cell.advance(table.index_select(0, rows[cut]), state.index_select(0, parents[cut]))
                    for cut in prefix_tree.blocks(len(rows), size)
                ]
            )
            if len(level.ended):
                c[torch.from_numpy(level.ended).to(device)] = self.cell.output(
                    state[torch.from_numpy(level.nodes).to(device)]
                )
        return summarize(c, self.summary)


class GrConvEncoder(nn.Module):
    """The gated recursive convolutional network (van Merriënboer 2018, section 6.2.2), which merges words
    pairwise, level by level, into one vector c.

    The leaves are the words alone, U e(x_j); the end symbol is a leaf only if a sentence has no words.
    """

    shares_prefixes = False

    def __init__(self, config: RNNConfig, vocab_size: int, spelling: Sequence[str] | None = None) -> None:
        super().__init__()
        self.embedding = word_vectors(config, vocab_size, spelling)
        self.layer = GatedConvolution(config.embedding, config.encoder_units, config.bias)
        self.summary = summary_matrix(config)
        self.dropout, self.reverse = config.dropout, config.reverse

    def forward(self, source: Packed) -> Encoded:
        """Encode B sentences, end symbols included."""
        leaves, sizes = self.leaves(source)
        c = self.layer(F.dropout(self.embedding(leaves), self.dropout, self.training), sizes)
        c = torch.empty_like(c).index_copy(0, source.order, c)
        return Encoded(summary=summarize(c, self.summary))

    def leaves(self, source: Packed) -> tuple[Tensor, list[int]]:
        """Token ids without end symbols, longest sentence first, and the number of words at each step."""
        ids = source.ids[source.reversed_order(fixed=1)] if self.reverse else source.ids
        is_leaf = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
        is_leaf[source.last] = source.lengths == 1
        sizes = torch.bincount(source.steps[is_leaf], minlength=1).tolist()
        return ids[is_leaf], sizes

    def gates(self, sources: Sequence[Ids]) -> list[Tensor]:
        """Weights (new, left, right) of all merges of each sentence of T words: (T (T - 1) / 2, 3)"""
        source = pack_source(sources).to(self.layer.leaf.device)
        leaves, sizes = self.leaves(source)
        with torch.no_grad():
            by_row = self.layer.node_gates(self.embedding(leaves), sizes)
        result: list[Tensor] = [leaves.new_zeros(0)] * len(sources)
        for gates, sentence in zip(by_row, source.order.tolist(), strict=True):
            result[sentence] = gates
        return result


Encoder = RNNEncoder | GrConvEncoder
ENCODER_CLASSES: dict[str, type[Encoder]] = {"rnn": RNNEncoder, "birnn": RNNEncoder, "grconv": GrConvEncoder}
