"""The description says what the server does."""

import jsonschema_rs
import pytest
from starlette.requests import Request
from starlette.responses import Response

from nmt.serve import endpoints
from nmt.serve.endpoints import (
    COUNT,
    ERRORS,
    FLAG,
    WORDS,
    BadRequest,
    Endpoint,
    Fields,
    object_schema,
    optional_schema,
)
from tests.nmt.serve.engines import Upper, client

# ---- test openapi ------------------------------------------------------------------------------------------
# The description says what the server does.


def test_it_has_the_limits_and_engines_of_this_server() -> None:
    with client(Upper(), max_line=11, max_lines=12) as api:
        found = api.get("/api/openapi.json").json()
    body = found["paths"]["/api/translate"]["post"]["requestBody"]
    properties = body["content"]["application/json"]["schema"]["properties"]
    assert properties["lines"]["maxItems"] == 12 and properties["lines"]["items"]["maxLength"] == 11
    assert properties["engine"]["enum"] == ["upper", "", None]


@pytest.mark.parametrize(
    ("path", "good"),
    [
        ("/api/translate", {"lines": ["a"]}),
        ("/api/translate", {"text": "a"}),
        ("/api/score", {"source": ["a"], "target": ["b"]}),
        ("/translate", {"q": "a", "source": "en", "target": "fr"}),
        ("/detect", {"q": "a"}),
    ],
)
def test_null_is_admitted_where_the_server_does(path: str, good: dict[str, object]) -> None:
    with client(Upper()) as api:
        body = api.get("/api/openapi.json").json()["paths"][path]["post"]["requestBody"]
        schema = body["content"]["application/json"]["schema"]
        assert jsonschema_rs.is_valid(schema, good)
        for name in schema["properties"]:
            given = {**good, name: None}
            accepted = api.post(path, json=given).status_code == 200
            assert accepted == jsonschema_rs.is_valid(schema, given), name


# ---- test openapi libretranslate ---------------------------------------------------------------------------
# The description of LibreTranslate's interface; tests/fuzz asks a server whether it is true.


def test_libretranslates_paths_have_the_languages_of_this_server() -> None:
    with client(Upper()) as api:
        paths = api.get("/api/openapi.json").json()["paths"]
    body = paths["/translate"]["post"]["requestBody"]["content"]
    for content in body.values():
        assert content["schema"]["properties"]["source"]["enum"] == ["auto", "en", "fr"]
    assert list(body) == ["application/json", "application/x-www-form-urlencoded"]


# ---- test openapi schemas ----------------------------------------------------------------------------------
# Parts of descriptions.


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [(COUNT, 3, -1), (FLAG, True, 1), (WORDS, ["a"], [1]), ({"type": "string", "enum": ["a"]}, "a", "b")],
)
def test_what_is_optional_may_be_null(schema: dict[str, object], good: object, bad: object) -> None:
    assert jsonschema_rs.is_valid(schema, good) and not jsonschema_rs.is_valid(schema, None)
    assert jsonschema_rs.is_valid(optional_schema(schema), good) and jsonschema_rs.is_valid(
        optional_schema(schema), None
    )
    assert not jsonschema_rs.is_valid(optional_schema(schema), bad)


async def handler(request: Request) -> Response:
    raise NotImplementedError


def test_endpoints_describe_their_requests_and_errors() -> None:
    answer = object_schema(["a"], a=COUNT)
    get = Endpoint("/count", handler, "Count", answer, ["400"]).description()["get"]
    assert list(get["responses"]) == ["200", "400"]  # type: ignore[index]
    post = Endpoint("/count", handler, "Count", answer, [*ERRORS], answer, form=True)
    described = post.description()["post"]
    assert len(described["requestBody"]["content"]) == 2  # type: ignore[index]
    assert post.route().methods == {"POST"}
    assert not jsonschema_rs.is_valid(answer, {}) and jsonschema_rs.is_valid(answer, {"a": 1})


# ---- test fields -------------------------------------------------------------------------------------------
# The fields of requests.


def test_a_form() -> None:
    assert endpoints.parse_form(b"a=1&b=&c=x+y%26z") == {"a": "1", "b": "", "c": "x y&z"}
    assert endpoints.parse_form("q=muž&q=%C5%BE".encode()) == {"q": "ž"} and endpoints.parse_form(b"") == {}
    for wrong in (b"q=\xe9", b"q=%E9", b"&".join([b"a=b"] * 101)):
        with pytest.raises(BadRequest):
            endpoints.parse_form(wrong)


def test_values_of_the_right_type_are_read() -> None:
    given = endpoints.parse_json(
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
        endpoints.parse_json(body)


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
    given = endpoints.parse_json(b'{"a": "\\ud800", "b": ["\\ud800"]}')
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
    assert endpoints.split_lines(text) == lines
