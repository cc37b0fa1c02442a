"""Configurations from the options of parametrized tests."""

from collections.abc import Mapping

from nmt.models.config import RNNConfig


def with_options(config: RNNConfig, options: Mapping[str, object]) -> RNNConfig:
    """The configuration with some of its values replaced."""
    for name, value in options.items():
        assert hasattr(config, name), name
        setattr(config, name, value)
    return config
