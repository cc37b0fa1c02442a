"""The bounds of a translation's length; scales of several lists."""

import pytest

from nmt.errors import ConfigError
from nmt.search.config import BeamConfig, MBRConfig, SamplingConfig


def test_bounds_of_length() -> None:
    config = BeamConfig(max_length_factor=1.5, min_length_factor=0.5, max_length=10, min_length=2)
    assert [config.longest(words) for words in (0, 1, 3, 20)] == [2, 2, 5, 10]
    assert [config.shortest(words) for words in (0, 1, 3, 30)] == [2, 2, 2, 10]
    assert BeamConfig().longest(0) == 1  # a sentence of no words may get one


def test_a_minimum_above_its_maximum_is_refused() -> None:
    with pytest.raises(ConfigError, match="the minimum 4 is above the maximum 3"):
        BeamConfig(min_length_factor=4.0).check()
    with pytest.raises(ConfigError, match="the minimum 6 is above the maximum 5"):
        BeamConfig(min_length=6, max_length=5).check()
    BeamConfig(min_length=6).check()  # a maximum of 0 is none


def test_values_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="temperature"):
        SamplingConfig(temperature=0.0).check()


def test_scales_of_lists() -> None:
    assert MBRConfig("bleu", [2.0]).of_lists(3) == [2, 2, 2] and MBRConfig().of_lists(1) == [1]
    assert MBRConfig("bleu", [2.0, 3.0]).of_lists(2) == [2, 3]
    with pytest.raises(ConfigError, match=r"^2 values of --mbr-scale, expected 1, or 3: one for each list$"):
        MBRConfig("bleu", [2.0, 3.0]).of_lists(3)
    with pytest.raises(ConfigError, match=r"^2 values of --mbr-scale, but there is 1 list of totals$"):
        MBRConfig("bleu", [2.0, 3.0]).of_lists(1)
