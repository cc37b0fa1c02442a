"""The text of an HTML document: what stands between its tags is translated, all else stays as it is. Time is
linear in the length of the document, whatever it holds."""

import html
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass

VERBATIM = ("script", "style", "code", "pre", "textarea")  # elements that are not translated
LONGEST = 1 + max(map(len, VERBATIM))
LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
LONGEST = 1 + max(map(len, VERBATIM))


@dataclass
class Piece:
    """A part of a document: markup, or text with its entities resolved and the blanks around it."""

    raw: str
    text: str = ""  # empty: nothing to translate

    def shown(self, translation: str) -> str:
        """The piece with its text translated."""
        body = self.raw.strip()
        begin = self.raw.index(body)
        return self.raw[:begin] + html.escape(translation, quote=False) + self.raw[begin + len(body) :]


def pieces(document: str) -> list[Piece]:
    """The document in pieces; the raw ones together are the document."""
    found, at, lower = list[Piece](), 0, document.translate(LOWER)
    while at < len(document):
        begin = next_tag(document, at)
        if begin > at:
            found.append(text_piece(document[at:begin]))
        at = end_of_markup(document, lower, begin)
        if at > begin:
            found.append(Piece(document[begin:at]))
    return found


def text_piece(raw: str) -> Piece:
    return Piece(raw, " ".join(html.unescape(raw).split()))


def next_tag(document: str, at: int) -> int:
    """Where the next markup begins: a < before a letter, a slash, ! or ?; else the end."""
    while (begin := document.find("<", at)) >= 0:
        after = document[begin + 1 : begin + 2]
        if after.isascii() and (after.isalpha() or after in ("/", "!", "?")) and after:
            return begin
        at = begin + 1
    return len(document)


def end_of_markup(document: str, lower: str, begin: int) -> int:
    """Where the markup ends that begins here: a comment, a tag, or an element that is not translated. What is
    not closed goes to the end."""
    if document.startswith("<!--", begin):
        return after(document, "-->", begin + 4)
    end = after(document, ">", begin)
    name = re.split("[\\s/>]", lower[begin + 1 : begin + 1 + LONGEST], maxsplit=1)[0]
    return after(document, ">", after(lower, f"</{name}", end)) if name in VERBATIM else end


def after(document: str, sign: str, begin: int) -> int:
    """The place after the next `sign`; the end without one."""
    found = document.find(sign, begin)
    return len(document) if found < 0 else found + len(sign)


def joined(found: Sequence[Piece], translations: Sequence[str]) -> str:
    """The document with the texts of its pieces translated, one translation for each piece that has text."""
    rest = iter(translations)
    return "".join(piece.shown(next(rest)) if piece.text else piece.raw for piece in found)
