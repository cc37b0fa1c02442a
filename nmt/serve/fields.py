"""The fields of a request's JSON object, or of its form: each is checked where it is read."""

import json
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from nmt.errors import UserError
from nmt.io.numbers import shown

MOST_FIELDS = 100  # of a form


class BadRequest(UserError):
    """What is wrong with a request, for whoever sent it."""


class Fields:
    """The fields of a request; `text` ... read one of them, and BadRequest says what is wrong with it."""

    def __init__(self, values: Mapping[str, object], lenient: bool = False) -> None:
        """`lenient`: a number may be a text, as in a form."""
        self.values, self.lenient = values, lenient

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def only(self, names: Sequence[str]) -> None:
        """BadRequest for a field that is none of these."""
        for name in self.values:
            if name not in names:
                raise BadRequest(f"unknown field {shown(name)}, expected {', '.join(names)}")

    def text(self, name: str, default: str | None = None) -> str:
        """A text. Without a default it has to be there."""
        value = self.values.get(name)
        if value is None:
            if default is None:
                raise BadRequest(f"missing field {name}")
            return default
        if not isinstance(value, str):
            raise BadRequest(f"{name}: expected a string")
        return encodable(value, name)

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        value = self.values.get(name)
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise BadRequest(f"{name}: expected a list of strings")
        return [encodable(one, name) for one in value]

    def pairs(self, name: str) -> list[tuple[str, str]]:
        """The names and texts of an object; none where it is not there."""
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
            raise BadRequest(f"{name}: expected an object of strings")
        return [(encodable(one, name), encodable(other, name)) for one, other in value.items()]

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number within bounds."""
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
        """True or false; false by default."""
        value = self.values.get(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise BadRequest(f"{name}: expected true or false")
        return value


def encodable(text: str, name: str) -> str:
    """A text that is valid Unicode: JSON may name half a character. BadRequest otherwise."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadRequest(f"{name}: half of a surrogate pair, expected valid Unicode") from error
    return text


def decoded(body: bytes) -> str:
    """The text of a form. BadRequest for one in another encoding."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest("the form is not in UTF-8") from error


def of_form(body: bytes) -> dict[str, str]:
    """The fields of an urlencoded form, or of a query string. BadRequest for anything but UTF-8, escaped or
    not."""
    try:
        pairs = parse_qsl(decoded(body), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except UnicodeDecodeError as error:
        raise BadRequest("the form is not in UTF-8") from error
    except ValueError as error:
        raise BadRequest(f"expected at most {MOST_FIELDS} fields") from error
    return dict(pairs)


def of_json(body: bytes) -> Fields:
    """The fields of a JSON object."""
    try:
        found = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is no JSON in UTF-8") from error
    if not isinstance(found, dict):
        raise BadRequest("the body is no JSON object")
    return Fields(found)


def lines_of(text: str) -> list[str]:
    r"""The lines of a text: only \n ends one, a \r before it is dropped, and the last one needs none."""
    return split(text.removesuffix("\n"))


def split(text: str) -> list[str]:
    r"""As `lines_of`; a \n at the end is followed by an empty line."""
    return [line.removesuffix("\r") for line in text.split("\n")]
