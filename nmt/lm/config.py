"""What kind of language model a run trains, and its sizes."""

from dataclasses import dataclass

from nmt import settings
from nmt.errors import ConfigError
from nmt.layers.cells import GRU, LSTM
from nmt.layers.normalized import NormalizedLSTM
from nmt.lm.dictionary import REMOVALS
from nmt.settings import choice, number

CELLS = {"lstm": LSTM, "gru": GRU}
WIDEST = (
    1_000_000  # units; a matrix of so many rows and columns is beyond any memory, but still a number of bytes
)


@dataclass
class LMConfig:
    type: str = choice(
        "", "cslm", "recurrent", "multiscale"
    )  # feed-forward n-gram model, or LSTM over tokens of several symbols; empty: see `model`
    embedding: int = number(512, least=1, most=WIDEST)  # size of a word's vector
    order: int = number(7, least=2, most=1000)  # cslm: words of an n-gram, the predicted one among them
    layers: list[int] = number(
        [1536, 1024], least=1, most=WIDEST
    )  # cslm: hidden layers (section 4.4.1); one of them with tanh is section 2.2.1
    activation: str = choice("relu", "tanh")  # cslm
    cell: str = choice(*CELLS)  # recurrent
    hidden: int = number(512, least=1, most=WIDEST)  # recurrent, multiscale: units of a layer
    depth: int = number(1, least=1, most=1000)  # recurrent: layers, one above the other
    layer_norm: bool = False  # recurrent: layer normalization (Ba et al. 2016) in LSTM layers; slower
    # recurrent, multiscale: the state goes on from sentence to sentence: for running text, not for
    # translations
    carry: bool = False
    bptt: int = number(35, least=1)  # with carry: steps that a gradient goes back
    dictionary: int = number(2048, least=1)  # multiscale: tokens, single symbols among them
    removals: str = choice(
        *REMOVALS
    )  # multiscale: which rare tokens the dictionary drops, see nmt/lm/dictionary.py
    tied: bool = False  # recurrent: one matrix for embedding and softmax; embedding has to be hidden
    dropout: float = number(
        0.0, least=0, below=1
    )  # on embeddings and layers' outputs, never on recurrent links
    normalizer: float = number(
        0.0, least=0
    )  # weight of (log Z)²; 0.1 makes scores log p themselves, which --assume-normalized needs
    init: str = choice("uniform", "paper", "glorot")  # paper: normal
    init_scale: float = number(
        0.01, above=0
    )  # of uniform and normal; the paper's CSLM is U(±0.01), recurrent models want 0.1

    def check(self) -> None:
        """ConfigError for a value out of range, and for values that do not go together."""
        settings.check(self, "lm.")
        if not self.layers:
            raise ConfigError("lm.layers: expected one size or more, each 1 or more, e.g. [1536, 1024]")
        if self.layer_norm and self.cell != "lstm":
            raise ConfigError("lm.layer_norm: only cell: lstm has it")
        if self.type == "multiscale" and (
            self.depth > 1 or self.cell != "lstm" or self.layer_norm or self.tied or self.normalizer
        ):
            raise ConfigError(
                "lm.type: multiscale is one plain LSTM layer; depth, cell, layer_norm, tied and normalizer "
                "are not for it"
            )
        if self.tied and self.embedding != self.hidden:
            raise ConfigError(f"lm.tied: needs embedding = hidden, found {self.embedding} and {self.hidden}")

    def layer(self, inputs: int) -> "GRU | LSTM | NormalizedLSTM":
        """A recurrent layer over inputs of this size."""
        return (
            NormalizedLSTM(inputs, self.hidden)
            if self.layer_norm
            else CELLS[self.cell](inputs, self.hidden, bias=True)
        )
