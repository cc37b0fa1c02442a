"""How hypotheses of different lengths are compared."""

import pytest

from nmt.errors import ConfigError
from nmt.search import penalties


def test_by_hand() -> None:
    assert penalties.length(-6.0, 3) == -2.0
    assert penalties.none(-6.0, 3) == -6.0
    assert penalties.gnmt(-6.0, 1) == -6.0
    assert penalties.gnmt(-6.0, 7) == pytest.approx(-6.0 / 2**0.6)


@pytest.mark.parametrize("name", penalties.NORMALIZE)
def test_of_two_of_one_length_the_likelier_wins(name: str) -> None:
    score = penalties.by_name(name)
    assert all(score(-1.0, n) > score(-2.0, n) for n in (1, 5, 100))


def test_the_stronger_the_normalization_the_better_a_long_hypothesis() -> None:
    gains = [penalties.by_name(name)(-8.0, 8) - penalties.by_name(name)(-4.0, 4) for name in ("none", "gnmt")]
    assert gains[0] < gains[1] < penalties.length(-8.0, 8) - penalties.length(-4.0, 4) == 0


def test_unknown_name() -> None:
    with pytest.raises(ConfigError, match="'x' is unknown, expected one of length, none, gnmt"):
        penalties.by_name("x")
