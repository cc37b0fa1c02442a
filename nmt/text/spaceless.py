"""Tokenization of text whose script has no spaces between words, and the way back.

Runs of Chinese, Japanese, Thai, Lao, Tibetan, Khmer and Burmese letters are cut by a segmenter
(nmt/text/segment.py). What is between them, Latin words, numbers and punctuation, follows Moses' rules for
English, but dashes, ellipses and curly quotes stay what they are. On the way back no blank is written beside
such letters or their punctuation. In Chinese and Japanese blanks there get lost; in the other scripts, where
a blank ends a phrase, it is the word `▁`. Zero-width spaces are removed.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Protocol

import regex

from nmt.text.segment import Segmenter

BLANK = "▁"  # a blank that has to be written
NO_BLANKS = frozenset(("cjk", "ja", "yue", "zh"))  # languages whose blanks mean nothing
ZERO_WIDTH = "\u200b"

SCRIPTS = "".join(
    rf"\p{{scx={script}}}"
    for script in ("Han", "Hiragana", "Katakana", "Bopomofo", "Thai", "Lao", "Tibetan", "Khmer", "Myanmar")
)
LETTER = rf"[[{SCRIPTS}]--[\p{{Nd}}\p{{Zs}}\p{{M}}]]"
# Moses' normalization would make `- -` of a Chinese dash, and close with `"` what “ has opened.
MARK = r"[—…“”‘]|’(?!\p{Latin})"
RUN = regex.compile(rf"(?:{LETTER}[\p{{M}}\u200c\u200d]*|{MARK})+", regex.V1)
# Beside these no blank is written: the letters, their punctuation, and all punctuation beyond ASCII.
TIGHT = regex.compile(rf"{LETTER}|[[\p{{P}}\p{{S}}]--\p{{ASCII}}]|{BLANK}", regex.V1)
SIMPLE = regex.compile(r"[A-Za-z0-9]+")


class Rules(Protocol):
    """Normalizes and tokenizes what is written with spaces, and puts it together."""

    def words(self, text: str) -> list[str]: ...
    def text(self, words: list[str]) -> str: ...


class SpacelessTokenizer:
    """Words of a line and back, by a segmenter for the letters without spaces and rules for the rest."""

    def __init__(self, language: str, segmenter: Segmenter, rules: Rules) -> None:
        self.segmenter, self.rules = segmenter, rules
        self.keep_blanks = language not in NO_BLANKS

    def words(self, line: str) -> list[str]:
        """`私はSony 3.5台` -> 私 は Sony 3.5 台, by characters or by words"""
        found: list[str] = []
        for words, after_blank in self.pieces(line.replace(ZERO_WIDTH, "")):
            if after_blank and self.keep_blanks and found:
                found.append(BLANK)
            found += words
        return found

    def pieces(self, line: str) -> Iterator[tuple[list[str], bool]]:
        """The words of each run of letters, and of what is between them; is there a blank before?"""
        end = 0
        for run in RUN.finditer(line):
            yield from self.between(line[end : run.start()])
            yield self.segmenter(run[0]), line[run.start() - 1 : run.start()].isspace()
            end = run.end()
        yield from self.between(line[end:])

    def between(self, text: str) -> Iterator[tuple[list[str], bool]]:
        """What is between two runs of letters; nothing for blanks alone."""
        if stripped := text.strip():
            words = [stripped] if SIMPLE.fullmatch(stripped) else self.rules.words(stripped)
            yield words, text[:1].isspace()

    def text(self, words: list[str]) -> str:
        """The line that `words` came from."""
        parts = []
        for tight, group in groupby(words, key=lambda word: bool(TIGHT.search(word))):
            found = list(group)
            parts.append("".join(found).replace(BLANK, " ") if tight else self.rules.text(found))
        return "".join(parts).strip(" ")
