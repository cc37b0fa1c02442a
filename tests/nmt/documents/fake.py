"""A translator that needs no model: words in upper case, in the opposite order where that is asked for."""

import re

from nmt.documents import formats
from nmt.documents.document import Document
from nmt.documents.inline import AlignedTranslation, join_sentences
from nmt.text.sentences import split_text


def upper(line: str, reverse: bool = False) -> AlignedTranslation:
    """The words of a line in upper case, each aligned to itself."""
    words = re.findall(r"\w+|[^\w\s]", line)
    if not reverse:
        points = [(number, number) for number in range(len(words))]
        return AlignedTranslation(line.upper(), words, [word.upper() for word in words], points)
    target = [word.upper() for word in reversed(words)]
    points = [(number, len(words) - 1 - number) for number in range(len(words))]
    return AlignedTranslation(" ".join(target), words, target, sorted(points))


def translate(document: Document, reverse: bool = False) -> bytes:
    """The document with its sentences in upper case."""
    text = split_text(document.lines, "en", "fr")
    return document.write(join_sentences(text, [upper(line, reverse) for line in text.sentences]))


def translated(data: bytes, name: str, reverse: bool = False) -> bytes:
    document = formats.parse(data, name)
    document.set_languages("en", "fr")
    return translate(document, reverse)
