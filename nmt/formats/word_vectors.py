"""Word vectors as text: a line `word v_1 ... v_D` for each word, separated by blanks. word2vec and fastText
write a first line with the numbers of words and of columns; GloVe writes none."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.io import files
from nmt.io.numbers import counted, shown

Vector = NDArray[np.float32]
HEADER = re.compile("([0-9]{1,12}) ([0-9]{1,6})")
LARGEST = float(np.finfo(np.float32).max)


def write(path: str | Path, words: Sequence[str], vectors: Iterable[Sequence[float]]) -> None:
    """Write float32 vectors, one for each word, in word2vec's format; `read` returns exactly the same
    numbers. ValueError if there are more or fewer vectors than words, UserError if the file cannot be
    written."""
    rows = iter(vectors)
    first = list(islice(rows, 1))
    lines = (
        " ".join([word, *(f"{value:.9g}" for value in row)])
        for word, row in zip(words, chain(first, rows), strict=True)
    )
    files.write_text(path, chain([f"{len(words)} {len(first[0]) if first else 0}"], lines))


def read(path: str | Path, wanted: Container[str], size: int, key: str) -> Iterator[tuple[str, Vector]]:
    """Yield the vectors (size,) of the wanted words of a file, plain or gzip, which is read line by line.
    Skips words that contain blanks, which some files have.

    DataError with the line for vectors of another size (`key`: the setting with the size), for values that
    are not finite numbers, for a wanted word that occurs twice, for bytes that are not UTF-8, for an empty
    file, and for fewer or more words than its first line says. For words that are not wanted only the number
    of values is checked.
    """
    name, lines, promised, seen = files.name_of(path), files.read_lines(path), None, set[str]()
    number, rows = 0, 0
    for number, line in enumerate(lines, 1):
        line = line.rstrip(" ")
        if number == 1 and (header := HEADER.fullmatch(line)):
            promised = int(header[1])
            check_size(int(header[2]), size, f"{name}:1", key)
            continue
        rows += 1
        location = f"{name}:{number}"
        word, _, rest = line.partition(" ")
        if (size_of_line := rest.count(" ") + bool(rest)) != size and not has_blanks(line, size):
            check_size(size_of_line, size, location, key)
        elif size_of_line == size and word in wanted:
            if word in seen:
                raise DataError(f"{location}: {shown(word)} occurs twice; remove one of its lines")
            seen.add(word)
            yield word, parse_vector(rest, location)
    if promised is not None and rows != promised:
        words = counted(rows, "word")
        raise DataError(f"{name}: {words}, but its first line promises {promised:,}; was it copied whole?")
    if not number:
        raise DataError(f"{name}: empty file, expected lines 'word v_1 ... v_{size}'")


def check_size(actual: int, size: int, location: str, key: str) -> None:
    """DataError for a vector of `actual` numbers, if the setting `key` says `size`. `location`: file:line."""
    if actual != size:
        raise DataError(
            f"{location}: a vector of {actual} numbers, expected {size} as {key} says; set {key} to the size "
            "of the vectors, or is this not a file of word vectors?"
        )


def has_blanks(line: str, size: int) -> bool:
    """Whether the word of a line has blanks: a field between its first and the last `size` is no number."""
    more = line.split(" ")[1:-size]
    return bool(more) and not all(map(is_number, more))


def is_number(text: str) -> bool:
    """Whether Python's float() accepts the text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def parse_vector(text: str, location: str) -> Vector:
    """Parse numbers separated by blanks as a float32 vector. DataError, which begins with `location`, for one
    that is malformed or not finite."""
    parts = text.split(" ")
    try:
        with np.errstate(over="ignore"):
            values = np.array(list(map(float, parts)), np.float32)
    except ValueError:
        values = np.full(len(parts), np.nan, np.float32)
    if not np.isfinite(values).all():
        wrong = next(part for part in parts if not is_number(part) or not abs(float(part)) <= LARGEST)
        raise DataError(f"{location}: {shown(wrong)} is not a finite number of 32 bits")
    return values
