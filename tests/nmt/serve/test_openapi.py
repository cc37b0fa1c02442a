"""The description says what the server does."""

from typing import cast

import jsonschema_rs
import pytest

from nmt.serve import json_api, openapi
from nmt.serve.config import ServeConfig
from nmt.serve.openapi_schemas import Schema
from tests.nmt.serve.engines import Upper, client

Json = dict[str, dict[str, object]]


def test_the_fields_of_requests_are_those_that_are_read() -> None:
    config = ServeConfig(max_line=11, max_lines=12)
    line: Schema = {"type": "string"}
    translate = openapi.translate_request(config, line, line)
    score = openapi.score_request(line, line)
    assert tuple(cast(Json, translate["properties"])) == json_api.TRANSLATE
    assert tuple(cast(Json, score["properties"])) == json_api.SCORED


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
