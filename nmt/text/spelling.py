"""How units make up a text: what each of them adds to it, and where words begin and end.

`BOUNDARY` stands between words in place of blanks, at the start and at the end. In raw text (of
SentencePiece) punctuation, symbols and each letter of a script without blanks are words of their own; in
tokenized text words are what blanks separate.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nmt.text.scripts import BYTE_LETTER, IDEOGRAPH, SPACELESS_LETTER
from nmt.text.vocab import BOS, EOS, UNK

BOUNDARY = "\0"  # which no text has
BLANKS = re.compile("[ \t\n\0]+")
UNKNOWN = f"{BOUNDARY}\ufffd{BOUNDARY}"


@dataclass(frozen=True)
class Joints:
    """For each unit: may it go on the word of the unit before it, and may the unit after it go on its
    word?"""

    open_start: NDArray[np.bool_]  # (V,)
    open_end: NDArray[np.bool_]  # (V,)

    def inside(self, units: Sequence[int], position: int) -> bool:
        """Is there a word that begins before this place in a sequence of units and ends after it?"""
        if not 0 < position < len(units):
            return False
        return bool(self.open_end[units[position - 1]] and self.open_start[units[position]])


@dataclass(frozen=True)
class Spelling:
    """The units of a vocabulary by id."""

    texts: list[str]  # what each adds
    joints: Joints
    raw: bool  # they are units of raw text

    @cached_property
    def columns(self) -> "Columns":
        """The texts place by place."""
        order = np.array(sorted(range(len(self.texts)), key=lambda unit: -len(self.texts[unit])), np.int64)
        codes = list[NDArray[np.int64]]()
        rows = [[ord(character) for character in self.texts[unit]] for unit in order.tolist()]
        count = len(rows)
        for column in range(len(rows[0])):
            while len(rows[count - 1]) <= column:
                count -= 1
            codes.append(np.array([row[column] for row in rows[:count]], np.int64))
        return Columns(order, codes)


@dataclass(frozen=True)
class Columns:
    """Texts place by place, the longest text first: those with a character at a place are the first ones."""

    order: NDArray[np.int64]  # (V,) the number of the longest text, of the next one ...
    codes: list[NDArray[np.int64]]  # the first character of all, the second one of those that have one ...


def of_units(units: Sequence[str], raw: bool) -> Spelling:
    """From what each unit adds to the text, blanks included; those of the special units do not matter.
    `raw`: of raw text."""
    texts = [bounded(unit, raw) for unit in units]
    texts[BOS], texts[EOS], texts[UNK] = "", BOUNDARY, UNKNOWN
    return Spelling(
        texts,
        Joints(
            open_start=np.array([text[:1] not in ("", BOUNDARY) for text in texts]),
            open_end=np.array([text[-1:] not in ("", BOUNDARY) for text in texts]),
        ),
        raw,
    )


def bounded(text: str, raw: bool) -> str:
    """A text with boundaries between its words, as far as its ends tell.

    >>> bounded("A (small) dog", raw=True).replace(BOUNDARY, "|")
    'A|(|small|)|dog'
    """
    if raw:
        text = "".join(f"\0{character}\0" if is_word(character) else character for character in text)
    return BLANKS.sub(BOUNDARY, text)


def is_word(character: str) -> bool:
    """Is a character of raw text a word of its own?"""
    letter = unicodedata.category(character)[0] in "LNM" or BYTE_LETTER.match(character)
    return not letter or bool(IDEOGRAPH.match(character) or SPACELESS_LETTER.match(character))


def words(text: str) -> list[str]:
    """The words of raw text.

    >>> words("It's 3.5 熱泵.")
    ['It', "'", 's', '3', '.', '5', '熱', '泵', '.']
    """
    return [word for word in bounded(text, raw=True).split(BOUNDARY) if word]
