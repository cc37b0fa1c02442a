"""Word alignments in Pharaoh's format: lines `0-0 1-2`, source word first, counted from 0."""

import re
from collections.abc import Iterator
from pathlib import Path

from nmt import files
from nmt.errors import DataError

Links = frozenset[tuple[int, int]]  # (source word, target word), counted from 0

POINT = re.compile(r"[0-9]{1,9}-[0-9]{1,9}")


def parse(line: str, where: str) -> Links:
    """The links of a line. DataError for anything but points i-j, the possible links i?j or ipj included."""
    words = files.split_words(line)
    for word in words:
        if not POINT.fullmatch(word):
            raise DataError(
                f"{where}: {word[:30]!r} is no alignment point, expected source-target such as 0-0 1-2 "
                "(words are counted from 0)"
            )
    return frozenset(
        (int(source), int(target)) for source, _, target in (word.partition("-") for word in words)
    )


def read(path: str | Path) -> Iterator[Links]:
    """The links of each line of a file, plain or gzip. DataError for a line that holds anything else."""
    for number, line in enumerate(files.read_lines(path), 1):
        yield parse(line, f"{files.name_of(path)}:{number}")


def check_points(links: Links, source: int, target: int, where: str) -> None:
    """DataError for a point outside a sentence pair of these lengths."""
    for a, b in links:
        if a >= source or b >= target:
            raise DataError(
                f"{where}: point {a}-{b} is outside the sentence pair ({source} and {target} words); is the "
                "source side first, and does the text match?"
            )
