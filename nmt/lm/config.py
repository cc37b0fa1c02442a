"""What kind of language model a run trains, and its sizes."""

from dataclasses import dataclass, field

from nmt.errors import ConfigError
from nmt.layers.cells import GRU, LSTM
from nmt.layers.normalized import NormalizedLSTM
from nmt.lm.dictionary import REMOVALS

TYPES = ("cslm", "recurrent", "multiscale")
CELLS = {"lstm": LSTM, "gru": GRU}


@dataclass
class LMConfig:
    type: str = ""  # cslm: feed-forward n-gram model | recurrent | multiscale: LSTM over tokens of several symbols; empty: a translator, see `model`
    embedding: int = 512  # size of a word's vector
    order: int = 7  # cslm: words of an n-gram, the predicted one among them
    layers: list[int] = field(default_factory=lambda: [1536, 1024])  # cslm: hidden layers (section 4.4.1); one of them with tanh is section 2.2.1
    activation: str = "relu"  # cslm: relu | tanh
    cell: str = "lstm"  # recurrent: lstm | gru
    hidden: int = 512  # recurrent, multiscale: units of a layer
    depth: int = 1  # recurrent: layers, one above the other
    layer_norm: bool = False  # recurrent: layer normalization (Ba et al. 2016) in LSTM layers; slower
    carry: bool = False  # recurrent, multiscale: the state goes on from sentence to sentence: for running text, not for translations
    bptt: int = 35  # with carry: steps that a gradient goes back
    dictionary: int = 2048  # multiscale: tokens, single symbols among them
    removals: str = "parts"  # multiscale: which rare tokens the dictionary drops: parts | all | none, see nmt/lm/dictionary.py
    tied: bool = False  # recurrent: one matrix for embedding and softmax; embedding has to be hidden
    dropout: float = 0.0  # on embeddings and layers' outputs, never on recurrent links
    normalizer: float = 0.0  # weight of (log Z)²; 0.1 makes scores log p themselves, which --assume-normalized needs
    init: str = "uniform"  # uniform | paper: normal | glorot
    init_scale: float = 0.01  # of uniform and normal; the paper's CSLM is U(±0.01), recurrent models want 0.1

    def check(self) -> None:
        """ConfigError for a value out of range."""
        choices = {"type": TYPES, "activation": ("relu", "tanh"), "cell": tuple(CELLS), "removals": REMOVALS, "init": ("uniform", "paper", "glorot")}
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                raise ConfigError(f"lm.{key}: {getattr(self, key)!r} is unknown, expected one of {', '.join(allowed)}")
        for key in ("embedding", "hidden", "depth", "bptt", "dictionary"):
            if getattr(self, key) < 1:
                raise ConfigError(f"lm.{key}: {getattr(self, key)} is too small, expected 1 or more")
        if self.order < 2:
            raise ConfigError(f"lm.order: {self.order} is too small, expected 2 or more")
        if not self.layers or min(self.layers) < 1:
            raise ConfigError("lm.layers: expected one size or more, each 1 or more, e.g. [1536, 1024]")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"lm.dropout: {self.dropout} is out of range, expected 0 <= dropout < 1")
        if self.normalizer < 0:
            raise ConfigError(f"lm.normalizer: {self.normalizer} is negative")
        if self.init_scale <= 0:
            raise ConfigError(f"lm.init_scale: {self.init_scale} is too small, expected more than 0")
        if self.layer_norm and self.cell != "lstm":
            raise ConfigError("lm.layer_norm: only cell: lstm has it")
        if self.type == "multiscale" and (self.depth > 1 or self.cell != "lstm" or self.layer_norm or self.tied or self.normalizer):
            raise ConfigError("lm.type: multiscale is one plain LSTM layer; depth, cell, layer_norm, tied and normalizer are not for it")
        if self.tied and self.embedding != self.hidden:
            raise ConfigError(f"lm.tied: needs embedding = hidden, found {self.embedding} and {self.hidden}")

    def layer(self, inputs: int) -> "GRU | LSTM | NormalizedLSTM":
        """A recurrent layer over inputs of this size."""
        return NormalizedLSTM(inputs, self.hidden) if self.layer_norm else CELLS[self.cell](inputs, self.hidden, bias=True)
