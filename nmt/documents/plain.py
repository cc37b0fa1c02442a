"""Plain text. Line breaks, blank lines, indentation and the marks of lists and quotations stay.

A sentence that goes on in the next line is translated whole: lines that were broken to fit a width are
joined, and their translation is broken to fit the same width.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from nmt.documents.document import Document, decode_text, has_words, line_number
from nmt.documents.inline import AlignedTranslation
from nmt.errors import DataError

# Indentation with the marks of a list or a quotation: "- ", "> ", "  1. ", "(a) ".
MARGIN = re.compile(r"[\ufeff]?[ \t\u00a0\u3000]*(?:(?:[-*+•–—>]|#{1,6}|\(?(?:[0-9]{1,3}|[a-z])[.)])[ \t]+)*")
SENTENCE_END = re.compile(r"[.!?…:;。！？][\"'»”’)\]]*$")
NARROWEST = 40  # characters of the longest line of a text that is broken to fit a width
FEWEST_WORDS = 4  # in a line that was broken to fit a width


@dataclass(frozen=True)
class PlainLine:
    """A line of a file in its parts, which add up to the line."""

    margin: str
    text: str
    end: str  # blanks and the line break

    @property
    def width(self) -> int:
        return len(self.margin) + len(self.text)


@dataclass(frozen=True)
class TextDocument(Document):
    """A text file. Each block has the lines of one text, or one line without words."""

    blocks: Sequence[Sequence[PlainLine]]

    @property
    def lines(self) -> list[str]:
        return [" ".join(line.text for line in block) for block in self.blocks if has_words(block[0].text)]

    def write(self, translations: Sequence[AlignedTranslation]) -> bytes:
        rows, parts = iter(translations), list[str]()
        for block in self.blocks:
            if has_words(block[0].text):
                parts += render(block, next(rows).text)
            else:
                parts += [line.margin + line.text + line.end for line in block]
        return "".join(parts).encode()


def parse(data: bytes, name: str) -> TextDocument:
    """Split a text file into blocks. DataError for a file that is not UTF-8, or has a NUL character."""
    text = decode_text(data, name)
    if (offset := text.find("\0")) >= 0:
        location = f"{name}:{line_number(text, offset)}"
        raise DataError(f"{location}: NUL character, expected text; is this a binary or UTF-16 file?")
    lines = [split_line(line) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
    return TextDocument([block for paragraph in paragraphs(lines) for block in split_paragraph(paragraph)])


def split_line(line: str) -> PlainLine:
    """Split a line into its margin, its text and its end."""
    body = line.rstrip("\n").rstrip(" \t\r")
    match = MARGIN.match(body)
    margin = match[0] if match else ""
    return PlainLine(margin, body[len(margin) :], line[len(body) :])


def paragraphs(lines: Sequence[PlainLine]) -> Iterator[list[PlainLine]]:
    """Group the lines between those without words, each of which is a paragraph of its own."""
    for words, group in groupby(lines, key=lambda line: has_words(line.text)):
        rows = list(group)
        yield from [rows] if words else ([line] for line in rows)


def split_paragraph(paragraph: Sequence[PlainLine]) -> Iterator[list[PlainLine]]:
    """Split a paragraph into texts: lines stay together where the break between them only keeps the width."""
    width = max(line.width for line in paragraph)
    block = [paragraph[0]]
    for line in paragraph[1:]:
        if is_wrapped(block[-1], line, width):
            block.append(line)
        else:
            yield block
            block = [line]
    yield block


def is_wrapped(line: PlainLine, following: PlainLine, width: int) -> bool:
    """Whether a line was broken to fit a width: no sentence ends with it, and the next word would not have
    fit. A line with the mark of a list begins a text."""
    word = following.text.split(" ")[0]
    return (
        width >= NARROWEST
        and line.text.count(" ") + 1 >= FEWEST_WORDS
        and line.width + 1 + len(word) > width
        and not SENTENCE_END.search(line.text)
        and (not following.margin.strip() or following.margin.strip() == line.margin.strip() == ">")
    )


def render(block: Sequence[PlainLine], translation: str) -> Iterator[str]:
    """Render a translation, broken to the width of the block; for an empty one the block itself."""
    translation = " ".join(translation.splitlines()).strip()
    if not translation:
        yield from (line.margin + line.text + line.end for line in block)
        return
    if len(block) == 1:
        yield block[0].margin + translation + block[0].end
        return
    width = max(line.width for line in block)
    margin, rest = block[0].margin, block[1].margin
    words, text = translation.split(" "), ""
    for word in words:
        if text and len(margin) + len(text) + 1 + len(word) > width:
            yield margin + text + block[0].end
            margin, text = rest, word
        else:
            text = f"{text} {word}" if text else word
    yield margin + text + block[-1].end
