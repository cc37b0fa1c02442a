"""Ranges that stand beside the defaults."""

import math
from dataclasses import dataclass, field

import pytest

from nmt.config import settings
from nmt.config.settings import Range, choice, number, setting
from nmt.errors import ConfigError


@dataclass
class Inner:
    rate: float = number(0.5, above=0, below=1)


@dataclass
class Outer:
    beam: int = number(10, least=1, most=100)
    sizes: list[int] = number([3, 4], least=1)
    kind: str = choice("first", "second")
    plain: float = 1.0
    seed: int = 1
    name: str = ""
    flag: bool = False
    some: int | None = number(None, least=1)
    inner: Inner = field(default_factory=Inner)
    many: list[Inner] = setting([])


def test_defaults_are_in_their_ranges_and_lists_are_not_shared() -> None:
    settings.check(Outer())
    settings.check(Outer(some=3, kind="second", sizes=[]))
    assert Outer().sizes is not Outer().sizes and Outer().many is not Outer().many
    assert settings.sections_of("many", [Inner(), Inner(0.2)]) == [
        ("many[0]", Inner()),
        ("many[1]", Inner(0.2)),
    ]
    assert settings.sections_of("sizes", [3]) == settings.sections_of("flag", True) == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beam": 0}, "x.beam: 0 is out of range, expected 1 to 100"),
        ({"beam": 101}, "out of range"),
        ({"beam": math.nan}, "x.beam: nan is out of range"),
        ({"beam": "5"}, "x.beam: '5' is not a number"),
        ({"beam": True}, "x.beam: 'True' is not a number"),
        ({"beam": None}, "is not a number"),
        ({"sizes": [3, 0]}, "x.sizes: 0 is out of range, expected 1 or more"),
        ({"kind": "third"}, "x.kind: 'third' is unknown, expected one of 'first', 'second'"),
        ({"kind": "t" * 5000}, "is unknown"),
        ({"plain": math.inf}, "x.plain: inf is out of range, expected a finite number"),
        ({"seed": 10**23}, "too large for a number"),
        ({"seed": -(10**5000)}, "too large"),
        ({"some": 0}, "1 or more"),
        ({"inner": Inner(1.0)}, "x.inner.rate: 1 is out of range, expected more than 0 and less than 1"),
        ({"inner": Inner(-math.inf)}, "x.inner.rate: -inf"),
        ({"many": [Inner(), Inner(2.0)]}, "x.many[1].rate: 2 is out of range"),
    ],
)
def test_values_out_of_range_are_named(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        settings.check(Outer(**values), "x.")  # type: ignore[arg-type]
    assert message in str(error.value) and len(str(error.value)) < 200


def test_a_range_says_itself() -> None:
    assert str(Range(1, 10**6)) == "1 to 1000000"
    assert [str(Range(1)), str(Range(0, 1)), str(Range(above=0)), str(Range(least=0, below=1)),
    str(Range())] == [
        "1 or more", "0 to 1", "more than 0", "0 or more and less than 1", "a finite number",
    ]  # fmt: skip
