"""Fields of configurations: each has its default, range and help text in one place, checked in the same way
for files, options and Python.

@dataclass
class SearchConfig:
    beam: int = number(10, least=1, help="hypotheses kept")
    normalize: str = choice("length", "none", "gnmt", help="how lengths are compared")  # first: the default
    model: str = name_in(MODELS, help="which model")  # whatever the dictionary holds when it is checked
    keep: bool = setting(False, help="keep the list")

check(SearchConfig(beam=0), "search.")    # ConfigError: search.beam: 0 is out of range, expected 1 or more
"""

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, TypeVar, cast

from nmt.errors import ConfigError
from nmt.io.numbers import LARGEST, shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


T = TypeVar("T")
Config = TypeVar("Config", bound="DataclassInstance")

ALLOWED, HELP = "allowed", "help"  # keys of a field's metadata

# Limit on the units of a layer: a square matrix of this width exceeds any memory, but its size in bytes still
# fits into 64 bits.
MOST_UNITS = 1_000_000


@dataclass(frozen=True)
class Range:
    """Bounds of a number; None: unbounded. `least` and `most` are inclusive, `above` and `below` are not."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            math.isfinite(value)
            and (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        """The range in words for messages: "1 or more", "0 to 1", "more than 0 and less than 1"."""
        if self.least is not None and self.most is not None:
            return f"{in_digits(self.least)} to {in_digits(self.most)}"
        bounds = (
            ("{} or more", self.least),
            ("more than {}", self.above),
            ("{} or less", self.most),
            ("less than {}", self.below),
        )
        parts = [text.format(in_digits(bound)) for text, bound in bounds if bound is not None]
        return " and ".join(parts) or "a finite number"


def in_digits(value: float) -> str:
    """Format an integer with all its digits (1000000, not 1e+06)."""
    return str(value) if isinstance(value, int) else f"{value:g}"


def number(
    default: T,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    help: str = "",
) -> T:
    """Define a dataclass field for a number, or for a list of numbers, each within a range. `least` and
    `most` are inclusive bounds, `above` and `below` exclusive ones; `help`: its text in --help."""
    metadata = {ALLOWED: Range(least, most, above, below), HELP: help}
    if isinstance(default, list):
        return field(default_factory=lambda: cast(T, list(default)), metadata=metadata)
    return field(default=default, metadata=metadata)


def choice(default: str, *others: str, help: str = "") -> str:
    """Define a dataclass field for one of several words: `default` or one of `others`."""
    return field(default=default, metadata={ALLOWED: (default, *others), HELP: help})


def name_in(registry: Mapping[str, object], help: str = "") -> str:
    """Define a dataclass field for a name in a registry, the first by default. The registry is read whenever
    a value is checked, so that plugins may add to it."""
    return field(default=next(iter(registry)), metadata={ALLOWED: registry, HELP: help})


def setting(default: T, help: str = "") -> T:
    """Define a dataclass field without a range: a flag, a text, a list of dataclasses."""
    if isinstance(default, list):
        return field(default_factory=lambda: cast(T, list(default)), metadata={HELP: help})
    return field(default=default, metadata={HELP: help})


def problem(item: "Field[object]", value: object) -> str:
    """Describe what is wrong with a field's value; empty if it is valid. Its default None is valid."""
    allowed = item.metadata.get(ALLOWED)
    if value is None and item.default is None:
        return ""
    if isinstance(allowed, tuple | Mapping):
        if value in allowed:
            return ""
        return f"{shown(str(value))} is unknown, expected one of {', '.join(map(repr, allowed))}"
    expects_number = allowed is not None or isinstance(item.default, int | float)
    for part in value if isinstance(value, list | tuple) else [value]:
        if isinstance(part, bool) or not isinstance(part, int | float):
            if expects_number and not isinstance(item.default, bool):
                return f"{shown(str(part))} is not a number"
            continue
        if isinstance(part, int) and not -LARGEST <= part <= LARGEST:
            return f"{shown(str(part)) if part.bit_length() < 999 else 'it'} is too large for a number"
        if part not in (allowed or Range()):
            return f"{in_digits(part)} is out of range, expected {allowed or Range()}"
        if isinstance(part, float) and item.type is int:
            return f"{in_digits(part)} is not a whole number"
    return ""


def problems(config: "DataclassInstance", prefix: str = "") -> Iterable[str]:
    """Yield `key: what is wrong` for each value out of range, those inside too. `prefix`: of the keys."""
    for item in fields(config):
        value = getattr(config, item.name)
        if sections := list_sections(item.name, value):
            for name, section in sections:
                yield from problems(section, f"{prefix}{name}.")
        elif message := problem(item, value):
            yield f"{prefix}{item.name}: {message}"


def list_sections(name: str, value: object) -> "list[tuple[str, DataclassInstance]]":
    """List the dataclasses that the value of key `name` is or holds in a list, with their keys: `source`, or
    `corpora[0]`, `corpora[1]` ... Empty for any other value."""
    if is_dataclass(value) and not isinstance(value, type):
        return [(name, value)]
    parts = value if isinstance(value, list) else []
    return [
        (f"{name}[{index}]", part)
        for index, part in enumerate(parts)
        if is_dataclass(part) and not isinstance(part, type)
    ]


def check(config: "DataclassInstance", prefix: str = "") -> None:
    """ConfigError for the first value out of range. `prefix`: of the key in messages, such as `training.`"""
    for message in problems(config, prefix):
        raise ConfigError(message)


def changed(config: Config, values: Mapping[str, object]) -> Config:
    """A copy of a configuration with some settings changed by name. TypeError for an unknown name."""
    names = [item.name for item in fields(config)]
    for name in values:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(names)}"
            raise TypeError(f"unknown setting {name!r}; {hint}")
    return replace(config, **values)
