"""The parts of a Transformer (Vaswani et al. 2017), which translators and language models are built of: word
and position vectors, attention, feed-forward networks, and stacks of layers.

N words of a batch, in packed order; R hypotheses; D width of every layer; F feed-forward units.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config.settings import MOST_UNITS, choice, name_in, number, setting
from nmt.errors import ConfigError
from nmt.layers.attention import AttentionMemory, WordGrid
from nmt.layers.key_values import CacheStep, SourceStep
from nmt.layers.recompute import recompute

# ---- positions ---------------------------------------------------------------------------------------------
# Position vectors tell the words of a sentence apart: vectors added to word vectors (Vaswani et al.
# 2017, section 3.5).
#
# N words, R rows (hypotheses), D width.


SINUSOIDS = 256  # sinusoids computed in advance; those of longer sentences when they are needed


def sinusoids(count: int, size: int, device: torch.device | None = None) -> Tensor:
    """Position vectors 0 to count - 1, (count, D): column 2i is sin(position / 10000^(2i / D)), column 2i + 1
    the cosine. `device`: where they are computed, by default on the CPU."""
    positions = torch.arange(count, dtype=torch.float64, device=device)[:, None]
    rates = 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64, device=device) / size)
    return torch.stack([torch.sin(positions * rates), torch.cos(positions * rates)], 2).view(count, size)


def split_sinusoids(count: int, size: int, device: torch.device | None = None) -> Tensor:
    """The columns of `sinusoids` in another order, (count, D): all sines, then all cosines."""
    table = sinusoids(count, size, device)
    return torch.cat([table[:, 0::2], table[:, 1::2]], 1)


class SinusoidalPositions(nn.Module):
    """Sines and cosines of D / 2 wavelengths."""

    cached: Tensor  # (SINUSOIDS, D)
    table = staticmethod(sinusoids)  # (count, D, device) -> position vectors

    def __init__(self, size: int, longest: int) -> None:
        """`longest` is not used: there is a vector for every position."""
        super().__init__()
        self.size = size
        self.register_buffer("cached", self.table(SINUSOIDS, size).float(), persistent=False)
        self.longer = self.cached  # on the CPU: as many as the longest sentence needed

    def forward(self, positions: Tensor, count: int = 0) -> Tensor:
        """Look up the vectors of positions, computing those beyond the table: (N,) -> (N, D). `count`: all
        positions are below it; 0: the largest is looked up, for which a GPU is waited for."""
        if not count:
            count = int(positions.max()) + 1 if len(positions) else 0
        table = self.cached
        if count > len(table):
            table = self.longer_table(count, positions.device).to(table)
        return table.index_select(0, positions)

    def longer_table(self, count: int, device: torch.device) -> Tensor:
        """At least the vectors below `count`, (count or more, D), computed on `device`."""
        if device.type != "cpu":  # computed there: a CUDA graph cannot be recorded while the CPU copies
            return self.table(count, self.size, device)
        if count > len(self.longer):  # twice as many: each step of a search needs one more
            self.longer = self.table(2 * count, self.size).to(self.cached)
        return self.longer


class SplitSinusoidalPositions(SinusoidalPositions):
    """All sines before all cosines, as in Marian (Junczys-Dowmunt et al. 2018)."""

    table = staticmethod(split_sinusoids)


class LearnedPositions(nn.Module):
    """A parameter for each of the first `longest` positions; later positions share the last one."""

    def __init__(self, size: int, longest: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(longest, size))

    def forward(self, positions: Tensor, count: int = 0) -> Tensor:
        """Look up the vectors of positions: (N,) -> (N, D). `count` is ignored."""
        return self.weight.index_select(0, positions.clamp(max=len(self.weight) - 1))


class NoPositions(nn.Module):
    """No position vectors: an encoder then reads a bag of words."""

    def __init__(self, size: int, longest: int) -> None:
        super().__init__()

    def forward(self, positions: Tensor, count: int = 0) -> Tensor:
        """Zero at every position: (N,) -> ()"""
        return torch.zeros((), device=positions.device)


POSITIONS: dict[str, type[SinusoidalPositions] | type[LearnedPositions] | type[NoPositions]] = {
    "sinusoidal": SinusoidalPositions,
    "learned": LearnedPositions,
    "none": NoPositions,
    "sinusoidal-split": SplitSinusoidalPositions,
}


# ---- dropout -----------------------------------------------------------------------------------------------
# Dropout, six times as fast as torch's on the CPU: 16 random bits for each number.


DROPOUT_STEPS = 1 << 16  # of the share that is dropped


def dropout(x: Tensor, share: float, training: bool) -> Tensor:
    """Set each number to 0 with probability `share`, on the CPU rounded to a multiple of 1 / 65536, and
    divide the others by the probability of being kept. Outside of training x is returned unchanged."""
    if not training or not share:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, share, training)
    dropped = min(round(share * DROPOUT_STEPS), DROPOUT_STEPS - 1)
    # torch draws 64 bits at a time; its own dropout draws and compares floats one by one.
    bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None).view(torch.int16)
    mask = bits[: x.numel()].view(x.shape) >= dropped - DROPOUT_STEPS // 2
    return x * mask.to(x.dtype).mul_(DROPOUT_STEPS / (DROPOUT_STEPS - dropped))


class Affine(nn.Module):
    """x Wᵀ + b. Unlike `nn.Linear` it draws no initial values, which `initialize` would replace."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)"""
        return F.linear(x, self.weight, self.bias)


# ---- multihead ---------------------------------------------------------------------------------------------
# Multi-head attention (Vaswani et al. 2017): softmax(Q Kᵀ / √d) V in h heads of d = D / h columns each.
#
# N words of a batch, R rows, S sentences of L words to attend to, D width, h heads.


def split_heads(values: Tensor, heads: int) -> Tensor:
    """(S, W, D) -> (S, h, W, d)"""
    S, W, _ = values.shape
    return values.view(S, W, heads, -1).transpose(1, 2)


def merge_heads(values: Tensor) -> Tensor:
    """(S, h, W, d) -> (S, W, D)"""
    return values.transpose(1, 2).flatten(2)


def attention_weights(query: Tensor, keys: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
    """softmax(Q Kᵀ / √d): (S, h, W, d), (S, h, L, d) -> (S, h, W, L). `mask`: added before the softmax;
    `causal`: no query attends to a later key."""
    energies = query @ keys.transpose(2, 3) / math.sqrt(query.shape[3])
    if causal:
        later = torch.ones(energies.shape[2:], dtype=torch.bool, device=energies.device).triu(1)
        energies = energies.masked_fill(later, -torch.inf)
    return torch.softmax(energies if mask is None else energies + mask, 3)


def attend(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, share: float, causal: bool = False
) -> Tensor:
    """softmax(Q Kᵀ / √d) V: queries (S, h, W, d), keys and values (S, h, L, d) -> (S, h, W, d). `share`: the
    probability of dropping a weight, which on the CPU does not use torch's kernel, since it is slower then;
    `mask`: added before the softmax; `causal`: no query attends to a later key."""
    if share and query.device.type == "cpu":
        return dropout(attention_weights(query, keys, mask, causal), share, True) @ values
    return F.scaled_dot_product_attention(query, keys, values, mask, share, is_causal=causal)


class SelfAttention(nn.Module):
    """Attention of words to the words of their own sentence."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.inputs = Affine(size, 3 * size)  # queries, keys, values
        self.outputs = Affine(size, size)

    def forward(self, x: Tensor, grid: WordGrid, causal: bool) -> Tensor:
        """(N, D) -> (N, D). `causal`: no word attends to a later one."""
        query, keys, values = (split_heads(part, self.heads) for part in grid.pad(self.inputs(x)).chunk(3, 2))
        # Past the end of a sentence there are only words that a causal mask hides anyway.
        mask = None if causal or grid.mask is None else grid.mask[:, None, None]
        share = self.dropout if self.training else 0.0
        seen = attend(query, keys, values, mask, share, causal)
        mixed: Tensor = self.outputs(grid.unpad(merge_heads(seen)))
        return mixed

    def step(self, x: Tensor, step: CacheStep, layer: int) -> Tensor:
        """One word for each of R hypotheses: (R, D) -> (R, D)"""
        mixed: Tensor = self.outputs(step.attend(layer, self.inputs(x)))
        return mixed


class SourceAttention(nn.Module):
    """Attention of words to the words of another sentence."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = Affine(size, size)
        self.pairs = Affine(size, 2 * size)  # keys, values
        self.outputs = Affine(size, size)

    def memory(self, states: Tensor, grid: WordGrid) -> AttentionMemory:
        """Keys and values (S, L, D) of packed words (N, D) for attention."""
        keys, values = grid.pad(self.pairs(states)).chunk(2, 2)
        mask = keys.new_zeros(grid.shape) if grid.mask is None else grid.mask
        return AttentionMemory(keys=keys, values=values, mask=mask)

    def forward(self, x: Tensor, grid: WordGrid, memory: AttentionMemory) -> Tensor:
        """(rows, D) -> (rows, D): sentence i of the grid attends to sentence i of the memory."""
        query, keys, values = self.parts(x, grid, memory)
        share = self.dropout if self.training else 0.0
        seen = attend(query, keys, values, memory.mask[:, None, None], share)
        mixed: Tensor = self.outputs(grid.unpad(merge_heads(seen)))
        return mixed

    def weights(self, x: Tensor, grid: WordGrid, memory: AttentionMemory, heads: int = 0) -> Tensor:
        """The attention weights before dropout, mean over `heads`, 0: all: (rows, D) -> (rows, L)"""
        query, keys, _ = self.parts(x, grid, memory)
        if heads:
            query, keys = query[:, :heads], keys[:, :heads]
        return grid.unpad(attention_weights(query, keys, memory.mask[:, None, None]).mean(1))

    def step(self, x: Tensor, step: SourceStep, layer: int) -> Tensor:
        """One word for each of R hypotheses: (R, D) -> (R, D)"""
        mixed: Tensor = self.outputs(step.attend(layer, self.query(x)))
        return mixed

    def parts(self, x: Tensor, grid: WordGrid, memory: AttentionMemory) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (S, h, W, d), keys and values (S, h, L, d)"""
        query = split_heads(grid.pad(self.query(x)), self.heads)
        return query, split_heads(memory.keys, self.heads), split_heads(memory.values, self.heads)


# ---- transformer config ------------------------------------------------------------------------------------
# The settings that encoder-decoders and language models made of attention have in common.


@dataclass
class TransformerSizes:
    """Keys of `model` and of `lm`. Defaults are the base model of Vaswani et al. 2017."""

    embedding: int = number(
        512, least=1, most=MOST_UNITS, help="size of a word's vector and of the output of every layer"
    )
    feed_forward: int = number(
        2048, least=1, most=MOST_UNITS, help="units of the two-layer network at each word"
    )
    activation: str = choice(
        "relu",
        "gelu",
        "swish",
        help="function of these units: ReLU (Vaswani et al. 2017), x Φ(x) (Hendrycks and Gimpel 2016), or "
        "x sigmoid(x) (Ramachandran et al. 2017), which many models of Marian have",
    )
    heads: int = number(8, least=1, most=MOST_UNITS, help="heads of each attention; they divide `embedding`")
    norm: str = choice(
        "post",
        "pre",
        help="layer normalization: of the sum x + f(x) (Vaswani et al. 2017), or of the input, x + "
        "f(norm(x)), which trains more stably",
    )
    positions: str = name_in(
        POSITIONS,
        help="position vectors: sines and cosines (Vaswani et al. 2017), a learned vector each, none; "
        "sinusoidal-split: all sines before all cosines (Junczys-Dowmunt et al. 2018)",
    )
    longest: int = number(
        512,
        least=1,
        most=MOST_UNITS,
        help="positions: learned; positions that have a vector of their own, later ones share the last",
    )
    dropout: float = number(
        0.1,
        least=0,
        below=1,
        help="share of values set to 0 in training, on embeddings and on the output of each sub-layer",
    )
    attention_dropout: float = number(0.1, least=0, below=1, help="the same on attention weights")
    feed_forward_dropout: float = number(
        0.1, least=0, below=1, help="the same on the units of the feed-forward networks"
    )
    recompute: bool = setting(
        False,
        help="gradient checkpointing: layers are computed again in the backward pass instead of being kept; "
        "less memory, more time, the same gradients",
    )

    def check_sizes(self, prefix: str) -> None:
        """ConfigError for sizes that do not go together. `prefix`: `model.` or `lm.`"""
        if self.embedding % self.heads:
            raise ConfigError(
                f"{prefix}heads: {self.heads} heads do not divide {prefix}embedding, {self.embedding}; "
                "choose a divisor"
            )
        if self.positions.startswith("sinusoidal") and self.embedding % 2:
            raise ConfigError(
                f"{prefix}positions: {self.positions} needs an even {prefix}embedding, found "
                f"{self.embedding}; make it even, or set positions: learned"
            )


# ---- transformer -------------------------------------------------------------------------------------------


Part = Callable[[Tensor], Tensor]  # what a sub-layer computes: (rows, D) -> (rows, D)


class ScaledEmbedding(nn.Embedding):
    """Word vectors that are multiplied by √D. They start at N(0, 1/D), so that as an output matrix they
    give scores of variance 1."""

    def after_initialize(self) -> None:
        """Draw the weights again, from N(0, 1/D)."""
        self.weight.normal_(0, self.embedding_dim**-0.5)

    @property
    def scale(self) -> float:
        """Factor of the rows, √D."""
        return math.sqrt(self.embedding_dim)

    def forward(self, input: Tensor) -> Tensor:
        """Look up vectors and scale them by √D: (N,) -> (N, D)"""
        return super().forward(input) * self.scale


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "gelu": F.gelu, "swish": F.silu}


class FeedForward(nn.Module):
    """W_2 f(W_1 x + b_1) + b_2 at each word; f is ReLU or another of ACTIVATIONS."""

    def __init__(self, sizes: TransformerSizes) -> None:
        super().__init__()
        self.inner = Affine(sizes.embedding, sizes.feed_forward)
        self.outer = Affine(sizes.feed_forward, sizes.embedding)
        self.activate, self.dropout = ACTIVATIONS[sizes.activation], sizes.feed_forward_dropout

    def forward(self, x: Tensor) -> Tensor:
        """(N, D) -> (N, D)"""
        y: Tensor = self.outer(dropout(self.activate(self.inner(x)), self.dropout, self.training))
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


class WeightSelection(NamedTuple):
    """Selects the attention weights to report: those of one layer, averaged over its first heads."""

    layer: int = -1  # none
    heads: int = 0  # 0: all


NO_WEIGHTS = WeightSelection()


@dataclass
class LayerwiseAttention:
    """The attention to the source in each layer of a decoder; keeps the weights that `shown` selects."""

    grid: WordGrid
    memory: Sequence[AttentionMemory]
    shown: WeightSelection
    weights: Tensor | None = None  # (rows, L)

    def __call__(self, x: Tensor, layer: Layer, index: int) -> Tensor:
        """(rows, D) -> (rows, D)"""
        assert layer.source is not None
        if index == self.shown.layer:
            self.weights = layer.source.weights(x, self.grid, self.memory[index], self.shown.heads)
        seen: Tensor = layer.source(x, self.grid, self.memory[index])
        return seen


class Stack(nn.Module):
    """Word vectors, position vectors and layers: an encoder; with `causal` a language model, whose words do
    not attend to later ones; with `sees_source` too, a decoder."""

    def __init__(
        self, sizes: TransformerSizes, layers: int, vocab_size: int, causal: bool, sees_source: bool = False
    ) -> None:
        super().__init__()
        self.embedding = ScaledEmbedding(vocab_size, sizes.embedding)
        self.positions = POSITIONS[sizes.positions](sizes.embedding, sizes.longest)
        self.layers = nn.ModuleList(Layer(sizes, sees_source) for _ in range(layers))
        self.norm = nn.LayerNorm(sizes.embedding) if sizes.norm == "pre" else None
        self.causal, self.heads, self.dropout = causal, sizes.heads, sizes.dropout
        self.recompute, self.activation = sizes.recompute, sizes.activation

    @property
    def blocks(self) -> list[Layer]:
        """The layers, the lowest first."""
        return list(self.layers)  # type: ignore[arg-type]

    def embed(self, token_ids: Tensor, positions: Tensor, count: int = 0) -> Tensor:
        """(N,), (N,) -> (N, D). `count`: all positions are below it; 0: unknown."""
        x = self.embedding(token_ids) + self.positions(positions, count)
        return dropout(x, self.dropout, self.training)

    def memory(self, states: Tensor, grid: WordGrid) -> list[AttentionMemory]:
        """Keys and values of the encoded source for each layer, from its states (N, D) and their layout."""
        return [layer.source.memory(states, grid) for layer in self.blocks if layer.source is not None]

    def forward(self, token_ids: Tensor, grid: WordGrid, memory: Sequence[AttentionMemory] = ()) -> Tensor:
        """States of packed words in the topmost layer: (N,) -> (N, D)"""
        return self.attended(token_ids, grid, memory, NO_WEIGHTS)[0]

    def attended(
        self, token_ids: Tensor, grid: WordGrid, memory: Sequence[AttentionMemory], shown: WeightSelection
    ) -> tuple[Tensor, Tensor | None]:
        """Run `forward` and also return the attention weights that `shown` selects: (N, L)"""
        x = self.embed(token_ids, grid.steps, grid.shape[1])
        to_source = LayerwiseAttention(grid, memory, shown)
        again = self.recompute and torch.is_grad_enabled()
        for index in range(len(self.layers)):
            compute = partial(self.layer, index, grid, to_source)
            x = recompute(compute, x) if again and index != shown.layer else compute(x)
        return x if self.norm is None else self.norm(x), to_source.weights

    def layer(self, index: int, grid: WordGrid, to_source: LayerwiseAttention, x: Tensor) -> Tensor:
        """One layer over whole sentences: (N, D) -> (N, D)"""
        layer = self.blocks[index]
        own = partial(layer.attention, grid=grid, causal=self.causal)
        source = partial(to_source, layer=layer, index=index) if to_source.memory and layer.source else None
        y: Tensor = layer(x, own, source)
        return y

    @property
    def step_sizes(self) -> tuple[int, int, Tensor]:
        """Layers, heads, and a tensor like the word vectors, which a cache needs to begin a step."""
        return len(self.blocks), self.heads, self.embedding.weight

    def advance(self, step: CacheStep, token_ids: Tensor, source: SourceStep | None = None) -> Tensor:
        """Read one word for each hypothesis, without gradient: (R,) -> (R, D). `source`: its attention."""
        x = self.embed(token_ids, step.lengths)
        for index, layer in enumerate(self.blocks):
            own = partial(layer.attention.step, step=step, layer=index)
            to_source = None
            if layer.source is not None and source is not None:
                to_source = partial(layer.source.step, step=source, layer=index)
            x = layer(x, own, to_source)
        return x if self.norm is None else self.norm(x)
