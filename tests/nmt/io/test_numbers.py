"""Numbers that a user or a file gives: digits of ASCII, finite, bounded; all else is a ValueError, at
once."""

import random
from collections.abc import Callable

import pytest

from nmt.io import numbers

BAD = [
    "", " 1", "1 ", "1\n", "²", "١٢", "1_000", "nan", "inf", "-inf", "0x10", "1e", "e5", ".", "--1",
    "1.2.3", "9" * 5000, "\0", "½",
]  # fmt: skip


@pytest.mark.parametrize("parse", [numbers.integer, numbers.count, numbers.real])
@pytest.mark.parametrize("text", BAD, ids=lambda text: ascii(text)[:12])
def test_what_is_no_number_is_refused(parse: Callable[[str], float], text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a|too large") as error:
        parse(text)
    assert len(str(error.value)) < 100
    with pytest.raises(ValueError, match=r"is not a|too large"):
        numbers.reals(["1", text])


def test_kinds() -> None:
    assert (numbers.integer("-12"), numbers.integer("+7"), numbers.count("007")) == (-12, 7, 7)
    assert (numbers.real("-1.5e3"), numbers.real(".5"), numbers.real("5.")) == (-1500.0, 0.5, 5.0)
    for parse, text in (
        (numbers.count, "-1"),
        (numbers.count, "+1"),
        (numbers.integer, "1.0"),
        (numbers.integer, str(2**63)),
        (numbers.real, "1e999"),
    ):
        with pytest.raises(ValueError, match=r"is not a|too large"):
            parse(text)
    assert numbers.integer(str(2**63 - 1)) == numbers.LARGEST


def test_many_at_once_are_each_of_them() -> None:
    rng = random.Random(1)
    words = [rng.choice(["%d", "%.3f", "%g", "%e"]) % rng.uniform(-1e6, 1e6) for _ in range(200)]
    assert numbers.reals(words) == [numbers.real(word) for word in words] == [float(word) for word in words]


def test_messages_bear_any_token() -> None:
    assert len(numbers.shown("x" * 10**6)) < 60 and numbers.shown(b"\xff") == repr("\\xff")
