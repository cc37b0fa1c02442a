"""The fields of a request, from a JSON object or a form; each is checked when it is read."""

import json
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from nmt.errors import UserError
from nmt.io.numbers import shown

MAX_FIELDS = 100  # of a form


class BadRequest(UserError):
    """A mistake in a request; the client gets the message."""


class Fields:
    """The fields of a request. Each method reads one of them; BadRequest for a wrong value."""

    def __init__(self, values: Mapping[str, object], lenient: bool = False) -> None:
        """`lenient`: a number may be a string, as in a form."""
        self.values, self.lenient = values, lenient

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def check_names(self, names: Sequence[str]) -> None:
        """BadRequest for a field that is not among `names`."""
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
        """Read a list of strings, which must not be missing."""
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
        """Read a whole number within bounds."""
        value = self.values.get(name)
        if value is None or (value == "" and self.lenient):
            return default
        if (
            self.lenient
            and isinstance(value, str)
            and value.isascii()
            and value.isdigit()
            and len(value) < 10
        ):
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
    """BadRequest unless a string is valid Unicode: JSON may contain half a surrogate pair."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadRequest(f"{name}: half of a surrogate pair, expected valid Unicode") from error
    return text


def decode_form(body: bytes) -> str:
    """Decode a form. BadRequest unless it is in UTF-8."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest("the form is not in UTF-8") from error


def parse_form(body: bytes) -> dict[str, str]:
    """Parse an urlencoded form or a query string. BadRequest unless it is in UTF-8, escaped or not."""
    try:
        pairs = parse_qsl(
            decode_form(body), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
        )
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
        raise BadRequest("the body is no JSON in UTF-8") from error
    if not isinstance(values, dict):
        raise BadRequest("the body is no JSON object")
    return Fields(values)


def split_lines(text: str) -> list[str]:
    r"""Split a text into lines: only \n ends one, a \r before it is dropped, and the last one needs none."""
    return split_all_lines(text.removesuffix("\n"))


def split_all_lines(text: str) -> list[str]:
    r"""Split a text like `split_lines`, but a \n at the end is followed by an empty line."""
    return [line.removesuffix("\r") for line in text.split("\n")]
