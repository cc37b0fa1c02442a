"""Sizes that do not go together are refused."""

import pytest

from nmt.errors import ConfigError
from nmt.layers.transformer_config import TransformerSizes


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (TransformerSizes(embedding=10, heads=4), r"lm\.heads: 4 heads do not divide lm\.embedding, 10"),
        (TransformerSizes(embedding=9, heads=3), r"lm\.positions: sinusoidal needs an even lm\.embedding"),
    ],
)
def test_sizes(sizes: TransformerSizes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        sizes.check_sizes("lm.")


def test_sizes_that_fit() -> None:
    TransformerSizes().check_sizes("model.")
    TransformerSizes(embedding=9, heads=3, positions="learned").check_sizes("model.")
