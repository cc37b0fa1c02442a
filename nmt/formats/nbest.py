"""n-best lists in Moses' format: `id ||| words ||| name= v v name= v ||| total`, ids from 0.

Moses writes two blanks before the second `|||`; one is accepted too. Fields after the total (segmentation,
alignment) are kept. Values without labels are read as one feature, UNLABELED.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nmt.errors import DataError
from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from nmt.io import files, numbers

UNLABELED = "Unlabeled0"  # name of the feature whose values have no label; written without it
SEGMENTATION = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?=[0-9]{1,9}(-[0-9]{1,9})?")


@dataclass
class Hypothesis:
    """One translation in an n-best list.

    `features` keeps the order of the line; values that are probabilities are natural logarithms.
    """

    sentence: int  # id of the source sentence, from 0
    words: list[str]  # with `|` instead of &#124;
    features: dict[str, list[float]]  # values by feature name
    total: float
    rest: list[str] = field(default_factory=list)  # fields after the total
    raw: str = field(default="", compare=False, repr=False)  # the line it was read from

    @property
    def text(self) -> list[str]:
        """The words as they stand on the line, with Moses' escapes."""
        if self.raw:
            return files.split_words(self.raw.split("|||", 2)[1])
        return [escape_bar(word) for word in self.words]


def format_number(value: float) -> str:
    """Format a score with six significant digits, as Moses does."""
    return f"{value:.6g}"


def escape_bar(word: str) -> str:
    """Replace each `|` in a word by `&#124;`, since it separates fields."""
    return word.replace("|", "&#124;")


def format_features(features: Mapping[str, Sequence[float]]) -> str:
    """Format the third field: `name= value value name= value`. The values of UNLABELED get no name."""
    labelled = (
        (f"{name}= " if name != UNLABELED else "") + " ".join(map(format_number, values))
        for name, values in features.items()
    )
    return " ".join(labelled)


def write(hypothesis: Hypothesis) -> str:
    """Format a hypothesis as a line without its end. A `|` becomes `&#124;`, as in Moses' tokenizer."""
    words = " ".join(map(escape_bar, hypothesis.words))
    return " ||| ".join(
        [
            str(hypothesis.sentence),
            words,
            format_features(hypothesis.features),
            format_number(hypothesis.total),
            *hypothesis.rest,
        ]
    )


def extend_line(
    hypothesis: Hypothesis, features: Mapping[str, Sequence[float]], total: float | None = None
) -> str:
    """Return the line from which a hypothesis was read (`raw`, which must not be empty), with more features
    at the end of its third field and, if given, another total; all other bytes stay."""
    parts = hypothesis.raw.split("|||")
    if features:
        parts[2] = f"{parts[2].rstrip(' ')} {format_features(features)} "
    if total is not None:
        parts[3] = f" {format_number(total)}{' ' if len(parts) > 4 else ''}"
    return "|||".join(parts)


def replace_field(line: str, index: int, text: str) -> str:
    """Replace the text of field `index`, from 0, of a line. IndexError if there is no such field."""
    parts = line.split("|||")
    parts[index] = f" {text} "
    return "|||".join(parts)


def read(path: str | Path) -> Iterator[Hypothesis]:
    """Yield the hypotheses of a file, in its order. DataError with the line number for a malformed line."""
    for number, line in enumerate(files.read_lines(path), 1):
        yield parse(line, f"{files.name_of(path)}:{number}")


def by_sentence(path: str | Path) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Group the hypotheses by sentence: (id, hypotheses).

    DataError as from `read`, if ids decrease, if dense features differ from line to line, and for an empty
    file. Moses' tuners read these by position: they would mistake a missing or moved one for another. Sparse
    features, those with `_` in their name, may differ.
    """
    name = files.name_of(path)
    group: list[Hypothesis] = []
    first: dict[str, int] | None = None
    for number, hypothesis in enumerate(read(path), 1):
        dense = {name: len(values) for name, values in hypothesis.features.items() if "_" not in name}
        first = dense if first is None else first
        if list(dense.items()) != list(first.items()):
            raise DataError(
                f"{name}:{number}: features {list_features(dense)}, but the lines above have "
                f"{list_features(first)}; Moses' tuners would mix them up"
            )
        if group and hypothesis.sentence != group[0].sentence:
            if hypothesis.sentence < group[0].sentence:
                raise DataError(
                    f"{name}:{number}: id {hypothesis.sentence} after id {group[0].sentence}; entries of a "
                    "sentence belong together, and ids increase"
                )
            yield group[0].sentence, group
            group = []
        group.append(hypothesis)
    if not group:
        raise DataError(f"{name}: empty file, expected an n-best list")
    yield group[0].sentence, group


def list_features(features: Mapping[str, int]) -> str:
    """Format feature names with their numbers of values, for a message; `none` without features."""
    return " ".join(f"{name}({count})" for name, count in features.items()) or "none"


def parse(line: str, location: str) -> Hypothesis:
    """Parse a line. DataError if a field is missing, a value is not a finite number, or a feature occurs
    twice.

    `location` is file:line, for messages.
    """
    parts = [part.strip(" ") for part in line.split("|||")]
    if len(parts) < 4:
        raise DataError(
            f"{location}: {len(parts)} fields, expected 4 or more (id ||| words ||| features ||| total)"
        )
    try:
        sentence = numbers.count(parts[0])
    except ValueError as error:
        raise DataError(f"{location}: id: {error}, expected 0 or more") from error
    try:
        total = numbers.real(parts[3])
    except ValueError as error:
        raise DataError(f"{location}: total: {error}") from error
    words = files.split_words(parts[1])
    if "&#124;" in parts[1]:
        words = [word.replace("&#124;", "|") for word in words]
    # By position: keywords would cost a twentieth of the reading time.
    return Hypothesis(sentence, words, parse_features(parts[2], location), total, parts[4:], line)


def parse_features(text: str, location: str) -> dict[str, list[float]]:
    """Parse a feature field: values by feature name. DataError, which begins with `location`, for a field
    that Moses' tuners would misread."""
    features: dict[str, list[float]] = {}
    name = UNLABELED
    parse_value = float if numbers.plain(text) else numbers.real
    for token in files.split_words(text):
        if token[-1] == "=" and len(token) > 1:
            name = token[:-1]
            if name in features:
                raise DataError(f"{location}: feature {name} occurs twice on the line; remove one of them")
            features[name] = []
            continue
        try:
            value = parse_value(token)
        except ValueError as error:
            raise DataError(f"{location}: {why_no_number(token)}") from error
        if not math.isfinite(value):
            raise DataError(
                f"{location}: {numbers.shown(token)} in feature {name}; Moses' tuners drop or misread "
                "such a line"
            )
        features.setdefault(name, []).append(value)
    return features


def why_no_number(token: str) -> str:
    """Describe, for a message, why a token of the feature field is not a number."""
    if token[-1] == ":":
        return (
            f"{numbers.shown(token)} is a label of Moses before version 2, which its tuners now read as "
            "the number 0; write it with = instead of :"
        )
    if re.fullmatch(r"[A-Za-z]\w*=.+", token):
        return (
            f"{numbers.shown(token)} has no blank after '=': Moses' tuners read it as 0; write "
            f"{numbers.shown(token.replace('=', '= '))}"
        )
    return f"{numbers.shown(token)} is not a number, expected 'name= value value ...'"


def segmentation(hypothesis: Hypothesis, location: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The phrases of a hypothesis: (first, last) word of the source and of the target, from 0, inclusive;
    empty for a hypothesis without words.

    DataError, which begins with `location`, for a list written without -include-segmentation-in-n-best.
    """
    for text in hypothesis.rest:
        tokens = files.split_words(text)
        if tokens and all(SEGMENTATION.fullmatch(token) for token in tokens):
            return [(span(source), span(target)) for source, target in (token.split("=") for token in tokens)]
    if not hypothesis.words:
        return []
    raise DataError(
        f"{location}: no segmentation field like '0-1=0-1 2=2'; let Moses write it with "
        "-include-segmentation-in-n-best"
    )


def alignment(hypothesis: Hypothesis, location: str) -> Links:
    """The word alignment of a hypothesis: the first field of points after the total. DataError, which begins
    with `location`, for a list written without -print-alignment-info-in-n-best."""
    for index, text in enumerate(hypothesis.rest):
        tokens = files.split_words(text)
        if (tokens or index) and all(pharaoh.POINT.fullmatch(token) for token in tokens):
            return pharaoh.parse(text, location)
    if not hypothesis.words:
        return frozenset()
    raise DataError(
        f"{location}: no alignment field like '0-0 1-2' after the segmentation; let Moses write it with "
        "-print-alignment-info-in-n-best"
    )


def span(text: str) -> tuple[int, int]:
    """Parse `2` or `0-1` as (first, last)."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)
