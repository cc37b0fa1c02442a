"""Encoder, decoder and language model of Vaswani et al. 2017: word vectors, and layers of attention and
feed-forward networks above them.

N words of a batch, in packed order; R hypotheses; D width of every layer; F feed-forward units.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.layers.affine import Affine
from nmt.layers.attention import Memory
from nmt.layers.dropout import dropout
from nmt.layers.grids import Grid, SideBySide, WordGrid
from nmt.layers.multihead import SelfAttention, SourceAttention
from nmt.layers.past import Past
from nmt.layers.positions import POSITIONS
from nmt.layers.recompute import recomputed
from nmt.layers.transformer_config import TransformerSizes

Part = Callable[[Tensor], Tensor]  # what a sub-layer computes: (rows, D) -> (rows, D)


class WordVectors(nn.Embedding):
    """Word vectors that are multiplied by √D. They start at N(0, 1/D), so that as an output matrix they
    give scores of variance 1."""

    def after_initialize(self) -> None:
        """Set what `initialize` drew."""
        self.weight.normal_(0, self.embedding_dim**-0.5)

    @property
    def scale(self) -> float:
        """What the rows are multiplied by, √D."""
        return math.sqrt(self.embedding_dim)

    def forward(self, input: Tensor) -> Tensor:
        """(N,) -> (N, D)"""
        return super().forward(input) * self.scale


class FeedForward(nn.Module):
    """W_2 ReLU(W_1 x + b_1) + b_2 at each word."""

    def __init__(self, sizes: TransformerSizes) -> None:
        super().__init__()
        self.inner = Affine(sizes.embedding, sizes.feed_forward)
        self.outer = Affine(sizes.feed_forward, sizes.embedding)
        self.dropout = sizes.feed_forward_dropout

    def forward(self, x: Tensor) -> Tensor:
        """(N, D) -> (N, D)"""
        y: Tensor = self.outer(dropout(torch.relu(self.inner(x)), self.dropout, self.training))
        return y


class Residual(nn.Module):
    """norm(x + f(x)), or with norm: pre x + f(norm(x))."""

    def __init__(self, sizes: TransformerSizes) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(sizes.embedding)
        self.pre, self.dropout = sizes.norm == "pre", sizes.dropout

    def forward(self, x: Tensor, part: Part) -> Tensor:
        """(N, D) -> (N, D)"""
        y = x + dropout(part(self.norm(x) if self.pre else x), self.dropout, self.training)
        return y if self.pre else self.norm(y)


class Layer(nn.Module):
    """Self-attention, in a decoder attention to the source, and the feed-forward network."""

    def __init__(self, sizes: TransformerSizes, sees_source: bool) -> None:
        super().__init__()
        make = sizes.embedding, sizes.heads, sizes.attention_dropout
        self.attention, self.attended = SelfAttention(*make), Residual(sizes)
        self.source = SourceAttention(*make) if sees_source else None
        self.sourced = Residual(sizes) if sees_source else None
        self.feed_forward, self.fed = FeedForward(sizes), Residual(sizes)

    def forward(self, x: Tensor, own: Part, source: Part | None = None) -> Tensor:
        """(N, D) -> (N, D). `own`: the self-attention, over whole sentences or a step of it; `source`: the
        attention to the source."""
        x = self.attended(x, own)
        if source is not None:
            assert self.sourced is not None
            x = self.sourced(x, source)
        y: Tensor = self.fed(x, self.feed_forward)
        return y


class Shown(NamedTuple):
    """Which attention to the source stands for all: that of a layer, the mean of its first heads."""

    layer: int = -1  # none
    heads: int = 0  # 0: all


NOTHING = Shown()


@dataclass
class Look:
    """How the layers of a decoder look at the source, and the weights of the one that is shown."""

    grid: Grid | None
    memory: Sequence[Memory]
    shown: Shown
    weights: Tensor | None = None  # (rows, L)

    def __call__(self, x: Tensor, layer: Layer, number: int) -> Tensor:
        """(rows, D) -> (rows, D)"""
        assert layer.source is not None and self.grid is not None
        if number == self.shown.layer:
            self.weights = layer.source.weights(x, self.grid, self.memory[number], self.shown.heads)
        seen: Tensor = layer.source(x, self.grid, self.memory[number])
        return seen


class Stack(nn.Module):
    """Word vectors, their places, and layers: an encoder; with `causal` a language model, whose words do not
    see later ones; with `sees_source` too, a decoder."""

    def __init__(
        self, sizes: TransformerSizes, layers: int, vocab_size: int, causal: bool, sees_source: bool = False
    ) -> None:
        super().__init__()
        self.embedding = WordVectors(vocab_size, sizes.embedding)
        self.positions = POSITIONS[sizes.positions](sizes.embedding, sizes.longest)
        self.layers = nn.ModuleList(Layer(sizes, sees_source) for _ in range(layers))
        self.norm = nn.LayerNorm(sizes.embedding) if sizes.norm == "pre" else None
        self.causal, self.heads, self.dropout = causal, sizes.heads, sizes.dropout
        self.recompute = sizes.recompute

    @property
    def blocks(self) -> list[Layer]:
        """The layers, the lowest first."""
        return list(self.layers)  # type: ignore[arg-type]

    def embed(self, token_ids: Tensor, places: Tensor) -> Tensor:
        """(N,), (N,) -> (N, D)"""
        x = self.embedding(token_ids) + self.positions(places)
        return dropout(x, self.dropout, self.training)

    def memory(self, states: Tensor, grid: WordGrid) -> list[Memory]:
        """The encoded source as each layer looks at it."""
        return [layer.source.memory(states, grid) for layer in self.blocks if layer.source is not None]

    def forward(self, token_ids: Tensor, grid: WordGrid, memory: Sequence[Memory] = ()) -> Tensor:
        """Packed words as the topmost layer represents them: (N,) -> (N, D)"""
        return self.attended(token_ids, grid, memory, NOTHING)[0]

    def attended(
        self, token_ids: Tensor, grid: WordGrid, memory: Sequence[Memory], shown: Shown
    ) -> tuple[Tensor, Tensor | None]:
        """As `forward`, and the attention to the source that is shown: (N, L)"""
        x = self.embed(token_ids, grid.steps)
        look = Look(grid, memory, shown)
        again = self.recompute and torch.is_grad_enabled()
        for number in range(len(self.layers)):
            compute = partial(self.layer, number, grid, look)
            x = recomputed(compute, x) if again and number != shown.layer else compute(x)
        return x if self.norm is None else self.norm(x), look.weights

    def layer(self, number: int, grid: WordGrid, look: Look, x: Tensor) -> Tensor:
        """One layer over whole sentences: (N, D) -> (N, D)"""
        layer = self.blocks[number]
        own = partial(layer.attention, grid=grid, causal=self.causal)
        source = partial(look, layer=layer, number=number) if look.memory and layer.source else None
        y: Tensor = layer(x, own, source)
        return y

    def advance(
        self,
        past: Past,
        token_ids: Tensor,
        rows: SideBySide | None = None,
        memory: Sequence[Memory] = (),
        shown: Shown = NOTHING,
    ) -> tuple[Tensor, Past, Tensor | None]:
        """One word for each hypothesis, without gradient: (R,) -> (R, D), what has been read then, and the
        attention to the source that is shown, (R, L)."""
        x = self.embed(token_ids, past.lengths)
        reading = past.reading(len(self.blocks), self.heads, 2 * len(self.blocks) * x.shape[1], x)
        look = Look(rows, memory, shown)
        for number, layer in enumerate(self.blocks):
            x = layer(
                x,
                lambda y, layer=layer, number=number: layer.attention.step(y, reading, number),
                (lambda y, layer=layer, number=number: look(y, layer, number)) if memory else None,
            )
        features = x if self.norm is None else self.norm(x)
        return features, reading.after(), look.weights
