"""What tokenization must not tear apart, and what casing must not change.

Tags, URLs, e-mail addresses and entities are copied into the translation. Times and dates (10:30, 1/2/2024)
are one word each, which the tables may translate. While a line is tokenized or detokenized, placeholders
stand for them: words of capital letters, which all of Moses' rules leave alone.
"""

import re
from collections.abc import Iterable, Sequence
from string import ascii_uppercase

from nmt.text import truecase

# A URL does not contain these, letters of scripts without blanks among them, ...
NO_URL = '\\s<>"\u0e00-\u109f\u1780-\u17ff\u3000-\u9fff\uff00-\uffef'
NO_END = f"{NO_URL}'.,;:!?)\\]}}»”…"  # ... and does not end with these
MAIL = "A-Za-z0-9_.+-"
TAG = r"</?[A-Za-z][^<>]*>"
COPIED = "|".join(
    (
        TAG,
        rf"(?i:(?:https?|ftp)://|www\.)[^{NO_URL}]*[^{NO_END}]",
        rf"(?<![{MAIL}])[{MAIL}]{{1,64}}@[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)+",
        r"&(?:[A-Za-z]+|\#[0-9]+|\#x[0-9A-Fa-f]+);",
    )
)
WHOLE = r"(?<![A-Za-z0-9:/])\d++(?:[:/]\d++)++(?![A-Za-z:/])"
ELISION = re.compile(r"[^\W\d_]['’]$")  # l'<b>homme</b>: the tokenizer has to see the letter after it

is_tag = re.compile(TAG).fullmatch
is_copied = re.compile(COPIED).fullmatch
PROTECTED = re.compile(f"{COPIED}|{WHOLE}")


class Placeholders:
    """Words that stand for others in one line."""

    def __init__(self, text: str, kept: Iterable[str] = ()) -> None:
        """`text`: the line, which must not contain any of them. `kept`: what the first ones stand for."""
        stem = "ZQ"
        while stem in text.upper():
            stem += "Q"
        self.stem, self.kept = stem, list(kept)
        self.pattern = re.compile(f"({stem}[A-Z]{{4}})")

    def add(self, kept: str) -> str:
        """A new word that stands for `kept`."""
        self.kept.append(kept)
        return self.word(len(self.kept) - 1)

    def word(self, number: int) -> str:
        """The word with this number: ZQAAAA, ZQAAAB ..."""
        letters = ""
        for _ in range(4):
            number, rest = divmod(number, len(ascii_uppercase))
            letters = ascii_uppercase[rest] + letters
        return self.stem + letters

    def number(self, word: str) -> int:
        """The number of a word that `add` made."""
        found = 0
        for letter in word[len(self.stem) :]:
            found = found * len(ascii_uppercase) + ascii_uppercase.index(letter)
        return found

    def split(self, words: Sequence[str]) -> list[str]:
        """Words in which every placeholder is a word of its own."""
        return [part for word in words for part in self.pattern.split(word) if part]

    def is_one(self, word: str) -> bool:
        return self.pattern.fullmatch(word) is not None

    def original(self, word: str) -> str:
        """What a placeholder stands for; any other word itself."""
        return self.kept[self.number(word)] if self.is_one(word) else word


def hide(line: str, blank: str = " ") -> tuple[str, Placeholders]:
    """A raw line with placeholders, and what these stand for. `blank`: around each of them; none where blanks
    are words."""
    places = Placeholders(line)
    parts, end = list[str](), 0
    for found in PROTECTED.finditer(line):
        before = line[end : found.start()]
        parts += [before, "" if ELISION.search(before) else blank, places.add(found[0]), blank]
        end = found.end()
    return "".join(parts) + line[end:], places


def tag_pairs(words: Sequence[str]) -> list[tuple[int, int]]:
    """The places of opening tags and of the tags that close them, from the inside out. Tags without a partner
    are left out."""
    found, waiting = list[tuple[int, int]](), list[tuple[str, int]]()
    for place, word in enumerate(words):
        if not is_tag(word) or word.endswith("/>"):
            continue
        name = re.split(r"[\s\u00a0>]", word.removeprefix("<").removeprefix("/"), maxsplit=1)[0].lower()
        if not word.startswith("</"):
            waiting.append((name, place))
        elif (depth := last_of(name, waiting)) >= 0:
            found.append((waiting[depth][1], place))
            del waiting[depth:]
    return found


def sentence_starts(words: Sequence[str]) -> list[bool]:
    """For each word, does a sentence start with it? Tags do not count as words."""
    starts = truecase.sentence_starts(word for word in words if not is_tag(word))
    return [not is_tag(word) and next(starts) for word in words]


def last_of(name: str, waiting: Sequence[tuple[str, int]]) -> int:
    """The number of the innermost open tag of a name; -1 where none is open."""
    return max((number for number, (other, _) in enumerate(waiting) if other == name), default=-1)
