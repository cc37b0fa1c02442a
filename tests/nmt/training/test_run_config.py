"""Keys of a configuration that may differ when a run is resumed: they are there, and reach their value."""

import pytest

from nmt.training.run_config import FREE, RunConfig, value_of


@pytest.mark.parametrize("key", sorted(FREE))
def test_free_keys_are_keys(key: str) -> None:
    value_of(RunConfig(), key)


def test_a_dotted_key() -> None:
    config = RunConfig(seed=7)
    config.data.source.language = "de"
    assert value_of(config, "seed") == 7 and value_of(config, "data.source.language") == "de"
    assert value_of(config, "training") is config.training
    with pytest.raises(AttributeError):
        value_of(config, "data.sauce")
