"""Widths that follow from the configuration, and choices that exclude each other."""

import pytest

from nmt.errors import ConfigError
from nmt.layers.cells import GRU, LSTM
from nmt.models.config import ModelConfig, RNNConfig


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
        (RNNConfig(decoder_layers=2, first_word="initial"), "neither attention nor"),
        (RNNConfig(tied="target", embedding=5, maxout=4), "set output_rank .* to 5, found 4"),
        (RNNConfig(tied="all", embedding=4, maxout=4, source_words="characters"), "source_words: table"),
        (RNNConfig(output="sofmax"), "model.output: 'sofmax' is unknown, expected one of 'softmax'"),
        (RNNConfig(dropout=1.0), "model.dropout: 1 is out of range"),
    ],
)
def test_choices_that_exclude_each_other(config: RNNConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.check()
    RNNConfig().check()


def test_the_type_is_the_first_key() -> None:
    assert next(iter(vars(RNNConfig()))) == "type" and RNNConfig().type == ModelConfig().type == "rnn"
