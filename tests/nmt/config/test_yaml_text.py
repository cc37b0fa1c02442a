"""YAML from outside: plain values pass, and what could hurt is refused in one line."""

import pytest
import yaml

from nmt.config import yaml_text
from nmt.config.yaml_text import NotYaml


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
    assert [yaml_text.line_of(text, key.split(".")) for key in keys] == [1, 4, 5, 6, 8]
    assert yaml_text.line_of(text, ["b", "c", "1", "none"]) == 5 and yaml_text.line_of(text, ["none"]) == 1


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: [1\n", 3, "expected"),
        ("a: 1\n\tb: 2\n", 2, "cannot start any token"),
        ("a: !!python/object:os.system x\n", 0, "python"),
        ("[" * 3000, 0, "nested too deep"),
        ("a: &x [*x]\n", 0, "nested too deep, or in a circle"),
        ("a: " + "9" * 5000, 0, "digits"),
    ],
)
def test_what_is_no_yaml_is_one_line(text: str, line: int, message: str) -> None:
    with pytest.raises(NotYaml, match=message) as error:
        yaml_text.parse(text)
    assert "\n" not in str(error.value) and len(str(error.value)) <= 200
    assert not line or error.value.line == line
