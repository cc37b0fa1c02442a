"""How units make up a text: the text that each unit adds, and where words begin and end.

`BOUNDARY` replaces the blanks between words, and stands at the start and at the end. In raw text (of
SentencePiece) punctuation, symbols and each letter of a script without blanks are words of their own; in
tokenized text blanks separate words.
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
    """For each unit of a vocabulary of V units, whether it may continue the word of the previous unit
    (`open_start`), and whether the next unit may continue its word (`open_end`)."""

    open_start: NDArray[np.bool_]  # (V,)
    open_end: NDArray[np.bool_]  # (V,)

    def inside(self, units: Sequence[int], position: int) -> bool:
        """Whether a word begins before `position` in a sequence of units and ends after it."""
        if not 0 < position < len(units):
            return False
        return bool(self.open_end[units[position - 1]] and self.open_start[units[position]])


@dataclass(frozen=True)
class Spelling:
    """The texts of the units of a vocabulary, by id."""

    texts: list[str]  # the text that each unit adds
    joints: Joints
    raw: bool  # they are units of raw text

    @cached_property
    def columns(self) -> "Columns":
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
    """Texts as columns of characters, the longest text first: those with a character i are the first ones."""

    order: NDArray[np.int64]  # (V,) indices of the texts, longest first
    codes: list[NDArray[np.int64]]  # codes of the first characters, of the second characters ...


def make_spelling(units: Sequence[str], raw: bool) -> Spelling:
    """Build the spelling from the text that each unit adds, including blanks; the texts of special units are
    ignored. `raw`: whether they are units of raw text."""
    texts = [mark_boundaries(unit, raw) for unit in units]
    texts[BOS], texts[EOS], texts[UNK] = "", BOUNDARY, UNKNOWN
    return Spelling(
        texts,
        Joints(
            open_start=np.array([text[:1] not in ("", BOUNDARY) for text in texts]),
            open_end=np.array([text[-1:] not in ("", BOUNDARY) for text in texts]),
        ),
        raw,
    )


def mark_boundaries(text: str, raw: bool) -> str:
    """Replace the blanks of a text by boundaries between its words, and at its ends where a word is known to
    begin or end. `raw`: punctuation and letters of scripts without blanks are words of their own.

    >>> mark_boundaries("A (small) dog", raw=True).replace(BOUNDARY, "|")
    'A|(|small|)|dog'
    """
    if raw:
        text = "".join(f"\0{character}\0" if is_word(character) else character for character in text)
    return BLANKS.sub(BOUNDARY, text)


def is_word(character: str) -> bool:
    """Whether a character of raw text is a word of its own."""
    letter = unicodedata.category(character)[0] in "LNM" or BYTE_LETTER.match(character)
    return not letter or bool(IDEOGRAPH.match(character) or SPACELESS_LETTER.match(character))


def words(text: str) -> list[str]:
    """The words of raw text.

    >>> words("It's 3.5 熱泵.")
    ['It', "'", 's', '3', '.', '5', '熱', '泵', '.']
    """
    return [word for word in mark_boundaries(text, raw=True).split(BOUNDARY) if word]
