"""The names of engines."""

import re

from nmt.text.languages import CODES

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PAIR = re.compile(r"([a-z]{2,3})-([a-z]{2,3})(?![a-z])")


def languages(name: str) -> tuple[str, str]:
    """The languages that a name such as en-fr or de-en.small says; empty without any."""
    found = PAIR.match(name)
    return (found[1], found[2]) if found and {found[1], found[2]} <= CODES else ("", "")


def parse_name(text: str) -> tuple[str, str]:
    """NAME=PATH -> name, path. ValueError for anything else."""
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise ValueError(f"{text!r}: expected NAME=PATH")
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r}: expected a name of letters, digits, '.', '_' and '-'")
    return name, path
