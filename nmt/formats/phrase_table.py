"""The lines of a Moses phrase table: `source ||| target ||| scores ||| alignment ||| counts ||| sparse |||
properties`.

Lines are bytes: only the score field is parsed, and the fields after it are kept unchanged. Training
takes any table (`read`); a program that writes one for Moses uses `read_strict`, which refuses every
line that Moses would refuse, crash on or silently misread.
"""

import logging
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import le
from pathlib import Path
from typing import NoReturn

from nmt.errors import DataError
from nmt.io import files, numbers
from nmt.text.tokenize import unescape

log = logging.getLogger(__name__)

# Each pattern matches in one way only: backtracking over a bad line of a thousand numbers would take ages.
NUMBER = rb"\+?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
SCORES = re.compile(rb"[ \t]*" + NUMBER + rb"(?:[ \t]+" + NUMBER + rb")*[ \t\r]*")
POINT = rb"\d{1,9}-\d{1,9}"
ALIGNMENT = re.compile(rb"[ \t]*(?:" + POINT + rb"(?:[ \t]+" + POINT + rb")*)?[ \t\r]*")
PROPERTY = re.compile(rb"\{\{(\S*)")
# The phrase properties that Moses registers; it stops at any other.
PROPERTIES = set(
    b"Counts LHS NonTermContext NonTermContextTarget Orientation SourceLabels SpanLength "
    b"TargetConstituentBoundariesLeft TargetConstituentBoundariesRightAdjacent TargetPreferences".split()
)
BINARY = {".minphr", ".binphr", ".minlexr"}  # suffixes of Moses' compact and on-disk tables
DIGITS = b"0123456789"
SHORT = 40  # bytes of a field whose digits are surely no number beyond all bounds
LARGEST = 3.4e38  # largest float32
DIRECT = 2  # index of p(target | source) among Moses' scores
BLOCK = 1000  # lines that are checked together
SMALLEST = 3.8e-44  # smallest float32: anything below is read as 0, whose log Moses floors at -100


@dataclass(slots=True)
class PhrasePair:
    """One line of a table.

    `source` and `target` are bytes with Moses' escapes in place; `raw[:end]` is the line up to its last
    score.
    """

    source: bytes
    target: bytes
    scores: bytes  # the score field
    raw: bytes  # the whole line
    end: int

    def line(self, extra: bytes = b"") -> bytes:
        """The line with `extra` (one or more scores) appended to the score field."""
        return self.raw[: self.end] + b" " + extra + self.raw[self.end :] if extra else self.raw

    def fields(self) -> list[bytes]:
        """All fields of the line, without the blanks around them."""
        return [part.strip(b" \t\r") for part in self.raw.split(b"|||")]


def parse(line: bytes, location: str) -> PhrasePair:
    """Parse a line. DataError for fewer than 3 fields, an empty phrase or an empty score field.

    `location` is file:line, for messages.
    """
    return parse_complete(line) or refuse_incomplete(line, location)


def parse_complete(line: bytes) -> PhrasePair | None:
    """Parse a line; None if `parse` refuses it."""
    parts = line.split(b"|||", 3)
    if len(parts) < 3:
        return None
    source, target, scores = parts[0].strip(b" \t"), parts[1].strip(b" \t"), parts[2].strip(b" \t\r")
    if not (source and target and scores):
        return None
    end = len(parts[0]) + len(parts[1]) + 6 + len(parts[2].rstrip(b" \t\r"))
    return PhrasePair(source, target, scores, line, end)  # keywords would cost a fifth of the reading time


def refuse_incomplete(line: bytes, location: str) -> NoReturn:
    """Raise the DataError for a line that lacks fields, a phrase or scores. `location`: file:line."""
    parts = line.split(b"|||", 3)
    if len(parts) < 3:
        if not line.strip():
            raise DataError(
                f"{location}: empty line, expected source ||| target ||| scores ...; Moses stops at it ('Ran "
                "out of tokens')"
            )
        raise DataError(
            f"{location}: {len(parts)} field{'s' * (len(parts) > 1)}, expected 3 to 7 (source ||| target ||| "
            f"scores ...). {guess_format(line)}"
        )
    source, target = parts[0].strip(b" \t"), parts[1].strip(b" \t")
    if not source or not target:
        side, effect = (
            ("target", "crashes when such a line has an alignment")
            if source
            else ("source", "skips the line with a misleading message")
        )
        raise DataError(f"{location}: empty {side} phrase; Moses {effect}. Remove the line")
    raise DataError(f"{location}: no scores, expected numbers in the third field")


def guess_format(line: bytes) -> str:
    """Guess the format of a file without fields from its first line, as a hint for the error message."""
    if b"\0" in line or line[:4] == b"\xfd7zX":
        return "This is a binary file: give the text table (plain or gzip) that the binary one was made from"
    return "Is this a phrase table?"


def check(pair: PhrasePair, location: str) -> None:
    """DataError for a line that Moses refuses, crashes on, or misreads. `location`: file:line."""
    raw = pair.raw
    if not raw.isascii():
        if raw.startswith(b"\xef\xbb\xbf"):
            raise DataError(
                f"{location}: a byte order mark, which Moses takes for a part of the first word; remove it, "
                "e.g. sed '1s/^\\xef\\xbb\\xbf//'"
            )
        path, _, number = location.rpartition(":")
        files.decode(raw, path, int(number))
    elif b"\0" in raw:
        raise DataError(f"{location}: NUL character. {guess_format(raw)}")
    for name, phrase in (("source", pair.source), ("target", pair.target)):
        if b"|" in phrase:
            raise DataError(
                f"{location}: '|' in the {name} phrase {quoted(phrase)}: Moses cuts the word there, as in "
                "factored tables, which are not supported; write &#124; for a literal one, or give a table "
                "of one factor"
            )
        if b"[" in phrase and any(word[:1] == b"[" and word[-1:] == b"]" for word in phrase.split(b" ")):
            raise DataError(
                f"{location}: non-terminal in the {name} phrase {quoted(phrase)}: a hierarchical (Hiero) "
                "table, which is not supported; give a phrase-based one, or write &#91; and &#93; for "
                "literal brackets"
            )
    check_scores(pair.scores, location)
    if raw.find(b"|||", pair.end) >= 0:
        check_rest(pair, location)


def check_scores(scores: bytes, location: str) -> None:
    """DataError unless scores are numbers of 0 or more in single precision. `location`: file:line."""
    if SCORES.fullmatch(scores) and max(map(float, scores.split())) <= LARGEST:
        return
    for word in scores.split():
        text = word.decode("utf-8", "replace")
        if re.fullmatch(rb"-(?:" + NUMBER + rb"|inf)", word):
            raise DataError(
                f"{location}: score {text} is negative, expected a probability: Moses takes its logarithm, "
                "gets nan and silently drops the pair; write exp(log p) instead of log p"
            )
        if re.fullmatch(rb"\d+-\d+", word):
            raise DataError(
                f"{location}: {text} where a score is expected: an alignment? Tables phrase-table.half.* "
                "have another order of fields; Moses refuses them"
            )
        if not re.fullmatch(NUMBER, word):
            infinite = word.lstrip(b"+").lower().startswith(b"inf")
            effect = "prints -nan totals" if infinite else "stops with 'Bad score'"
            raise DataError(
                f"{location}: score {text} is not a number, expected one like 0.25 or 1e-05; Moses {effect}"
            )
        if float(word) > LARGEST:
            raise DataError(
                f"{location}: score {text} is infinite in single precision; Moses prints -nan totals"
            )


def check_rest(pair: PhrasePair, location: str) -> None:
    """DataError for fields after the scores that Moses cannot use: an alignment, a phrase property, or too
    many. `location`: file:line."""
    parts = pair.raw[pair.end :].split(b"|||")[1:]
    if len(parts) > 4:
        raise DataError(
            f"{location}: {len(parts) + 3} fields, expected 3 to 7 (source ||| target ||| scores ||| "
            "alignment ||| counts ||| sparse ||| properties)"
        )
    if not ALIGNMENT.fullmatch(parts[0]):
        raise DataError(
            f"{location}: alignment {quoted(parts[0].strip())} is not of the form 0-0 1-2; Moses stops with "
            "'Error parsing alignment'"
        )
    points = parts[0].split()
    if points:
        sides = [point.split(b"-") for point in points]
        source, target = max(int(a) for a, _ in sides), max(int(b) for _, b in sides)
        lengths = len(pair.source.split()), len(pair.target.split())
        if source >= lengths[0] or target >= lengths[1]:
            raise DataError(
                f"{location}: alignment {quoted(parts[0].strip())} points outside the phrases ({lengths[0]} "
                f"and {lengths[1]} words); Moses continues with a nonsense alignment"
            )
    if len(parts) == 4 and b"{{" in parts[3]:
        for name in PROPERTY.findall(parts[3]):
            if name.rstrip(b"}") not in PROPERTIES:
                raise DataError(
                    f"{location}: phrase property {quoted(name)} is unknown to Moses, which stops ('Phrase "
                    "property is not registered'); remove it"
                )


def quoted(text: bytes) -> str:
    """Quote the beginning of a field for a message."""
    return repr(text[:60].decode("utf-8", "replace"))


def read(path: str | Path) -> Iterator[PhrasePair]:
    """Yield the phrase pairs of a table (plain, gzip or `-`), in its order. DataError with the line number
    for a line that `parse` refuses; other faults pass."""
    name = files.name_of(path)
    for number, line in enumerate(files.read_byte_lines(path), 1):
        yield parse_complete(line) or refuse_incomplete(line, f"{name}:{number}")


def read_strict(path: str | Path, unsorted: bool = False) -> Iterator[PhrasePair]:
    """Yield the phrase pairs of a table for Moses: all lines valid, with the same number of scores, in
    whole-line `LC_ALL=C` order.

    Memory does not grow with the table. DataError with the line number for the first problem; an empty table
    is an error too. `unsorted` accepts any order, with one warning; the first score of 0 is a warning, too.
    """
    if str(path) != "-" and (Path(path).is_dir() or Path(path).suffix in BINARY):
        raise DataError(
            f"{path}: a binary table, or a directory; give the text table (plain or gzip) that it was made "
            "from"
        )
    rows, number = StrictRows(files.name_of(path), unsorted), 1
    lines, size = files.read_byte_lines(path), BLOCK if os.path.isfile(path) else 1  # a stream does not wait
    while block := list(islice(lines, size)):
        pairs = rows.check_together(block)
        if pairs is None:
            yield from (rows.check(line, at) for at, line in enumerate(block, number))
        else:
            yield from pairs
        number += len(block)
    if not rows.columns:
        raise DataError(f"{rows.name}: empty file, expected a phrase table")


@dataclass
class StrictRows:
    """Checks the rows of a table for `read_strict`, in order. `name`: of the table; `unsorted`: any order is
    accepted. Rows are checked together, in a third of the time, and one by one where that finds a problem."""

    name: str
    unsorted: bool
    columns: int = 0  # scores of a row; 0 before the first one
    previous: bytes = b""  # the line before
    floored: bool = False  # whether there was a score of 0
    warned: bool = False  # that the rows are not sorted

    def check_together(self, lines: Sequence[bytes]) -> list[PhrasePair] | None:
        """Parse rows that are surely sound. None if one of them has to be checked by itself."""
        text = b"\n".join(lines)
        if any(sign in text for sign in (b"\0", b"\xef\xbb\xbf", b"{{")):
            return None
        if not all(map(le, (self.previous, *lines), lines)):
            return None
        try:
            text.decode("utf-8")
            pairs = [parse(line, self.name) for line in lines]
        except (UnicodeDecodeError, DataError):
            return None
        columns = len(pairs[0].scores.split())
        if columns != (self.columns or columns):
            return None
        if not (are_sound_scores(pairs, columns, self.floored) and are_sound_phrases(pairs)):
            return None
        self.columns, self.previous = columns, lines[-1]
        return pairs

    def check(self, line: bytes, number: int) -> PhrasePair:
        """Parse one row, and check it as `read_strict` says. `number`: of its line."""
        location = f"{self.name}:{number}"
        pair = parse(line, location)
        check(pair, location)
        values = pair.scores.split()
        self.columns = self.columns or len(values)
        if len(values) != self.columns:
            raise DataError(
                f"{location}: {len(values)} scores, but the lines above have {self.columns}; Moses refuses "
                "such a table; are these parts of two tables?"
            )
        if not self.floored and min(map(float, values)) < SMALLEST:
            log.warning(
                "%s: a score of 0 (below %g), which Moses floors at a logarithm of -100, here and perhaps "
                "below",
                location,
                SMALLEST,
            )
            self.floored = True
        if line < self.previous and not self.unsorted:
            raise DataError(
                f"{location}: not in whole-line LC_ALL=C order, which Moses' processPhraseTableMin needs; "
                "sort it (zcat TABLE | LC_ALL=C sort), or give --unsorted if the command has it"
            )
        if line < self.previous and not self.warned:
            log.warning(
                "%s: not in LC_ALL=C order: Moses' text loader takes the table, processPhraseTableMin aborts "
                "on it",
                location,
            )
            self.warned = True
        self.previous = line
        return pair


def are_sound_scores(pairs: Sequence[PhrasePair], columns: int, floored: bool) -> bool:
    """Whether all rows surely have `columns` scores that `check_scores` accepts. `floored`: they may be 0."""
    text = b" ".join(pair.scores for pair in pairs)
    if text.translate(None, b"0123456789.e- ") or text.count(b"-") != text.count(b"e-"):
        return False
    if any(pair.scores.count(b" ") != columns - 1 for pair in pairs):
        return False
    try:
        values = list(map(float, text.split(b" ")))
    except ValueError:
        return False
    return max(values) <= LARGEST and (floored or min(values) >= SMALLEST)


def are_sound_phrases(pairs: Sequence[PhrasePair]) -> bool:
    """Whether `check` surely accepts the phrases and alignments of all rows, and there are 3 to 7 fields."""
    phrases = b"\n".join([phrase for pair in pairs for phrase in (pair.source, pair.target)])
    if any(sign in phrases for sign in (b"|", b"[", b"\t", b"  ")):
        return False
    for pair in pairs:
        rest = pair.raw[pair.end :].split(b"|||", 5)
        if len(rest) == 1:
            continue
        points = rest[1].replace(b"-", b" ").split()
        if len(rest) > 5 or not ALIGNMENT.fullmatch(rest[1]):
            return False
        if points and (
            max(map(int, points[::2])) > pair.source.count(b" ")
            or max(map(int, points[1::2])) > pair.target.count(b" ")
        ):
            return False
    return True


def words(phrase: bytes, location: str = "phrase table") -> list[str]:
    """The words of a phrase as a model reads them, without Moses' escapes. Only space and tab separate words.
    DataError, which begins with `location`, for a phrase that is not UTF-8."""
    try:
        text = phrase.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{location}: phrase {phrase!r} is not UTF-8") from error
    return [unescape(word) for word in files.split_words(text)]


def direct(pair: PhrasePair) -> float:
    """Natural log p(target | source) of a phrase pair, at least ln 1e-38. DataError if the pair has fewer
    than three scores, or this one is not a finite number."""
    scores = pair.scores.split()
    if len(scores) <= DIRECT:
        raise DataError(f"the table has {len(scores)} scores, but p(target | source) is Moses' third")
    score = scores[DIRECT]
    try:
        value = float(score) if is_decimal(score) else numbers.real(score.decode("utf-8", "replace"))
        return math.log(max(1e-38, value))
    except ValueError as error:
        raise DataError(
            f"score {numbers.shown(scores[DIRECT])} of the pair {quoted(pair.source)} ||| "
            f"{quoted(pair.target)} is not a finite number"
        ) from error


def is_decimal(word: bytes) -> bool:
    """Whether a word is surely a finite number that float() reads as `numbers.real` does."""
    return len(word) < SHORT and not word.translate(None, DIGITS + b".")


def counts(pair: PhrasePair, location: str = "") -> list[int]:
    """How often target, source and both were extracted, rounded down; [] if the table has no counts.

    DataError for counts that are not numbers; `location` is file:line, or empty if unknown.
    """
    fields = pair.raw[pair.end :].split(b"|||", 3)  # the first ends the scores
    if len(fields) <= 2:
        return []
    if len(fields[2]) < SHORT and not fields[2].translate(None, DIGITS + b" "):
        return list(map(int, fields[2].split()))
    try:
        return list(map(int, numbers.reals(word.decode("utf-8", "replace") for word in fields[2].split())))
    except ValueError as error:
        raise DataError(
            f"{location}{': ' * bool(location)}counts of the pair {quoted(pair.source)} ||| "
            f"{quoted(pair.target)}: {error}"
        ) from error


def source_count(pair: PhrasePair) -> int:
    """How often the source phrase was extracted: the second of Moses' counts (target, source, joint); 0
    without counts. DataError as from `counts`."""
    pair_counts = counts(pair)
    return pair_counts[1] if len(pair_counts) > 1 else 0


def joint_count(pair: PhrasePair) -> int:
    """How often both phrases were extracted together; 0 without counts. DataError as from `counts`."""
    pair_counts = counts(pair)
    return pair_counts[2] if len(pair_counts) > 2 else 0
