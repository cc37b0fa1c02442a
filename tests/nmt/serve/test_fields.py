"""The fields of requests."""

import pytest

from nmt.serve import fields
from nmt.serve.fields import BadRequest, Fields


def test_a_form() -> None:
    assert fields.parse_form(b"a=1&b=&c=x+y%26z") == {"a": "1", "b": "", "c": "x y&z"}
    assert fields.parse_form("q=muž&q=%C5%BE".encode()) == {"q": "ž"} and fields.parse_form(b"") == {}
    for wrong in (b"q=\xe9", b"q=%E9", b"&".join([b"a=b"] * 101)):
        with pytest.raises(BadRequest):
            fields.parse_form(wrong)


def test_values_of_the_right_type_are_read() -> None:
    given = fields.parse_json(
        '{"a": "é", "b": ["x", "y"], "c": 3, "d": true, "e": null, "g": {"x": "y"}}'.encode()
    )
    assert given.text("a") == "é" and given.texts("b") == ["x", "y"]
    assert given.number("c", 1, 1, 5) == 3 and given.flag("d")
    assert given.text("e", "default") == "default" and given.number("e", 7, 1, 9) == 7 and not given.flag("e")
    assert given.pairs("g") == [("x", "y")] and given.pairs("e") == given.pairs("f") == []
    assert "a" in given and "e" not in given and "f" not in given


def test_numbers_of_forms_are_texts() -> None:
    values = {"n": "4", "empty": ""}
    given = Fields(values, lenient=True)
    assert given.number("n", 1, 1, 5) == 4 and given.number("empty", 2, 1, 5) == 2
    for name in values:
        with pytest.raises(BadRequest):
            Fields(values).number(name, 1, 1, 5)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"a": NaNN}', b"\xff{}", b"[" * 100_000, b'"x"', b"null"]
)
def test_what_is_no_object(body: bytes) -> None:
    with pytest.raises(BadRequest, match="the body is no JSON"):
        fields.parse_json(body)


@pytest.mark.parametrize("value", [True, 1.0, "1.0", "-1", "٣", 0, 6, 10**400, [], "9" * 5000])
def test_numbers_that_are_none(value: object) -> None:
    with pytest.raises(BadRequest, match="n: expected a whole number from 1 to 5"):
        Fields({"n": value}, lenient=True).number("n", 1, 1, 5)


def test_other_types_are_refused() -> None:
    given = Fields({"a": 1, "b": ["x", 2], "c": "true", "d": {"x": 1}})
    with pytest.raises(BadRequest, match="a: expected a string"):
        given.text("a")
    with pytest.raises(BadRequest, match="b: expected a list of strings"):
        given.texts("b")
    with pytest.raises(BadRequest, match="c: expected true or false"):
        given.flag("c")
    for name in "abcd":
        with pytest.raises(BadRequest, match=f"{name}: expected an object of strings"):
            given.pairs(name)
    with pytest.raises(BadRequest, match="missing field z"):
        given.text("z")
    with pytest.raises(BadRequest, match="unknown field 'c', expected a, b"):
        given.check_names(("a", "b"))


def test_half_a_surrogate_pair_is_refused() -> None:
    given = fields.parse_json(b'{"a": "\\ud800", "b": ["\\ud800"]}')
    with pytest.raises(BadRequest, match="a: half of a surrogate pair"):
        given.text("a")
    with pytest.raises(BadRequest, match="b: half of a surrogate pair"):
        given.texts("b")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\r\nb\n", ["a", "b"]),
        ("a\n\n", ["a", ""]),
        ("a\x85b", ["a\x85b"]),
    ],
)
def test_only_a_newline_ends_a_line(text: str, lines: list[str]) -> None:
    assert fields.split_lines(text) == lines
