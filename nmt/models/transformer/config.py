"""The configuration of `model.type: transformer`."""

from dataclasses import dataclass

from nmt.errors import ConfigError
from nmt.layers.output import OutputSettings, check_output
from nmt.layers.transformer_config import TransformerSizes
from nmt.models.config import ModelConfig
from nmt.settings import MOST_UNITS, choice, number


@dataclass
class TransformerConfig(TransformerSizes, OutputSettings, ModelConfig):
    """The Transformer. Defaults are the base model of Vaswani et al. 2017; its embeddings are tied on both
    sides, which needs one vocabulary for both."""

    type: str = "transformer"
    encoder_layers: int = number(6, least=1, most=1000, help="layers of the encoder")
    decoder_layers: int = number(6, least=1, most=1000, help="layers of the decoder")
    attention_layer: int = number(
        0,
        least=0,
        most=1000,
        help="decoder layer, from 1, whose attention to the source is shown in maps and replaces unknown "
        "words, mean of its heads; 0: the last but one, which aligns best (Garg et al. 2019)",
    )
    attention_heads: int = number(
        0,
        least=0,
        most=MOST_UNITS,
        help="heads of that layer, from its first, whose mean is shown and learns guided alignment; 0: all. "
        "With 1 the others stay free (Garg et al. 2019)",
    )
    tied: str = choice(
        "target",
        "none",
        "all",
        help="target: the output matrix is the target embeddings; all: the source embeddings too",
    )

    def check(self) -> None:
        """ConfigError for a value out of its range, and for values that do not go together."""
        super().check()
        self.check_sizes("model.")
        check_output(self, "model", self.tied != "none")
        if self.attention_layer > self.decoder_layers:
            raise ConfigError(
                f"model.attention_layer: {self.attention_layer} is above model.decoder_layers, "
                f"{self.decoder_layers}"
            )
        if self.attention_heads > self.heads:
            raise ConfigError(
                f"model.attention_heads: {self.attention_heads} is above model.heads, {self.heads}"
            )

    @property
    def attends(self) -> bool:
        return True

    @property
    def vector_sides(self) -> tuple[str, ...]:
        return "source", "target"

    @property
    def shown_layer(self) -> int:
        """The layer of `attention_layer`, from 0."""
        return (self.attention_layer or max(1, self.decoder_layers - 1)) - 1
