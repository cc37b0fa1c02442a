"""Settings of a decoder: what is asked for, else what the ini says, else what Moses does."""

from dataclasses import fields

import pytest

from nmt.errors import ConfigError
from smt_bridge.decoder.config import BY_NAME, DecoderConfig, SearchSettings, search_settings

OTHERS = {
    "stack": (7, 0), "table_limit": (3, 0), "distortion_limit": (4, 0), "beam_threshold": (0.5, 0.0),
    "max_phrase_length": (5, 6), "nbest_factor": (9, 0), "early_distortion_cost": (True, False),
    "drop_unknown": (True, False), "mark_unknown": (True, False), "xml_input": ("exclusive", "ignore"),
    "xml_brackets": (("{", "}"), ("[", "]")),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_the_option_before_the_ini_before_moses(name: str) -> None:
    """An option of 0, or false, is an option too."""
    ini, asked = OTHERS[name]
    default = SearchSettings()
    assert search_settings(DecoderConfig(), {}) == default
    for config, sections, expected in (
        (DecoderConfig(), {name: ini}, ini),
        (DecoderConfig(**{name: asked}), {name: ini}, asked),  # type: ignore[arg-type]
        (DecoderConfig(**{name: asked}), {}, asked),  # type: ignore[arg-type]
    ):
        found = search_settings(config, sections)
        assert getattr(found, name) == expected
        assert all(getattr(found, other) == getattr(default, other) for other in BY_NAME if other != name)


def test_every_option_of_the_search_is_unset_at_first() -> None:
    """Else an ini could never set it."""
    config = DecoderConfig()
    shared = [item.name for item in fields(DecoderConfig) if item.name in BY_NAME]
    assert sorted(shared) == sorted(OTHERS) and all(getattr(config, name) is None for name in shared)


@pytest.mark.parametrize(
    ("name", "value"),
    [("stack", -1), ("beam_threshold", 1.5), ("max_phrase_length", 0), ("nbest", -1), ("buffer", 0)],
)
def test_out_of_range(name: str, value: float) -> None:
    DecoderConfig().check()
    option = "--" + name.replace("_", "-")
    with pytest.raises(ConfigError, match=f"^{option}: {value} is out of range"):
        DecoderConfig(**{name: value}).check()  # type: ignore[arg-type]
