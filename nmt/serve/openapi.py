"""Endpoints of the server, and their description in the form of OpenAPI 3.1."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from nmt import __version__

Schema = dict[str, object]

# ---- schemas -----------------------------------------------------------------------------------------------


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": ["number", "null"], "description": "null: not finite"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean", "default": False}
WORDS: Schema = {"type": "array", "items": TEXT}
SPAN: Schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
NULL: Schema = {"type": "null"}
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


def object_schema(required: Sequence[str], **properties: Schema) -> Schema:
    """The schema of an object with these fields."""
    return {"type": "object", "required": list(required), "properties": properties}


def record_schema(**properties: Schema) -> Schema:
    """The schema of an object that has all of these fields."""
    return object_schema(list(properties), **properties)


def optional_schema(schema: Schema) -> Schema:
    """The schema of a field that may be null, which means the same as missing."""
    with_null: Schema = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        with_null["enum"] = [*cast(list[object], schema["enum"]), None]
    return with_null


def field_names(schema: Schema) -> list[str]:
    """The names of the fields of an object."""
    return list(cast(Schema, schema["properties"]))


# ---- endpoints ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Endpoint:
    """A path with its handler, and the schemas of its request and its answer."""

    path: str
    handler: Callable[[Request], Awaitable[Response]]
    summary: str
    answer: Schema
    errors: Sequence[str] = ()  # statuses, see ERRORS
    request: Schema | None = None  # of a POST; a GET has none
    form: bool = False  # the request may be a form instead of JSON

    def route(self) -> Route:
        return Route(self.path, self.handler, methods=["GET" if self.request is None else "POST"])

    def description(self) -> Schema:
        """The path item of OpenAPI."""
        success = {"description": "OK", "content": {"application/json": {"schema": self.answer}}}
        failures = {status: {"$ref": f"#/components/responses/{status}"} for status in self.errors}
        operation: Schema = {"summary": self.summary, "responses": {"200": success, **failures}}
        if self.request is None:
            return {"get": operation}
        kinds = ["application/json", *(["application/x-www-form-urlencoded"] if self.form else [])]
        body = {"required": True, "content": {kind: {"schema": self.request} for kind in kinds}}
        return {"post": {**operation, "requestBody": body}}


def describe(endpoints: Iterable[Endpoint]) -> Schema:
    """The description of a server with these endpoints."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "nmt-serve", "version": __version__},
        "paths": {endpoint.path: endpoint.description() for endpoint in endpoints},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                status: {"description": text, "content": {"application/json": {"schema": ERROR}}}
                for status, text in ERRORS.items()
            },
        },
        "security": [{}, {"token": []}],
    }
