"""Word alignments in Pharaoh's format: lines `0-0 1-2`, source word first, counted from 0."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nmt.errors import DataError
from nmt.io import files

Links = frozenset[tuple[int, int]]  # (source word, target word), counted from 0

POINT = re.compile(r"[0-9]{1,9}-[0-9]{1,9}")
GOLD_POINT = re.compile(r"([0-9]{1,9})([-?p])([0-9]{1,9})")


@dataclass(frozen=True)
class GoldLinks:
    """Links by annotators: the sure ones, and the possible ones, these included (Och and Ney 2003)."""

    sure: Links
    possible: Links


def parse(line: str, location: str) -> Links:
    """Parse the links of a line. DataError, which begins with `location`, for anything but points i-j."""
    words = files.split_words(line)
    for word in words:
        if not POINT.fullmatch(word):
            raise DataError(
                f"{location}: {word[:30]!r} is not an alignment point, expected source-target such as "
                "0-0 1-2 (words are counted from 0)"
            )
    return frozenset(
        (int(source), int(target)) for source, _, target in (word.partition("-") for word in words)
    )


def format_links(links: Links) -> str:
    """Format the links of a sentence pair, sorted: `0-0 1-2`"""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def read(path: str | Path) -> Iterator[Links]:
    """Yield the links of each line of a file, plain or gzip. DataError for a malformed line."""
    for number, line in enumerate(files.read_lines(path), 1):
        yield parse(line, f"{files.name_of(path)}:{number}")


def check_points(links: Links, source: int, target: int, location: str) -> None:
    """DataError for a link outside a sentence pair. `source`, `target`: its numbers of words; `location`:
    file:line, for the message."""
    for a, b in links:
        if a >= source or b >= target:
            raise DataError(
                f"{location}: point {a}-{b} is outside the sentence pair ({source} and {target} words); is "
                "the source side first, and does the text match?"
            )


def parse_gold(line: str, location: str, first: int = 0) -> GoldLinks:
    """Parse a line of a gold alignment: `i-j` is sure, `i?j` or `ipj` possible. `first`: the number of the
    first word in the file, 0 or 1; links are returned from 0. DataError, which begins with `location`, for
    anything else."""
    sure, possible = set[tuple[int, int]](), set[tuple[int, int]]()
    for word in files.split_words(line):
        match = GOLD_POINT.fullmatch(word)
        if not match or min(int(match[1]), int(match[3])) < first:
            raise DataError(
                f"{location}: {word[:30]!r} is not a point of a gold alignment, expected "
                f"{first}-{first} (sure) or {first}?{first} (possible); words are counted from {first}"
            )
        link = int(match[1]) - first, int(match[3]) - first
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldLinks(frozenset(sure), frozenset(possible))
