"""The description says what the server does."""

from typing import cast

import jsonschema_rs
import pytest

from nmt.serve import json_api, openapi
from nmt.serve.config import ServeConfig
from nmt.serve.openapi import (
    COUNT,
    ERRORS,
    FLAG,
    WORDS,
    Schema,
    object_schema,
    operation,
    optional_schema,
    post_operation,
)
from tests.nmt.serve.engines import Upper, client

# ---- test openapi ------------------------------------------------------------------------------------------


Json = dict[str, dict[str, object]]


def test_the_fields_of_requests_are_those_that_are_read() -> None:
    config = ServeConfig(max_line=11, max_lines=12)
    line: Schema = {"type": "string"}
    translate = openapi.translate_request(config, line, line)
    score = openapi.score_request(line, line)
    assert tuple(cast(Json, translate["properties"])) == json_api.TRANSLATE_FIELDS
    assert tuple(cast(Json, score["properties"])) == json_api.SCORE_FIELDS


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


def test_operations_have_the_errors_that_are_named() -> None:
    answer = object_schema(["a"], a=COUNT)
    assert list(operation("Count", answer, "400")["responses"]) == ["200", "400"]  # type: ignore[call-overload]
    described = post_operation("Count", answer, answer, *ERRORS, form=True)["post"]
    assert len(described["requestBody"]["content"]) == 2  # type: ignore[index]
    assert not jsonschema_rs.is_valid(answer, {}) and jsonschema_rs.is_valid(answer, {"a": 1})
