"""The lines of a Moses phrase table: `source ||| target ||| scores ||| alignment ||| counts ||| sparse ||| properties`.

Bytes in, bytes out: only the score field is ever read as anything but bytes, and whatever follows it is kept as it stands.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nmt import files
from nmt.errors import DataError

# What Moses' tokenizer writes for its own special characters; the order matters: `&amp;` is undone last.
ESCAPES = [("&#124;", "|"), ("&#91;", "["), ("&#93;", "]"), ("&lt;", "<"), ("&gt;", ">"), ("&apos;", "'"), ("&quot;", '"'), ("&amp;", "&")]


@dataclass
class PhrasePair:
    """One line. `source` and `target` are bytes with Moses' escapes in place; `tail` is all after the scores, from ` |||` on."""

    source: bytes
    target: bytes
    scores: bytes
    tail: bytes

    def line(self, extra: bytes = b"") -> bytes:
        """The line again, with `extra` (one or more scores) appended to the score field."""
        scores = self.scores + b" " + extra if extra else self.scores
        return self.source + b" ||| " + self.target + b" ||| " + scores + self.tail


def parse(line: bytes, where: str) -> PhrasePair:
    """DataError when the line has fewer than three fields, an empty phrase or an empty score field."""
    parts = line.split(b" ||| ", 2)
    if len(parts) < 3:
        raise DataError(f"{where}: {len(parts)} fields, expected 3 to 7 (source ||| target ||| scores ...). Is this a phrase table?")
    source, target, rest = parts
    end = rest.find(b" |||")
    scores, tail = (rest, b"") if end < 0 else (rest[:end], rest[end:])
    if not source.strip() or not target.strip():
        raise DataError(f"{where}: empty {'source' if not source.strip() else 'target'} phrase; Moses skips or crashes on such a line")
    if not scores.strip():
        raise DataError(f"{where}: no scores, expected numbers in the third field")
    return PhrasePair(source, target, scores, tail)


def read(path: str | Path) -> Iterator[PhrasePair]:
    """The pairs of a table (plain, gzip or `-`), in its order."""
    for number, line in enumerate(files.read_byte_lines(path), 1):
        yield parse(line, f"{files.name_of(path)}:{number}")


def words(phrase: bytes, where: str = "phrase table") -> list[str]:
    """The words of a phrase as a model sees them: Moses' escapes undone. Only space and tab separate words."""
    try:
        text = phrase.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: phrase {phrase!r} is not UTF-8") from error
    return [unescape(word) for word in files.split_words(text)]


def unescape(word: str) -> str:
    if "&" not in word:
        return word
    for escaped, plain in ESCAPES:
        word = word.replace(escaped, plain)
    return word
