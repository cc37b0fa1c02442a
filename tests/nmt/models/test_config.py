"""Widths that follow from the configuration, and choices that exclude each other."""

import pytest

from nmt.errors import ConfigError
from nmt.layers.cells import GRU, LSTM
from nmt.models.config import ModelConfig, RNNConfig
from nmt.models.joint import JointConfig
from nmt.models.transformer import TransformerConfig


@pytest.mark.parametrize(
    ("config", "context", "summary"),
    [
        (RNNConfig(hidden=6), 6, 6),
        (RNNConfig(hidden=6, encoder_hidden=4), 4, 4),
        (RNNConfig(hidden=6, encoder="birnn"), 12, 12),
        (RNNConfig(hidden=6, encoder="birnn", attention=3), 12, 6),  # starts from the backward state
    ],
)
def test_widths(config: RNNConfig, context: int, summary: int) -> None:
    assert (config.context, config.summary_size) == (context, summary)


def test_cells() -> None:
    assert isinstance(RNNConfig(cell="lstm").cell_of(3, 4), LSTM)
    cell = RNNConfig(gate="take_new", reset="after", bias=True).cell_of(3, 4)
    assert isinstance(cell, GRU) and (cell.gate, cell.reset) == ("take_new", "after")
    assert cell.bias is not None


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (RNNConfig(cell="lstm", gate="take_new"), "belong to cell gru"),
        (RNNConfig(encoder="grconv", attention=3), "one vector a sentence"),
        (RNNConfig(attention=3, summary="tanh"), "does not have"),
        (RNNConfig(decoder_layers=2, first_word="initial"), "excludes attention and more"),
        (RNNConfig(tied="target", embedding=5, maxout=4), "set output_rank .* to 5, found 4"),
        (RNNConfig(tied="all", embedding=4, maxout=4, source_words="characters"), "source_words: table"),
        (RNNConfig(output="sofmax"), "model.output: 'sofmax' is unknown, expected one of 'softmax'"),
        (RNNConfig(dropout=1.0), "model.dropout: 1 is out of range"),
        (TransformerConfig(heads=3), r"model\.heads: 3 heads do not divide model\.embedding, 512"),
        (TransformerConfig(norm="both"), r"model\.norm: 'both' is unknown, expected one of 'post', 'pre'"),
        (TransformerConfig(positions="rotary"), r"expected one of 'sinusoidal', 'learned', 'none'"),
        (TransformerConfig(attention_layer=7), r"attention_layer: 7 is above model\.decoder_layers, 6"),
        (TransformerConfig(output="sofmax"), r"model\.output: 'sofmax' is unknown"),
        (TransformerConfig(attention_dropout=1.0), "range"),
        (JointConfig(window=4), r"^model\.window: 4 is even"),
        (JointConfig(layers=[]), r"^model\.layers: expected"),
        (JointConfig(layers=[0]), r"^model\.layers"),
        (JointConfig(output="none"), r"^model\.output: 'none' is unknown"),
        (JointConfig(affiliation="word"), r"^model\.affiliation"),
        (JointConfig(direction="backwards"), r"^model\.direction"),
        (RNNConfig(cell="gur"), "expected one of 'gru', 'lstm'"),
        (RNNConfig(hidden=0), "out of range, expected 1 to 1000000"),
        (RNNConfig(cell="vcgru", gate="take_new"), "belong to cell gru"),
    ],
)
def test_what_makes_no_model_is_refused(config: ModelConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.check()
    RNNConfig().check()


def test_the_type_is_the_first_key() -> None:
    assert next(iter(vars(RNNConfig()))) == "type" and RNNConfig().type == ModelConfig().type == "rnn"
