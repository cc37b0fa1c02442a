"""The section `model` of a Transformer."""

import pytest

from nmt.errors import ConfigError
from nmt.models.transformer.config import TransformerConfig


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (TransformerConfig(heads=3), r"model\.heads: 3 heads do not divide model\.embedding, 512"),
        (TransformerConfig(norm="both"), r"model\.norm: 'both' is unknown, expected one of 'post', 'pre'"),
        (TransformerConfig(positions="rotary"), r"expected one of 'sinusoidal', 'learned', 'none'"),
        (TransformerConfig(attention_layer=7), r"attention_layer: 7 is above model\.decoder_layers, 6"),
        (TransformerConfig(output="sofmax"), r"model\.output: 'sofmax' is unknown"),
        (TransformerConfig(attention_dropout=1.0), "range"),
    ],
)
def test_bad_values_are_refused(config: TransformerConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.check()


@pytest.mark.parametrize(
    ("given", "layers", "shown"), [(0, 6, 4), (0, 2, 0), (0, 1, 0), (3, 6, 2), (6, 6, 5)]
)
def test_the_layer_whose_attention_is_shown(given: int, layers: int, shown: int) -> None:
    config = TransformerConfig(attention_layer=given, decoder_layers=layers)
    config.check()
    assert config.shown_layer == shown
