"""The configuration of a translator: which encoder, which decoder, of what sizes."""

from dataclasses import dataclass

from nmt.errors import ConfigError
from nmt.layers.cells import GATES, GRU, LSTM, RESETS, Cell

ENCODERS = ("rnn", "birnn", "grconv")
CELLS = ("gru", "lstm")
TIED = ("none", "target", "all")
WORDS = ("table", "characters")


@dataclass
class ModelConfig:
    """Defaults are chapter 6 of the document (RNNenc); chapter 4 uses embedding 100, output_rank 100."""

    encoder: str = "rnn"  # rnn | birnn: both directions | grconv: gated recursive convolution (section 6.2.2)
    cell: str = "gru"  # gru (eqs. 4.5-4.8) | lstm
    embedding: int = 620  # the rank of the input matrices
    source_words: str = "table"  # a vector for each word of a table | characters: made from its spelling (CNN and highway)
    hidden: int = 1000  # units of encoder and decoder
    encoder_hidden: int = 0  # units of the encoder, of each of two directions; 0: as hidden. The papers' grconv has 2000
    encoder_layers: int = 1
    decoder_layers: int = 1
    attention: int = 0  # units of the additive attention (RNNsearch); 0: none, c is one vector
    reverse: bool = False  # the source is read from its last word to its first (Sutskever et al. 2014)
    maxout: int = 500  # maxout units of the output layer, each the larger of two sums
    output_rank: int = 0  # rank of the output matrix; 0: not factored
    tied: str = "none"  # target: the output matrix is the target embeddings; all: the source embeddings too
    dropout: float = 0.0  # on embeddings, between layers and on maxout units, never on recurrent links; the papers use none
    bias: bool = False  # the document prints no biases; the authors' code has some
    init: str = "paper"  # paper: N(0, init_scale²) | uniform: U(±init_scale) | glorot; recurrent matrices always orthogonal
    init_scale: float = 0.01
    gate: str = "keep_old"  # what the update gate z does with the old state: keep_old (document) | take_new (authors' code)
    reset: str = "before"  # reset gate before U (document), after it, or after_with_context: on U h + C c (supplement)
    summary: str = "state"  # c is the last encoder state (document) | tanh: tanh(V h) (supplement)
    first_word: str = "step"  # y_1 is read off h_1 = f(h_0, -, c) (document) | initial: off h_0 itself (authors' code)

    def check(self) -> None:
        """ConfigError for a value outside its choices, and for choices that exclude each other."""
        choices = {
            "encoder": ENCODERS,
            "cell": CELLS,
            "source_words": WORDS,
            "tied": TIED,
            "init": ("paper", "glorot", "uniform"),
            "gate": GATES,
            "reset": RESETS,
            "summary": ("state", "tanh"),
            "first_word": ("step", "initial"),
        }
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                raise ConfigError(f"model.{key}: {getattr(self, key)!r} is unknown, expected one of {', '.join(allowed)}")
        for key in ("embedding", "hidden", "maxout", "encoder_layers", "decoder_layers"):
            if getattr(self, key) < 1:
                raise ConfigError(f"model.{key}: {getattr(self, key)} is too small, expected 1 or more")
        for key in ("encoder_hidden", "attention", "output_rank"):
            if getattr(self, key) < 0:
                raise ConfigError(f"model.{key}: {getattr(self, key)} is negative, expected 0 or more")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"model.dropout: {self.dropout} is out of range, expected 0 <= dropout < 1")
        if self.cell == "lstm" and (self.gate != "keep_old" or self.reset != "before"):
            raise ConfigError("model.gate and model.reset belong to cell gru; an lstm has neither")
        if self.encoder == "grconv" and (self.attention or self.encoder_layers > 1):
            raise ConfigError("model.encoder: grconv gives one vector a sentence, so neither attention nor encoder_layers go with it")
        if self.attention and self.summary == "tanh":
            raise ConfigError("model.summary: tanh is of the vector c, which a model with attention does not have")
        if (self.attention or self.decoder_layers > 1) and self.first_word == "initial":
            raise ConfigError("model.first_word: initial goes with neither attention nor decoder_layers above 1")
        if self.tied != "none" and self.embedding != (self.output_rank or self.maxout):
            raise ConfigError(
                f"model.tied: {self.tied} needs an output matrix as wide as the embeddings: set output_rank (or maxout) to {self.embedding}, "
                f"found {self.output_rank or self.maxout}"
            )
        if self.tied == "all" and self.source_words != "table":
            raise ConfigError("model.tied: all needs source_words: table")

    @property
    def encoder_units(self) -> int:
        return self.encoder_hidden or self.hidden

    @property
    def context(self) -> int:
        """Width of what the decoder sees of the source at each step: c, or the weighted mean of the annotations."""
        return self.encoder_units * (2 if self.encoder == "birnn" else 1)

    @property
    def summary_size(self) -> int:
        """Width of the vector that the decoder starts from."""
        return self.encoder_units if self.attention else self.context

    def cell_of(self, inputs: int, hidden: int, context: int = 0) -> Cell:
        if self.cell == "lstm":
            return LSTM(inputs, hidden, context)
        return GRU(inputs, hidden, context, self.bias, self.gate, self.reset)
