"""The settings that encoder-decoders and language models made of attention have in common."""

from dataclasses import dataclass

from nmt.errors import ConfigError
from nmt.layers.positions import POSITIONS
from nmt.settings import MOST_UNITS, choice, name_in, number, setting


@dataclass
class TransformerSizes:
    """Keys of `model` and of `lm`. Defaults are the base model of Vaswani et al. 2017."""

    embedding: int = number(
        512, least=1, most=MOST_UNITS, help="size of a word's vector and of the output of every layer"
    )
    feed_forward: int = number(
        2048, least=1, most=MOST_UNITS, help="units of the two-layer network at each word (ReLU)"
    )
    heads: int = number(8, least=1, most=MOST_UNITS, help="heads of each attention; they divide `embedding`")
    norm: str = choice(
        "post",
        "pre",
        help="layer normalization: of the sum x + f(x) (the paper), or of the input, x + f(norm(x)), which "
        "trains more stably",
    )
    positions: str = name_in(
        POSITIONS,
        help="how words know their place: sines and cosines (the paper), a learned vector each, none",
    )
    longest: int = number(
        512,
        least=1,
        most=MOST_UNITS,
        help="positions: learned; places that have a vector of their own, later ones share the last",
    )
    dropout: float = number(0.1, least=0, below=1, help="on embeddings and on the output of each sub-layer")
    attention_dropout: float = number(0.1, least=0, below=1, help="on attention weights")
    feed_forward_dropout: float = number(
        0.1, least=0, below=1, help="on the units of the feed-forward networks"
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
        if self.positions == "sinusoidal" and self.embedding % 2:
            raise ConfigError(
                f"{prefix}positions: sinusoidal needs an even {prefix}embedding, found {self.embedding}"
            )
