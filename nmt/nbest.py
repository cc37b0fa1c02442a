"""n-best lists in Moses' format: `id ||| words ||| name= v v name= v ||| total`, ids from 0.

Moses writes two blanks before the second `|||`; both forms are read. Fields after the total (segmentation, alignment) are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nmt import files
from nmt.errors import DataError


@dataclass
class Hypothesis:
    """One translation. `features` keeps the written order; values are natural logarithms where they are probabilities."""

    sentence: int
    words: list[str]
    features: dict[str, list[float]]
    total: float
    rest: list[str] = field(default_factory=list)


def format_number(value: float) -> str:
    return f"{value:.6g}"


def write(hypothesis: Hypothesis) -> str:
    """One line, without its end. A `|` inside a word becomes `&#124;`, as Moses' tokenizer does, so that fields stay fields."""
    words = " ".join(word.replace("|", "&#124;") for word in hypothesis.words)
    features = " ".join(f"{name}= {' '.join(map(format_number, values))}" for name, values in hypothesis.features.items())
    return " ||| ".join([str(hypothesis.sentence), words, features, format_number(hypothesis.total), *hypothesis.rest])


def read(path: str | Path) -> Iterator[Hypothesis]:
    """The entries of a file, in its order. DataError with the line number for a malformed line."""
    for number, line in enumerate(files.read_lines(path), 1):
        yield parse(line, f"{files.name_of(path)}:{number}")


def parse(line: str, where: str) -> Hypothesis:
    parts = [part.strip(" ") for part in line.split("|||")]
    if len(parts) < 4:
        raise DataError(f"{where}: {len(parts)} fields, expected 4 or more (id ||| words ||| features ||| total)")
    try:
        sentence, total = int(parts[0]), float(parts[3])
    except ValueError as error:
        raise DataError(f"{where}: id or total is not a number ({error})") from error
    features: dict[str, list[float]] = {}
    name = ""
    for token in files.split_words(parts[2]):
        if token.endswith("="):
            name = token[:-1]
            features[name] = []
        elif not name:
            raise DataError(f"{where}: feature value {token!r} without a name; write the list with labels")
        else:
            try:
                features[name].append(float(token))
            except ValueError as error:
                raise DataError(f"{where}: {token!r} in feature {name} is not a number") from error
    words = [word.replace("&#124;", "|") for word in files.split_words(parts[1])]
    return Hypothesis(sentence, words, features, total, parts[4:])
