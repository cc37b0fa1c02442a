"""Strict parsing of numbers: ASCII digits, finite, and of bounded length.

Python's int() and float() also accept `1_000`, digits of other scripts, nan and inf, and int() takes minutes
for a million digits. Numbers in options and in text files are parsed here. ValueError describes the
problem; the caller adds the location.
"""

import math
import re
from collections.abc import Iterable

LONGEST = 40  # characters; more digits than a double or 64 bits can hold

INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
LARGEST = 2**63 - 1  # absolute value of an integer
ACCEPTED = "_\t\n\v\f\r\x1c\x1d\x1e\x1f"  # ASCII that float() accepts in or around a number, besides blanks


def shown(text: str | bytes, most: int = LONGEST) -> str:
    """Quote a piece of input for a message, truncated to `most` characters."""
    text = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
    return repr(text if len(text) <= most else f"{text[:most]}...")


def counted(count: int, noun: str) -> str:
    """Write a number with its noun, for a message: 1 line, 1,234 lines."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def integer(text: str) -> int:
    """Parse a whole number from -LARGEST to LARGEST, of at most 19 digits. ValueError for anything else."""
    if not INTEGER.fullmatch(text):
        raise ValueError(f"{shown(text)} is not a whole number")
    value = int(text)
    if not -LARGEST <= value <= LARGEST:
        raise ValueError(f"{shown(text)} is too large for a number")
    return value


def count(text: str) -> int:
    """Parse a whole number from 0 to LARGEST, of at most 19 digits, no sign. ValueError for anything else."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{shown(text)} is not a count")
    return int(text) if len(text) < 19 else integer(text)


def real(text: str) -> float:
    """Parse a finite number. ValueError for anything else, and for more than 400 characters."""
    if len(text) > 400 or not REAL.fullmatch(text):
        raise ValueError(f"{shown(text)} is not a number")
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{shown(text)} is too large for a number")
    return value


def plain(text: str) -> bool:
    """Whether float() may parse the words of a line: for ASCII without `_` and unusual spaces it accepts what
    `real` accepts, plus nan, inf, and numbers that are too long for `real`."""
    if not text.isascii():
        return False
    for character in ACCEPTED:  # noqa: SIM110  (twice as fast as all() or isprintable())
        if character in text:
            return False
    return True


def reals(words: Iterable[str]) -> list[float]:
    """Parse many finite numbers: as `real`, but faster, and numbers and exponents may be longer. ValueError
    for the first that is not a finite number."""
    words = list(words)
    joined = "".join(words)
    if plain(joined) and " " not in joined:
        try:
            values = list(map(float, words))
        except ValueError:
            return [real(word) for word in words]  # says which
        if all(map(math.isfinite, values)):
            return values
    return [real(word) for word in words]
