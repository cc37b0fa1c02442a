"""The description says what the server does."""

import jsonschema_rs
import pytest
from starlette.requests import Request
from starlette.responses import Response

from nmt.serve import http_api
from nmt.serve.http_api import (
    COUNT,
    ERRORS,
    FLAG,
    WORDS,
    BadRequest,
    Endpoint,
    object_schema,
    optional_schema,
)
from tests.nmt.serve.engines import Upper, client

# ---- openapi -----------------------------------------------------------------------------------------------
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


# ---- openapi libretranslate --------------------------------------------------------------------------------
# The description of LibreTranslate's interface; tests/fuzz asks a server whether it is true.


def test_libretranslates_paths_have_the_languages_of_this_server() -> None:
    with client(Upper()) as api:
        paths = api.get("/api/openapi.json").json()["paths"]
    body = paths["/translate"]["post"]["requestBody"]["content"]
    for content in body.values():
        assert content["schema"]["properties"]["source"]["enum"] == ["auto", "en", "fr"]
    assert list(body) == ["application/json", "application/x-www-form-urlencoded"]


# ---- openapi schemas ---------------------------------------------------------------------------------------
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


# ---- fields ------------------------------------------------------------------------------------------------
# The fields of requests.


def test_a_form() -> None:
    assert http_api.parse_form(b"a=1&b=&c=x+y%26z") == {"a": "1", "b": "", "c": "x y&z"}
    assert http_api.parse_form("q=muž&q=%C5%BE".encode()) == {"q": "ž"} and http_api.parse_form(b"") == {}
    for wrong in (b"q=\xe9", b"q=%E9", b"&".join([b"a=b"] * 101)):
        with pytest.raises(BadRequest):
            http_api.parse_form(wrong)


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
    assert http_api.split_lines(text) == lines
