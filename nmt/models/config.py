"""The base class of the section `model` of a run's configuration, and its settings for type rnn."""

from dataclasses import dataclass
from typing import ClassVar

from nmt.config import settings
from nmt.config.settings import MOST_UNITS, choice, number, setting
from nmt.errors import ConfigError
from nmt.layers.cells import CONFIGURED_CELLS, GATES, GRU, LSTM, RESETS, Cell, CellSettings
from nmt.layers.output import OutputSettings, check_output

# What a model is trained on: sentence pairs, pairs with their word alignment, or plain text.
PAIRS, ALIGNED_PAIRS, TEXT = "pairs", "aligned pairs", "text"


@dataclass
class ModelConfig:
    """Settings common to all translation models. Each type of model adds its own keys in a subclass."""

    noun: ClassVar[str] = "a translator"  # how messages name the model
    remedy: ClassVar[str] = ""  # where a translator is expected: what to do with this model instead
    reads: ClassVar[str] = PAIRS  # PAIRS, ALIGNED_PAIRS or TEXT: what it is trained on
    translates: ClassVar[bool] = True
    type: str = setting(
        "rnn", help="which translation model; the other keys of this section are those of the model"
    )

    def check(self) -> None:
        """ConfigError for a value out of its range. Subclasses also refuse values that exclude each other."""
        settings.check(self, "model.")

    @property
    def attends(self) -> bool:
        """Whether the model has an attention that guided alignment can train."""
        return False

    @property
    def vector_sides(self) -> tuple[str, ...]:
        """The sides (`source`, `target`) that have a table of word vectors of size `embedding`, which
        `word_embedding` of the model returns."""
        return ()


@dataclass
class RNNConfig(CellSettings, OutputSettings, ModelConfig):
    """The RNN encoder-decoder. Defaults are those of RNNenc (Cho et al. 2014b); Cho et al. 2014a use
    embedding 100 and output_rank 100."""

    encoder: str = choice(
        "rnn",
        "birnn",
        "grconv",
        help="birnn reads in both directions; grconv is the gated recursive convolution (Cho et al. 2014b)",
    )
    cell: str = choice(
        "gru",
        "lstm",
        *CONFIGURED_CELLS,
        help=CONFIGURED_CELLS.explain("recurrent unit; gru is van Merriënboer 2018, eqs. 4.5-4.8"),
    )
    embedding: int = number(620, least=1, most=MOST_UNITS, help="size of a word's vector")
    source_words: str = choice(
        "table",
        "characters",
        help="source word vectors: a table, or computed from the spelling (CNN and highway)",
    )
    hidden: int = number(1000, least=1, most=MOST_UNITS, help="units of encoder and decoder")
    encoder_hidden: int = number(
        0,
        least=0,
        most=MOST_UNITS,
        help="units of the encoder, for each direction; 0: as hidden. The grconv of Cho et al. 2014b has "
        "2000",
    )
    encoder_layers: int = number(1, least=1, most=1000, help="layers of the encoder")
    decoder_layers: int = number(1, least=1, most=1000, help="layers of the decoder")
    attention: int = number(
        0,
        least=0,
        most=MOST_UNITS,
        help="units of the additive attention (RNNsearch); 0: none, c is one vector",
    )
    reverse: bool = setting(
        False, help="read the source from its last word to its first (Sutskever et al. 2014)"
    )
    maxout: int = number(
        500, least=1, most=MOST_UNITS, help="maxout units below the output layer, each the larger of two sums"
    )
    output_rank: int = number(0, least=0, most=MOST_UNITS, help="rank of the output matrix; 0: not factored")
    tied: str = choice(
        "none",
        "target",
        "all",
        help="target: the output matrix is the target embeddings; all: the source embeddings too",
    )
    dropout: float = number(
        0.0,
        least=0,
        below=1,
        help="share of values set to 0 in training, on embeddings, between layers and on maxout units, not "
        "on recurrent connections; Cho et al. 2014a and 2014b use none",
    )
    bias: bool = setting(
        False, help="add biases: the equations of Cho et al. 2014a have none, their code has some"
    )
    init: str = choice(
        "paper",
        "glorot",
        "uniform",
        help="paper: N(0, init_scale²), as Cho et al. 2014a; uniform: U(±init_scale); glorot: by the size of "
        "each matrix; recurrent matrices are always orthogonal",
    )
    init_scale: float = number(0.01, least=0, help="scale of the initial parameters")
    gate: str = choice(
        *GATES,
        help="what the update gate z does to the old state: keep_old (Cho et al. 2014a), take_new "
        "(their code)",
    )
    reset: str = choice(
        *RESETS,
        help="reset gate before U (Cho et al. 2014a), after it, or after_with_context: on U h + C c (the "
        "supplement of Cho et al. 2014a)",
    )
    summary: str = choice(
        "state",
        "tanh",
        help="c is the last encoder state (Cho et al. 2014a), or tanh(V h) (the supplement of Cho et al. "
        "2014a)",
    )
    first_word: str = choice(
        "step",
        "initial",
        help="y_1 is read off h_1 = f(h_0, -, c) (Cho et al. 2014a), or off h_0 itself (their code)",
    )

    def check(self) -> None:
        super().check()
        check_output(self, "model", self.tied != "none")
        if self.cell != "gru" and (self.gate != "keep_old" or self.reset != "before"):
            raise ConfigError(
                f"model.gate and model.reset belong to cell gru, {self.cell} has neither; remove them, or "
                "set cell: gru"
            )
        if self.encoder == "grconv" and (self.attention or self.encoder_layers > 1):
            raise ConfigError(
                "model.encoder: grconv gives one vector a sentence, which excludes attention and several "
                "encoder layers; set attention: 0 and encoder_layers: 1"
            )
        if self.attention and self.summary == "tanh":
            raise ConfigError(
                "model.summary: tanh computes the vector c, which a model with attention does not have; set "
                "summary: state"
            )
        if (self.attention or self.decoder_layers > 1) and self.first_word == "initial":
            raise ConfigError(
                "model.first_word: initial excludes attention and more than one decoder layer; set "
                "first_word: step"
            )
        if self.tied != "none" and self.embedding != (self.output_rank or self.maxout):
            raise ConfigError(
                f"model.tied: {self.tied} needs an output matrix as wide as the embeddings: set output_rank "
                f"(or maxout) to {self.embedding}, found {self.output_rank or self.maxout}"
            )
        if self.tied == "all" and self.source_words != "table":
            raise ConfigError("model.tied: all needs source_words: table; set that, or tied: target")

    @property
    def attends(self) -> bool:
        return self.attention > 0

    @property
    def vector_sides(self) -> tuple[str, ...]:
        return ("source", "target") if self.source_words == "table" else ("target",)

    @property
    def encoder_units(self) -> int:
        """Units of the encoder in one direction."""
        return self.encoder_hidden or self.hidden

    @property
    def context(self) -> int:
        """Width of the context that the decoder reads at a step: c, or the weighted mean of annotations."""
        return self.encoder_units * (2 if self.encoder == "birnn" else 1)

    @property
    def summary_size(self) -> int:
        """Width of the vector that initializes the decoder."""
        return self.encoder_units if self.attention else self.context

    def make_cell(self, inputs: int, hidden: int, context: int = 0) -> Cell:
        """Create the recurrent layer that `cell` names. `inputs`, `hidden`, `context`: widths of its inputs,
        its output and the context that it reads; 0 = no context."""
        if self.cell == "lstm":
            return LSTM(inputs, hidden, context)
        if self.cell in CONFIGURED_CELLS:
            return CONFIGURED_CELLS[self.cell](inputs, hidden, self, context)
        return GRU(inputs, hidden, context, self.bias, self.gate, self.reset)


def check_one_vocabulary(source_size: int, target_size: int) -> None:
    """ConfigError unless both vocabularies have the same size, so that the sides can share word vectors."""
    if source_size != target_size:
        raise ConfigError("model.tied: all needs one vocabulary for both sides: set data.shared_vocabulary")
