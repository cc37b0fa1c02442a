"""Ranges that stand beside the defaults."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

import pytest
import yaml

from nmt.config import settings, typed_json, yaml_text
from nmt.config.settings import Range, choice, number, setting
from nmt.config.yaml_text import NotYaml
from nmt.errors import ConfigError

# ---- test settings -----------------------------------------------------------------------------------------


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
    assert settings.list_sections("many", [Inner(), Inner(0.2)]) == [
        ("many[0]", Inner()),
        ("many[1]", Inner(0.2)),
    ]
    assert settings.list_sections("sizes", [3]) == settings.list_sections("flag", True) == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beam": 0}, "x.beam: 0 is out of range, expected 1 to 100"),
        ({"beam": 101}, "out of range"),
        ({"beam": math.nan}, "x.beam: nan is out of range"),
        ({"beam": "5"}, "x.beam: '5' is not a number"),
        ({"beam": True}, "x.beam: 'True' is not a number"),
        ({"beam": None}, "is not a number"),
        ({"beam": 5.5}, "x.beam: 5.5 is not a whole number"),
        ({"seed": 2.0}, "x.seed: 2 is not a whole number"),
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


# ---- test yaml text ----------------------------------------------------------------------------------------
# YAML from outside: plain values pass, and what could hurt is refused in one line.


def test_values_as_they_are_written() -> None:
    found = yaml_text.parse("a: {b: 1, c: [x, 0.5]}\nd: null\n")
    assert found == {"a": {"b": 1, "c": ["x", 0.5]}, "d": None}
    assert yaml_text.parse(" \n") == {} == yaml_text.parse("")


def test_an_alias_counts_as_what_it_stands_for() -> None:
    def count(text: str) -> int:
        return yaml_text.nodes(yaml.compose(text, yaml.SafeLoader), {})

    assert count("a: &x [1, 2]\nb: *x\n") == count("a: [1, 2]\nb: [1, 2]\n") > count("a: [1, 2]\nb: 1\n")


def test_few_lines_that_stand_for_more_than_memory_holds() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(NotYaml, match="values, aliases followed, expected at most 100,000"):
        yaml_text.parse("\n".join(lines))


def test_the_line_of_what_keys_lead_to() -> None:
    text = "a: 1\nb:\n  c:\n    - {x: 1, y: 2}\n    - x: 3\n      z: 4\n    - [\n        7]\n"
    keys = ["a", "b.c.0.y", "b.c.1", "b.c.1.z", "b.c.2.0"]
    assert [yaml_text.find_line(text, key.split(".")) for key in keys] == [1, 4, 5, 6, 8]
    assert (
        yaml_text.find_line(text, ["b", "c", "1", "none"]) == 5 and yaml_text.find_line(text, ["none"]) == 0
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: [1\n", 3, "expected"),
        ("a: 1\n\tb: 2\n", 2, "cannot start any token"),
        ("a: !!python/object:os.system x\n", 0, "python"),
        ("[" * 1000, 0, "nested too deep"),
        ("a: &x [*x]\n", 0, "nested too deeply, or refers to itself"),
        ("a: " + "9" * 5000, 0, "digits"),
        ("a: !!bool maybe", 0, "does not fit its tag"),
        ("a: !!timestamp soon", 0, "does not fit its tag"),
        ("null: 1", 0, "Incompatible key type"),
        ("5\n", 1, "a single value, expected keys and values"),
        ("true", 1, "a single value"),
    ],
)
def test_what_is_no_yaml_is_one_line(text: str, line: int, message: str) -> None:
    with pytest.raises(NotYaml, match=message) as error:
        yaml_text.parse(text)
    assert "\n" not in str(error.value) and len(str(error.value)) <= 200
    assert not line or error.value.line == line


# ---- test typed json ---------------------------------------------------------------------------------------
# Dataclasses from JSON.


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
    with pytest.raises(ValueError, match=r"it is not JSON|expected an object"):
        typed_json.parse(Tree, text)


def test_a_header_is_compared() -> None:
    with pytest.raises(ValueError, match="format: expected '2'"):
        typed_json.parse(Leaf, '{"format": "1", "name": "a"}', {"format": "2"})
