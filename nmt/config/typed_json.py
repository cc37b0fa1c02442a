"""Dataclasses from JSON: keys must be those of the fields, and values must have their types."""

import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from nmt.io.numbers import LARGEST, shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


Instance = TypeVar("Instance", bound="DataclassInstance")


def parse(kind: type[Instance], text: str, header: Mapping[str, str] | None = None) -> Instance:
    """Parse the text of a JSON object into a dataclass. `header`: other keys that the object must have, with
    their values, such as its format.

    ValueError for invalid JSON, and with the key for missing or unknown keys, a value of another type, and a
    number that is not finite or exceeds 64 bits.
    """
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is not JSON: too deep") from error
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"expected an object, found {shown(str(content))}")
    for key, value in (header or {}).items():
        if content.pop(key, None) != value:
            raise ValueError(f"{key}: expected {value!r}")
    return instance(kind, content, "")


def instance(kind: type[Instance], content: object, key: str) -> Instance:
    """Convert a JSON object to a dataclass. `key`: its position, for messages. Errors as from `parse`."""
    prefix = f"{key}." if key else ""
    if not isinstance(content, dict):
        raise wrong(key, "an object", content)
    hints = typing.get_type_hints(kind)
    names = [item.name for item in fields(kind)]
    for name in content:
        if name not in names:
            raise ValueError(f"{prefix}{shown(str(name))}: unknown, expected one of {', '.join(names)}")
    for item in fields(kind):
        if item.name not in content and item.default is MISSING and item.default_factory is MISSING:
            raise ValueError(f"{prefix}{item.name}: missing")
    return kind(**{name: convert(hints[name], value, f"{prefix}{name}") for name, value in content.items()})


def convert(hint: object, value: object, key: str) -> object:
    """Convert a JSON value to a type: a dataclass, a Literal of strings, a list, a mapping with string keys,
    `T | None`, or a plain type; an int passes as a float. `key`: its position. Errors as from `parse`."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return instance(hint, value, key)
    if origin is typing.Literal:
        if value not in parts or not isinstance(value, str):
            raise wrong(key, f"one of {', '.join(map(repr, parts))}", value)
        return value
    if origin is list:
        if not isinstance(value, list):
            raise wrong(key, "a list", value)
        return [convert(parts[0], part, f"{key}[{number}]") for number, part in enumerate(value)]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise wrong(key, "an object", value)
        return {name: convert(parts[1], part, f"{key}.{name}") for name, part in value.items()}
    if origin is types.UnionType:
        return value if value is None else convert(parts[0], value, key)
    return plain(hint, value, key)


def plain(hint: object, value: object, key: str) -> object:
    """Check that a value is of a plain type (str, bool, int or float) and return it; any value passes if the
    hint is object. Errors as from `parse`."""
    if hint is object:
        return value
    if hint in (int, float):
        if isinstance(value, bool) or not isinstance(value, int if hint is int else int | float):
            raise wrong(key, "a whole number" if hint is int else "a number", value)
        number = cast("int | float", value)
        if not (math.isfinite(number) if isinstance(number, float) else -LARGEST <= number <= LARGEST):
            raise ValueError(f"{key}: out of range")
        return number
    expected = cast(type, hint)
    if not isinstance(value, expected):
        raise wrong(key, "a text" if expected is str else f"a {expected.__name__}", value)
    return value


def wrong(key: str, expected: str, value: object) -> ValueError:
    """Make the error for a value of the wrong type. `key`: its position; `expected`: the type, in words."""
    return ValueError(f"{key}: expected {expected}, found {shown(json.dumps(value))}")
