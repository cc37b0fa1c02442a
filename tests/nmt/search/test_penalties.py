"""How lengths are compared."""

import pytest

from nmt.errors import ConfigError
from nmt.search import penalties


def test_length_makes_repetitions_equal() -> None:
    """Twice the words at twice the cost rank alike by length, and lower without it."""
    assert penalties.length(-6.0, 4) == penalties.length(-3.0, 2)
    assert penalties.none(-6.0, 4) < penalties.none(-3.0, 2)


def test_gnmt_lies_between_none_and_length() -> None:
    """How much a doubled hypothesis gains on a short one: none, some, all."""
    gains = [rank(-6.0, 4) / rank(-3.0, 2) for rank in penalties.NORMALIZE.values()]
    length, none, gnmt = gains
    assert length < gnmt < none
    assert penalties.gnmt(-2.0, 1) == -2.0


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="'lenght' is unknown, expected one of length, none, gnmt"):
        penalties.by_name("lenght")
