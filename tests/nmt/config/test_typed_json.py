"""Dataclasses from JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

import pytest

from nmt.config import typed_json


@dataclass(frozen=True)
class Leaf:
    name: Literal["a", "b"]
    size: int = 3


@dataclass(frozen=True)
class Tree:
    speed: float
    leaves: list[Leaf]
    title: str | None = None
    sections: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    grows: bool = False


TREE = Tree(0.5, [Leaf("a"), Leaf("b", 4)], "oak", {"x": {"y": [1, None]}}, True)


def test_reading_what_was_written_gives_the_same() -> None:
    assert typed_json.parse(Tree, json.dumps(asdict(TREE))) == TREE
    assert typed_json.parse(Tree, '{"speed": 2, "leaves": []}') == Tree(2, [])
    assert typed_json.parse(Leaf, '{"format": "1", "name": "a"}', {"format": "1"}) == Leaf("a")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("speed", "fast", "speed: expected a number, found"),
        ("speed", True, "speed: expected a number"),
        ("speed", 1e999, "speed: out of range"),
        ("speed", 10**400, "speed: out of range"),
        ("leaves", {}, "leaves: expected a list"),
        ("leaves", [1], r"leaves\[0\]: expected an object"),
        ("leaves", [{"name": "c"}], r"leaves\[0\].name: expected one of 'a', 'b'"),
        ("leaves", [{"name": ["a"]}], r"leaves\[0\].name: expected one of"),
        ("leaves", [{"name": "a", "size": 1.5}], r"leaves\[0\].size: expected a whole number"),
        ("leaves", [{"size": 1}], r"leaves\[0\].name: missing"),
        ("title", 1, "title: expected a text"),
        ("sections", {"x": 1}, "sections.x: expected an object"),
        ("grows", 1, "grows: expected a bool"),
        ("other", 1, "'other': unknown, expected one of speed, leaves"),
    ],
)
def test_the_key_of_a_wrong_value_is_named(key: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        typed_json.parse(Tree, json.dumps(asdict(TREE) | {key: value}))


@pytest.mark.parametrize("text", ["", "[]", "1", "{", '{"a": NaN', "[" * 100_000])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"it is no JSON|expected an object"):
        typed_json.parse(Tree, text)


def test_a_header_is_compared() -> None:
    with pytest.raises(ValueError, match="format: expected '2'"):
        typed_json.parse(Leaf, '{"format": "1", "name": "a"}', {"format": "2"})
