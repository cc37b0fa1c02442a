"""Recurrent language models: p(w | all previous words) by LSTM, gated or Elman layers, or cells of nmt/papers
and of plugins (CONFIGURED_CELLS of nmt/layers/cells.py); words are read from a table or by their spelling.

The first word is predicted from the state after an end symbol: a sentence starts from zeros and </s>, running
text from the state after the previous text.

B sentences or tracks, N words, R rows (hypotheses), H hidden units, S size of a state, V vocabulary.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config.settings import MOST_UNITS, choice, number, setting
from nmt.data.batches import Batch, Ids
from nmt.data.running import TrackChunk
from nmt.errors import ConfigError
from nmt.layers.cells import (
    CONFIGURED_CELLS,
    GRU,
    LSTM,
    Cell,
    CellSettings,
    Elman,
    NormalizedLSTM,
    penalized_parts,
    total_penalty,
)
from nmt.layers.characters import LONGEST, OpenWords, SpellingSizes
from nmt.layers.initialize import initialize
from nmt.layers.output import check_output, make_output
from nmt.layers.output.softmax import Softmax
from nmt.layers.recompute import unroll_in_segments
from nmt.lm.base import (
    NO_FILES,
    Carried,
    FeatureLM,
    Floats,
    LanguageModel,
    LMConfig,
    RunFile,
    trie_scores,
)
from nmt.text.vocab import BOS, EOS, SPECIALS, UNK

# Each makes a layer of H hidden units, with biases, over inputs of size E: (E, H) -> layer
CELLS: dict[str, Callable[[int, int], Cell]] = {
    "lstm": LSTM,
    "gru": partial(GRU, bias=True),
    "elman": Elman,
}


@dataclass
class RecurrentConfig(CellSettings, LMConfig):
    """The keys of `lm` for type recurrent."""

    vector_sides: ClassVar[tuple[str, ...]] = ("target",)
    type: str = "recurrent"
    cell: str = choice(*CELLS, *CONFIGURED_CELLS, help=CONFIGURED_CELLS.explain("recurrent cell"))
    hidden: int = number(512, least=1, most=MOST_UNITS, help="units of a layer")
    depth: int = number(1, least=1, most=1000, help="layers, stacked")
    layer_norm: bool = setting(False, help="layer normalization (Ba et al. 2016) in LSTM layers; slower")
    carry: bool = setting(
        False, help="carry the state from sentence to sentence: for running text, not for translations"
    )
    bptt: int = number(35, least=1, help="with carry: steps that a gradient is propagated back")
    tied: bool = setting(
        False, help="one matrix for embedding and softmax; embedding and hidden have to be equal"
    )
    normalizer: float = number(0.0, least=0, help="weight of (log Z)² in training")
    recompute: int = number(
        0,
        least=0,
        help="gradient checkpointing: this many steps at a time are computed again in the backward pass "
        "instead of being kept, for long texts; slower, less memory. 0: all are kept",
    )

    def check(self) -> None:
        super().check()
        if self.layer_norm and self.cell != "lstm":
            raise ConfigError("lm.layer_norm: only cell: lstm has it; set that, or layer_norm: false")
        configured = CONFIGURED_CELLS.get(self.cell)
        if self.recompute and configured and configured.no_recompute:
            raise ConfigError(f"lm.recompute: cell {self.cell} {configured.no_recompute}; leave recompute 0")
        check_output(self, "lm", self.tied)
        if self.tied and self.embedding != self.hidden:
            raise ConfigError(
                f"lm.tied: needs embedding = hidden, found {self.embedding} and {self.hidden}; make them "
                "equal, or set tied: false"
            )

    @property
    def inputs(self) -> int:
        """Size of the first layer's input."""
        return self.embedding

    def layer(self, inputs: int) -> Cell:
        """Build a recurrent layer over inputs of this size."""
        if self.layer_norm:
            return NormalizedLSTM(inputs, self.hidden)
        if self.cell in CONFIGURED_CELLS:
            return CONFIGURED_CELLS[self.cell](inputs, self.hidden, self)
        return CELLS[self.cell](inputs, self.hidden)


class RecurrentLM(FeatureLM):
    """A recurrent language model. Its state is the concatenation of all layers' states, (R, S)."""

    Config: ClassVar[type[LMConfig]] = RecurrentConfig

    def __init__(
        self, config: RecurrentConfig, vocab_size: int, fill: bool = True, words: nn.Module | None = None
    ) -> None:
        """`words`: the embedding of word ids, by default a table."""
        super().__init__()
        config.check()
        self.carry, self.dropout, self.normalizer = config.carry, config.dropout, config.normalizer
        self.recompute = config.recompute
        self.embedding = words or nn.Embedding(vocab_size, config.embedding)
        self.cells = nn.ModuleList(
            config.layer(config.hidden if number else config.inputs) for number in range(config.depth)
        )
        self.output = make_output(config, config.hidden, vocab_size)
        if config.tied:
            assert isinstance(self.embedding, nn.Embedding)
            self.output.tie(self.embedding)
        self.penalized = penalized_parts(self)
        if fill:
            initialize(self, config.init, config.init_scale)

    @property
    def carries(self) -> bool:
        return self.carry

    @property
    def state_sizes(self) -> list[int]:
        """State size of each layer; they sum to S."""
        return [int(cell.state_size) for cell in self.cells]  # type: ignore[arg-type]

    def zeros(self, rows: int) -> Tensor:
        """States before any word: (R, S)"""
        return next(self.parameters()).new_zeros(rows, sum(self.state_sizes))

    def unroll(self, token_ids: Tensor, sizes: list[int], start: Tensor) -> tuple[Tensor, Tensor]:
        """Read words (N,) from a state (B, S): -> features (N, H), and the state after the last step (R, S)
        without gradient. `sizes`: the number of rows at each step."""
        vectors = self.inputs(token_ids)
        if self.recompute and torch.is_grad_enabled():
            masks = self.masks(vectors)
            features, after = unroll_in_segments(self.layers, vectors, sizes, start, masks, self.recompute)
        else:
            features, after = self.layers(vectors, sizes, start)
        return features, after.detach()

    def layers(
        self, hidden: Tensor, sizes: list[int], start: Tensor, masks: Sequence[Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Like `unroll`, for word vectors (N, E); the state keeps its gradient. `masks`: dropout masks drawn
        beforehand, (N, H) for each layer, empty without dropout; None: dropout is drawn here."""
        after, keep = [], 1 - self.dropout
        starts = torch.split(start, self.state_sizes, 1)
        for layer, (cell, state) in enumerate(zip(self.cells, starts, strict=True)):
            hidden, last = cell.unroll_state(hidden, sizes, state)  # type: ignore[operator]
            if masks is None:
                hidden = self.drop(hidden)
            elif masks:
                hidden = hidden * masks[layer] / keep
            after.append(last)
        return hidden, torch.cat(after, 1)

    def masks(self, vectors: Tensor) -> list[Tensor]:
        """Dropout masks of each layer's outputs, (N, H), as `layers` draws them; empty without dropout."""
        if not (self.training and self.dropout):
            return []
        shapes = [(len(vectors), int(cell.hidden)) for cell in self.cells]  # type: ignore[arg-type]
        return [self.drop(vectors.new_ones(shape)) > 0 for shape in shapes]

    def inputs(self, token_ids: Tensor) -> Tensor:
        """Input of the first layer: (N,) -> (N, E)"""
        return self.drop(self.embedding(token_ids))

    def drop(self, values: Tensor) -> Tensor:
        return F.dropout(values, self.dropout, self.training)

    @property
    def takes_padding(self) -> bool:
        return type(self.output) is Softmax and not self.penalized and not self.recompute

    def read(self, batch: Batch) -> Tensor:
        token_ids = torch.where(batch.previous == BOS, EOS, batch.previous)
        return self.unroll(token_ids, batch.target.sizes, self.zeros(batch.target.sizes[0]))[0]

    def cost(self, batch: Batch | TrackChunk, smoothing: float, carried: Carried) -> tuple[Tensor, Carried]:
        """Σ -log p of the units, with the penalties of `cross_entropy`, and for running text the state after
        it, from which the next chunk continues; gradients stop at the chunk boundary (truncated BPTT).
        `carried`: the state before a chunk that is not `fresh`."""
        if isinstance(batch, Batch):
            return self.loss(batch, smoothing), None
        features, after = self.unroll(
            batch.previous, batch.sizes, self.initial_state(batch, None if batch.fresh else carried)
        )
        return self.cross_entropy(features, batch.ids, smoothing), after

    def cross_entropy(
        self, features: Tensor, ids: Tensor, smoothing: float, counted: Tensor | None = None
    ) -> Tensor:
        """The cost of `SoftmaxLM`, during training plus the penalties of the model's parts."""
        cost = super().cross_entropy(features, ids, smoothing, counted)
        return cost + total_penalty(self.penalized) if self.penalized else cost

    def initial_state(self, chunk: TrackChunk, carried: Carried) -> Tensor:
        """The state before a chunk of running text."""
        return carried if isinstance(carried, Tensor) else self.zeros(chunk.tracks)

    def score_running(self, chunk: TrackChunk, carried: Carried) -> tuple[Tensor, Carried]:
        with torch.no_grad():
            features, after = self.unroll(chunk.previous, chunk.sizes, self.initial_state(chunk, carried))
            return self.output.target_log_probs(features, self.answers(chunk.ids)), after

    def score_sentences(self, texts: Sequence[Ids], ends: bool = True) -> Floats:
        return trie_scores(self, texts, ends, first_word=EOS)

    def start(self, sources: Sequence[Ids]) -> Tensor:
        """The state before a sentence, a row for each source: (R, S). Sources are ignored."""
        return self.zeros(len(sources))

    def advance(self, state: Tensor, token_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Advance each row by one word: (R, S), (R,) -> features (R, H), state (R, S)"""
        hidden, after = self.embedding(token_ids), []
        for cell, part in zip(self.cells, torch.split(state, self.state_sizes, 1), strict=True):
            after.append(cell.step(hidden, part))  # type: ignore[operator]
            hidden = cell.output(after[-1])  # type: ignore[operator]
        return hidden, torch.cat(after, 1)

    def step(self, state: Tensor, token_ids: Tensor | None) -> tuple[Tensor, Tensor]:
        if token_ids is None:
            token_ids = torch.full((len(state),), EOS, device=self.device)
        features, state = self.advance(state, token_ids)
        return self.output.log_probs(features), state


# ---- words read by their spelling --------------------------------------------------------------------------
# The character-aware language model (Kim et al. 2016; Jernite 2018, chapter 2): a recurrent model that reads
# words by their spelling and predicts words.
#
# Characters of a word -> convolutions of several widths -> maximum over the word -> highway layers -> LSTM ->
# softmax over the vocabulary. Outside training, the vectors of all words are computed once, into a table.
# Words outside the vocabulary are read by their spelling, too, but predicted as UNK.


@dataclass
class CharacterConfig(RecurrentConfig):
    """The keys of `lm` for type characters: those of a recurrent model plus the sizes of the convolutions.
    The defaults are the small model of Jernite 2018."""

    vector_sides: ClassVar[tuple[str, ...]] = ()
    type: str = "characters"
    embedding: int = number(
        0, least=0, most=MOST_UNITS, help="size of a word vector; 0: one unit for each filter, no projection"
    )
    init_scale: float = number(0.05, above=0, help="scale of uniform and paper; Jernite 2018 has U(±0.05)")
    hidden: int = number(300, least=1, most=MOST_UNITS, help="units of a layer")
    depth: int = number(2, least=1, most=1000, help="layers, stacked")
    character: int = number(15, least=1, most=MOST_UNITS, help="size of a character's vector")
    widths: list[int] = number(
        [1, 2, 3, 4, 5, 6], least=1, most=LONGEST + 2, help="characters that filters see"
    )
    filters: int = number(25, least=1, most=MOST_UNITS, help="filters of width w: w times as many")
    most_filters: int = number(
        0,
        least=0,
        most=MOST_UNITS,
        help="but at most this many for a width, 200 in the large model; 0: no limit",
    )
    highway: int = number(1, least=0, most=100, help="highway layers")

    def check(self) -> None:
        super().check()
        if not self.widths:
            raise ConfigError("lm.widths: expected one width or more, e.g. [1, 2, 3, 4, 5, 6]")
        if self.tied:
            raise ConfigError("lm.tied: words have no embedding that a softmax could share; set tied: false")

    @property
    def sizes(self) -> SpellingSizes:
        return SpellingSizes(self.character, tuple(self.widths), self.filters, self.most_filters)

    @property
    def inputs(self) -> int:
        return self.embedding or self.sizes.total


class CharacterLM(RecurrentLM):
    """A recurrent language model that reads words by their spelling. Ids from V on are words outside the
    vocabulary, assigned by `spelling_ids`; they are predicted as UNK."""

    Config: ClassVar[type[LMConfig]] = CharacterConfig
    embedding: OpenWords

    @classmethod
    def build(
        cls, config: Any, symbols: Sequence[str], files: Mapping[str, RunFile] = NO_FILES, fill: bool = True
    ) -> Self:
        config.check()
        words = OpenWords(symbols, config.sizes, config.highway, config.embedding)
        return cls(config, len(symbols), fill, words)

    @property
    def takes_padding(self) -> bool:
        return False  # it computes the distinct words of a batch, which are more in one than in another

    def inputs(self, token_ids: Tensor) -> Tensor:
        """The vectors of words, without dropout: (N,) -> (N, E)"""
        vectors: Tensor = self.embedding(token_ids)
        return vectors

    def answers(self, token_ids: Tensor) -> Tensor:
        """Ids to predict: UNK for words outside the vocabulary."""
        return torch.where(token_ids < self.embedding.vocab_size, token_ids, UNK)

    def spelling_ids(self, words: Sequence[str], token_ids: Sequence[int]) -> list[int]:
        unknown = [
            number == UNK and word not in SPECIALS for word, number in zip(words, token_ids, strict=True)
        ]
        more = iter(self.embedding.numbers([word for word, new in zip(words, unknown, strict=True) if new]))
        return [next(more) if new else number for new, number in zip(unknown, token_ids, strict=True)]

    @torch.no_grad()
    def filter_vectors(self, token_ids: Tensor) -> Tensor:
        """Outputs of the convolutions, before the highway layers: (T,) -> (T, filters)"""
        return self.embedding.maxima(self.embedding.spelling[token_ids])

    def score_sentences(self, texts: Sequence[Ids], ends: bool = True) -> Floats:
        """Natural log p of each text, (texts,), through a trie if all words are in the vocabulary."""
        if any(max(text, default=0) >= self.embedding.vocab_size for text in texts):
            return LanguageModel.score_sentences(self, texts, ends)
        return super().score_sentences(texts, ends)
