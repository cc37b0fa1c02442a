"""The bounds of a translation's length; scales of several lists. How banks share a beam."""

import math
import random

import pytest

from nmt.errors import ConfigError
from nmt.search import config
from nmt.search.config import ALLOCATIONS, BeamConfig, MBRConfig, SamplingConfig

# ---- test config -------------------------------------------------------------------------------------------


def test_bounds_of_length() -> None:
    config = BeamConfig(max_length_factor=1.5, min_length_factor=0.5, max_length=10, min_length=2)
    assert [config.longest(words) for words in (0, 1, 3, 20)] == [2, 2, 5, 10]
    assert [config.shortest(words) for words in (0, 1, 3, 30)] == [2, 2, 2, 10]
    assert BeamConfig().longest(0) == 1  # a sentence of no words may get one


@pytest.mark.parametrize(
    ("config", "cause"),
    [
        (BeamConfig(min_length_factor=4.0), "the minimum 4 is above the maximum 3"),
        (BeamConfig(min_length=6, max_length=5), "the minimum 6 is above the maximum 5"),
        (BeamConfig(max_length_factor=1, min_length_factor=2), "the minimum 2 is above the maximum 1"),
        (BeamConfig(beam_size=0), "beam_size"),
        (BeamConfig(beam_size=10**9), "beam_size"),
        (BeamConfig(normalize="x"), "normalize"),
        (BeamConfig(max_length=-1), "max_length"),
        (BeamConfig(max_length_factor=math.nan), "max_length_factor"),
        (BeamConfig(max_length_factor=0), "max_length_factor"),
        (BeamConfig(min_length_factor=-1), "min_length_factor"),
        (SamplingConfig(samples=0), "samples"),
        (SamplingConfig(temperature=0.0), "temperature"),
        (SamplingConfig(temperature=math.nan), "temperature"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(config: BeamConfig | SamplingConfig, cause: str) -> None:
    with pytest.raises(ConfigError, match=cause):
        config.check()
    BeamConfig(min_length=6).check()  # a maximum of 0 is none


def test_scales_of_lists() -> None:
    assert MBRConfig("bleu", [2.0]).list_scales(3) == [2, 2, 2] and MBRConfig().list_scales(1) == [1]
    assert MBRConfig("bleu", [2.0, 3.0]).list_scales(2) == [2, 3]
    with pytest.raises(ConfigError, match=r"^2 values of --mbr-scale, expected 1, or 3: one for each list$"):
        MBRConfig("bleu", [2.0, 3.0]).list_scales(3)
    with pytest.raises(ConfigError, match=r"^2 values of --mbr-scale, but there is 1 list of totals$"):
        MBRConfig("bleu", [2.0, 3.0]).list_scales(1)


# ---- test penalties ----------------------------------------------------------------------------------------
# How lengths are compared.


def test_length_makes_repetitions_equal() -> None:
    """Twice the words at twice the cost rank alike by length, and lower without it."""
    assert config.by_length(-6.0, 4) == config.by_length(-3.0, 2)
    assert config.unnormalized(-6.0, 4) < config.unnormalized(-3.0, 2)


def test_gnmt_lies_between_none_and_length() -> None:
    """How much a doubled hypothesis gains on a short one: none, some, all."""
    gains = [rank(-6.0, 4) / rank(-3.0, 2) for rank in config.NORMALIZE.values()]
    length, none, gnmt = gains
    assert length < gnmt < none
    assert config.by_gnmt(-2.0, 1) == -2.0


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="'lenght' is unknown, expected one of length, none, gnmt"):
        config.length_normalizer("lenght")


@pytest.mark.parametrize(
    ("width", "available", "sizes"),
    [
        (10, [5, 5, 5], [3, 3, 4]),  # alike; the highest has what remains
        (10, [9, 1, 0], [9, 1, 0]),  # what a bank cannot use goes below
        (10, [1, 1, 9], [1, 1, 8]),  # or above
        (3, [4, 4, 4, 4, 4], [1, 0, 0, 1, 1]),  # too many banks: the lowest goes on
        (1, [4, 4], [0, 1]),
        (4, [0, 0, 2], [0, 0, 2]),
        (4, [0, 0], [0, 0]),
        (3, [3], [3]),
    ],
)
def test_dynamic_by_hand(width: int, available: list[int], sizes: list[int]) -> None:
    assert ALLOCATIONS["dynamic"].sizes(width, available) == sizes


def test_no_slot_is_wasted() -> None:
    rng = random.Random(1)
    for _ in range(500):
        width, available = rng.randint(1, 12), [rng.choice((0, 0, 1, 2, 9)) for _ in range(rng.randint(1, 8))]
        sizes = ALLOCATIONS["dynamic"].sizes(width, available)
        assert sum(sizes) == min(width, sum(available))
        assert all(0 <= size <= count for size, count in zip(sizes, available, strict=True))


def test_each_row_of_a_grid_has_a_beam() -> None:
    grid = ALLOCATIONS["grid"]
    assert grid.sizes(3, [5, 0, 2]) == [3, 0, 2] and grid.per_row(3) == 3


@pytest.mark.parametrize(
    ("words", "on_gpu", "rows"),
    [
        (1_000, False, 400),
        (30_000, False, 104),
        (10**6, False, 50),
        (10_000, True, 5120),
        (100_000, True, 1342),
    ],
)
def test_live_hypotheses_suit_the_vocabulary(words: int, on_gpu: bool, rows: int) -> None:
    """Scores of 12 MiB on the CPU, 512 MiB on a GPU, within bounds; a setting stays."""
    assert BeamConfig().fitted(words, on_gpu).rows == rows
    assert BeamConfig(rows=7).fitted(words, on_gpu).rows == 7
