"""What values a setting may have, beside its default, and the one check of them for files, options and Python
alike.

@dataclass
class SearchConfig:
    beam: int = number(10, least=1, help="hypotheses kept")
    normalize: str = choice("length", "none", "gnmt")  # the first is the default

check(SearchConfig(beam=0), "search.")    # ConfigError: search.beam: 0 is out of range, expected 1 or more
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from typing import Any

from nmt.errors import ConfigError
from nmt.numbers import LARGEST, shown

ALLOWED, HELP = "allowed", "help"  # keys of a field's metadata


@dataclass(frozen=True)
class Range:
    """Bounds of a number; None where there is none. `least` and `most` belong to the range, `above` and
    `below` do not."""

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
        """As a message says it: "1 or more", "0 to 1", "more than 0 and less than 1"."""
        low = (
            f"{plain(self.least)} or more"
            if self.least is not None
            else f"more than {plain(self.above)}"
            if self.above is not None
            else ""
        )
        high = (
            f"{plain(self.most)} or less"
            if self.most is not None
            else f"less than {plain(self.below)}"
            if self.below is not None
            else ""
        )
        if self.least is not None and self.most is not None:
            return f"{plain(self.least)} to {plain(self.most)}"
        return " and ".join(filter(None, (low, high))) or "a finite number"


def plain(value: float) -> str:
    """1000000, and not 1e+06"""
    return str(value) if isinstance(value, int) else f"{value:g}"


def number(
    default: Any,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    help: str = "",
) -> Any:
    """A field of a dataclass: a number, or a list of numbers, with its range. A list's elements each have the
    range. `help`: what it means, as --help says it."""
    metadata = {ALLOWED: Range(least, most, above, below), HELP: help}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def choice(default: str, *others: str, help: str = "") -> Any:
    """A field of a dataclass: one of some words, the default first."""
    return field(default=default, metadata={ALLOWED: (default, *others), HELP: help})


def name_in(registry: Mapping[str, object], help: str = "") -> Any:
    """A field of a dataclass: a name in a registry, the first by default. The registry is read whenever a
    value is checked, so that it may grow later."""
    return field(default=next(iter(registry)), metadata={ALLOWED: registry, HELP: help})


def setting(default: Any, help: str = "") -> Any:
    """A field of a dataclass: a flag, a text, or whatever else has no range."""
    return field(default=default, metadata={HELP: help})


def problem(item: "Field[Any]", value: Any) -> str:
    """What is wrong with the value of a field; empty when nothing is. None passes where it is the default."""
    allowed = item.metadata.get(ALLOWED)
    if value is None and item.default is None:
        return ""
    if isinstance(allowed, tuple | Mapping):
        return (
            ""
            if value in allowed
            else f"{shown(str(value))} is unknown, expected one of {', '.join(map(repr, allowed))}"
        )
    expects_number = allowed is not None or isinstance(item.default, int | float)
    for part in value if isinstance(value, list | tuple) else [value]:
        if isinstance(part, bool) or not isinstance(part, int | float):
            if expects_number and not isinstance(item.default, bool):
                return f"{shown(str(part))} is not a number"
            continue
        if isinstance(part, int) and not -LARGEST <= part <= LARGEST:
            return f"{shown(str(part)) if part.bit_length() < 999 else 'it'} is too large for a number"
        if part not in (allowed or Range()):
            return f"{plain(part)} is out of range, expected {allowed or Range()}"
    return ""


def problems(config: Any, prefix: str = "") -> Iterable[str]:
    """`key: what is wrong` for each value of a dataclass, and of the dataclasses in it, that is out of its
    range."""
    for item in fields(config):
        value = getattr(config, item.name)
        if is_dataclass(value):
            yield from problems(value, f"{prefix}{item.name}.")
        elif found := problem(item, value):
            yield f"{prefix}{item.name}: {found}"


def check(config: Any, prefix: str = "") -> None:
    """ConfigError for the first value out of its range. `prefix`: what messages put before a key, such as
    `training.`"""
    for found in problems(config, prefix):
        raise ConfigError(found)
