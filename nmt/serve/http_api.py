"""What the HTTP interfaces share: fields of requests, errors, endpoints and their OpenAPI 3.1 description."""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from nmt import __version__
from nmt.errors import UserError
from nmt.io.numbers import shown

Schema = dict[str, object]

# ---- schemas -----------------------------------------------------------------------------------------------


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": ["number", "null"], "description": "null: not finite"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean", "default": False}
NULL: Schema = {"type": "null"}
ERROR: Schema = {"type": "object", "required": ["error"], "properties": {"error": TEXT}}

ERRORS = {
    "400": "the request is wrong: the message says how",
    "401": "the token is missing or wrong",
    "403": "a page of another site sent it, or api_key is wrong",
    "408": "the body did not arrive in time",
    "413": "the body is too large",
    "429": "too many lines are waiting; Retry-After says when to try again",
    "503": "the server is shutting down",
    "504": "the translation took too long",
}


def object_schema(required: Sequence[str], **properties: Schema) -> Schema:
    """The schema of an object with these fields, of which `required` may not be missing."""
    return {"type": "object", "required": list(required), "properties": properties}


def record_schema(**properties: Schema) -> Schema:
    """The schema of an object in which none of these fields may be missing."""
    return object_schema(list(properties), **properties)


def list_schema(items: Schema, **more: object) -> Schema:
    """The schema of a list. `more`: further keywords, such as a description."""
    return {"type": "array", "items": items, **more}


WORDS = list_schema(TEXT)
SPAN = list_schema({"type": "integer"}, minItems=2, maxItems=2)


def optional_schema(schema: Schema) -> Schema:
    """Copy the schema of a field, and allow null, which means the same as a missing field."""
    with_null: Schema = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        with_null["enum"] = [*cast(list[object], schema["enum"]), None]
    return with_null


def field_names(schema: Schema) -> list[str]:
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
    multipart: bool = False  # the request is a form with a file

    def route(self) -> Route:
        return Route(self.path, self.handler, methods=["GET" if self.request is None else "POST"])

    def description(self) -> Schema:
        """The path item that describes the endpoint in OpenAPI."""
        success = {"description": "OK", "content": {"application/json": {"schema": self.answer}}}
        failures = {status: {"$ref": f"#/components/responses/{status}"} for status in self.errors}
        operation: Schema = {"summary": self.summary, "responses": {"200": success, **failures}}
        if self.request is None:
            return {"get": operation}
        kinds = ["application/json", *(["application/x-www-form-urlencoded"] if self.form else [])]
        kinds = ["multipart/form-data"] if self.multipart else kinds
        body = {"required": True, "content": {kind: {"schema": self.request} for kind in kinds}}
        return {"post": {**operation, "requestBody": body}}


def describe(endpoints: Iterable[Endpoint]) -> Schema:
    """The OpenAPI document of a server with these endpoints."""
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


def media_type(request: Request) -> str:
    """The type of a request's body, in lower case and without parameters; empty if it is unknown."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def error_response(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """Build the error response of all interfaces except XML-RPC."""
    return JSONResponse({"error": message or HTTPStatus(status).phrase}, status, headers)


# ---- fields of requests ------------------------------------------------------------------------------------
# The fields of a JSON object or a form; each is checked when it is read.


MAX_FIELDS = 100  # of a form


class BadRequest(UserError):
    """A mistake in a request; the client gets the message."""


class Fields:
    """The fields of a request. Each method reads one of them; BadRequest for a wrong value. A field that is
    null counts as missing."""

    def __init__(self, values: Mapping[str, object], lenient: bool = False) -> None:
        """`lenient`: a number may be a string, as in a form."""
        self.values, self.lenient = values, lenient

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse fields that are not among `names`: BadRequest."""
        for name in self.values:
            if name not in names:
                raise BadRequest(f"unknown field {shown(name)}, expected {', '.join(names)}")

    def text(self, name: str, default: str | None = None) -> str:
        """Read a string. BadRequest if it is missing and there is no default."""
        value = self.values.get(name)
        if value is None:
            if default is None:
                raise BadRequest(f"missing field {name}")
            return default
        if not isinstance(value, str):
            raise BadRequest(f"{name}: expected a string")
        return check_unicode(value, name)

    def texts(self, name: str) -> list[str]:
        """Read a list of strings. BadRequest if it is missing."""
        value = self.values.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise BadRequest(f"{name}: expected a list of strings")
        return [check_unicode(item, name) for item in value]

    def pairs(self, name: str) -> list[tuple[str, str]]:
        """Read an object of strings as (key, value) pairs; empty if it is missing."""
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise BadRequest(f"{name}: expected an object of strings")
        return [(check_unicode(key, name), check_unicode(item, name)) for key, item in value.items()]

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """Read a whole number from `least` to `most`; `default` if it is missing, or empty in a form."""
        value = self.values.get(name)
        if value is None or (value == "" and self.lenient):
            return default
        if self.lenient and isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise BadRequest(f"{name}: expected a whole number from {least} to {most}")
        return value

    def flag(self, name: str) -> bool:
        """Read a boolean, false by default."""
        value = self.values.get(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise BadRequest(f"{name}: expected true or false")
        return value


def check_unicode(text: str, name: str) -> str:
    """The text of the field `name`. BadRequest for half a surrogate pair, which JSON may contain."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadRequest(f"{name}: half of a surrogate pair, expected valid Unicode") from error
    return text


def check_charset(request: Request) -> None:
    """BadRequest for a form that names another character set than UTF-8; Starlette fails at some names."""
    header = Message()
    header["Content-Type"] = request.headers["content-type"]
    if (name := header.get_content_charset("utf-8")) not in ("utf-8", "utf8", "us-ascii"):
        raise BadRequest(f"the form's charset is {shown(name)}, expected utf-8")


def decode_form(body: bytes) -> str:
    """Decode a form. BadRequest unless it is UTF-8."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest("the form is not in UTF-8") from error


def parse_form(body: bytes) -> dict[str, str]:
    """Parse an urlencoded form or a query string; of equal names the last one counts. BadRequest unless it is
    UTF-8, also when unescaped, and for more than MAX_FIELDS fields."""
    try:
        text = body.decode("utf-8")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError as error:
        raise BadRequest("the form is not in UTF-8") from error
    except ValueError as error:
        raise BadRequest(f"expected at most {MAX_FIELDS} fields") from error
    return dict(pairs)


def parse_json(body: bytes) -> Fields:
    """Parse a JSON object. BadRequest for anything else."""
    try:
        values = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is not JSON in UTF-8") from error
    if not isinstance(values, dict):
        raise BadRequest("the body is not a JSON object")
    return Fields(values)


def split_lines(text: str) -> list[str]:
    r"""Split a text into lines, which end in \n or \r\n; the last line may lack its end."""
    return split_all_lines(text.removesuffix("\n"))


def split_all_lines(text: str) -> list[str]:
    r"""Split a text like `split_lines`, but a \n at the end is followed by an empty line."""
    return [line.removesuffix("\r") for line in text.split("\n")]
