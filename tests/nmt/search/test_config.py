"""Limits of length: factors of the source, bounds in words, and which wins."""

import pytest

from nmt.errors import ConfigError
from nmt.search.config import BeamConfig, SamplingConfig


def test_factors_round_up_and_leave_room_for_a_word() -> None:
    config = BeamConfig(max_length_factor=1.5, min_length_factor=0.5)
    assert [(config.shortest(n), config.longest(n)) for n in (0, 1, 3, 10)] == [
        (0, 1),
        (1, 2),
        (2, 5),
        (5, 15),
    ]


def test_bounds_in_words_win_over_factors() -> None:
    assert BeamConfig(max_length=4).longest(100) == 4
    assert BeamConfig(min_length=4, max_length_factor=1.0).longest(1) == 4
    assert BeamConfig(max_length=4, min_length_factor=1.0).shortest(100) == 4


@pytest.mark.parametrize("words", [0, 1, 7, 50])
@pytest.mark.parametrize(
    "config",
    [
        BeamConfig(),
        BeamConfig(min_length=9, max_length=9),
        BeamConfig(min_length_factor=2, max_length_factor=2),
        BeamConfig(min_length=3, max_length_factor=0.1),
        BeamConfig(max_length=2, min_length_factor=3),
    ],
)
def test_there_is_always_a_length_that_is_allowed(config: BeamConfig, words: int) -> None:
    config.check()
    assert 0 <= config.shortest(words) <= config.longest(words) >= 1


def test_out_of_range() -> None:
    with pytest.raises(ConfigError, match="beam_size: 0 is out of range"):
        BeamConfig(beam_size=0).check()
    with pytest.raises(ConfigError, match="temperature"):
        SamplingConfig(temperature=0).check()
