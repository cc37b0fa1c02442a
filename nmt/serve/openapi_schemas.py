"""Parts of which descriptions of interfaces in the form of OpenAPI 3.1 are made."""

from collections.abc import Sequence
from typing import cast

Schema = dict[str, object]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": ["number", "null"], "description": "null: not finite"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean", "default": False}
WORDS: Schema = {"type": "array", "items": TEXT}
SPAN: Schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
ERROR: Schema = {"type": "object", "required": ["error"], "properties": {"error": TEXT}}

ERRORS = {
    "400": "the request is wrong: the message says how",
    "401": "the token is missing or wrong",
    "403": "a page of another site sent it, or api_key is wrong",
    "408": "the body did not arrive in time",
    "413": "the body is too large",
    "429": "too many lines are waiting; Retry-After says when to try again",
    "503": "the server is about to stop",
    "504": "the translation took too long",
}


def operation(summary: str, answer: Schema, *errors: str) -> Schema:
    """An operation whose good answer is 200. `errors`: the other ones, see ERRORS."""
    good = {"description": "OK", "content": {"application/json": {"schema": answer}}}
    failures = {status: {"$ref": f"#/components/responses/{status}"} for status in errors}
    return {"summary": summary, "responses": {"200": good, **failures}}


def post(summary: str, request: Schema, answer: Schema, *errors: str, form: bool = False) -> Schema:
    """A path that takes a JSON object, or a form as well."""
    kinds = ["application/json", *(["application/x-www-form-urlencoded"] if form else [])]
    body = {"required": True, "content": {kind: {"schema": request} for kind in kinds}}
    return {"post": {**operation(summary, answer, *errors), "requestBody": body}}


def record(required: Sequence[str], **properties: Schema) -> Schema:
    """An object of known fields."""
    return {"type": "object", "required": list(required), "properties": properties}


def optional(schema: Schema) -> Schema:
    """A field that may be null, which is as good as missing."""
    with_null: Schema = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        with_null["enum"] = [*cast(list[object], schema["enum"]), None]
    return with_null
