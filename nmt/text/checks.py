"""Checks of single lines: problems in the text, and properties of it that need another setting. CHECKS lists
them by name."""

import logging
import re
import shlex
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

import regex

from nmt.io import files
from nmt.io.numbers import shown
from nmt.text import sentences
from nmt.text.scripts import line_length
from nmt.text.sentences import MAX_LINE_WORDS
from nmt.text.tokenize import ESCAPES, unescape

# ---- signs of tokenization ---------------------------------------------------------------------------------
# Signs that a text has been tokenized: full stops that are words of their own, contractions that are split.

log = logging.getLogger(__name__)

MARK_APART = re.compile(r"\S [.,](?: |$)")  # not ? and !, which French writes after a blank
MARK_AT_END = re.compile(r"[.,](?: |$)")
APOSTROPHE = "['’]"
LETTER_PATTERN = r"[^\W\d_]"
# it 's, can 't (Moses), ca n't (Penn Treebank), l' homme; not the boys ' toys, and not rock 'n' roll
CUT_CONTRACTION = re.compile(
    rf"{LETTER_PATTERN} {APOSTROPHE}(?:t|s|re|ve|ll|d|m)(?![\w'’])|{LETTER_PATTERN} n{APOSTROPHE}t(?!\w)"
    rf"|(?:^|(?<=\s))(?:[cdjlmnst]|qu){APOSTROPHE} {LETTER_PATTERN}+",
    re.IGNORECASE,
)
APOSTROPHE_AT_BLANK = re.compile(f" [nN]?{APOSTROPHE}|{APOSTROPHE} ")  # in each match of CUT_CONTRACTION
TOKENIZED_SHARE = 0.8  # of the lines with a full stop or comma at the end of a word: nearly everywhere
LEAST_LINES = 10  # with a full stop or comma, needed to judge the whole text


@dataclass
class Punctuation:
    """Counts of how full stops and commas are written in a text."""

    ends: int = 0  # lines with one at the end of a word
    apart: int = 0  # lines with one that is a word of its own

    def add(self, line: str) -> None:
        """Count a line by the marks that end its words."""
        if MARK_AT_END.search(line):
            self.ends += 1
            self.apart += (" ." in line or " ," in line) and bool(MARK_APART.search(line))

    def is_tokenized(self) -> bool:
        """Whether nearly all full stops and commas are words of their own."""
        return self.apart > TOKENIZED_SHARE * self.ends


def find_cut_contraction(line: str) -> re.Match[str] | None:
    """The first match of CUT_CONTRACTION. Most lines are ruled out by a faster pattern."""
    if ("'" in line or "’" in line) and APOSTROPHE_AT_BLANK.search(line):
        return CUT_CONTRACTION.search(line)
    return None


def warn_of_tokenized(lines: Iterable[str], path: str) -> Iterator[str]:
    """Yield the lines unchanged, for a command that tokenizes them. Warns of the first line that is tokenized
    already, or at the end if the whole text seems to be tokenized. `path`: what warnings call the text."""
    punctuation, warned = Punctuation(), False
    for number, line in enumerate(lines, 1):
        punctuation.add(line)
        if not warned and (contraction := find_cut_contraction(unescape(line))):
            warned = True
            log.warning(
                "%s:%d: %s: tokenized already; raw text is expected; --detokenize restores it",
                files.name_of(path), number, shown(contraction[0].strip()),
            )  # fmt: skip
        yield line
    if not warned and punctuation.ends >= LEAST_LINES and punctuation.is_tokenized():
        log.warning(
            "%s: tokenized already: full stops and commas are words of their own; raw text is expected; "
            "--detokenize restores it",
            files.name_of(path),
        )


# ---- checks of a line --------------------------------------------------------------------------------------

NOWHERE = -1
# All but the tab, which has its own check.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# UTF-8 that was once read as Latin-1 or Windows-1252: é is now Ã©, ’ is â€™.
TWICE_ENCODED = re.compile("[ÃÂ][\u0080-\u00bf]|â€|[ÐÑ][\u0080-\u00bf]")
ESCAPED = re.compile("|".join(escaped for escaped, _ in ESCAPES))
UNDO = shlex.quote(
    "; ".join(f"s/{escaped}/{plain.replace('&', chr(92) + '&')}/g" for escaped, plain in ESCAPES)
)
ENTITY = re.compile(r"&(?:#\d{2,6}|#x[0-9A-Fa-f]{2,5}|[A-Za-z]{2,8});")
TAG = re.compile(
    r"</?(?:a|b|br|div|em|font|h[1-6]|i|img|li|ol|p|seg|span|strong|sub|sup|table|td|tr|u|ul)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
SUBWORDS = re.compile(r"@@(?: |$)|(?:^| )▁")
LETTER = regex.compile(r"\p{L}")
CAPITAL = regex.compile(r"\p{Lu}")


@dataclass(frozen=True)
class Check:
    """A check of a line.

    `position(line)`: the index of the first problem in the line, or NOWHERE. `advice`: what the user can do
    about it; may be empty.
    """

    what: str
    position: Callable[[str], int]
    advice: str = ""


def position_finder(pattern: "re.Pattern[str]") -> Callable[[str], int]:
    """Build a function that returns the position of a pattern's first match in a line, or NOWHERE."""

    def first_match(line: str) -> int:
        match = pattern.search(line)
        return match.start() if match else NOWHERE

    return first_match


def entity(line: str) -> int:
    """Position of the first HTML entity that is not one of Moses' escapes, or NOWHERE."""
    for match in ENTITY.finditer(line) if "&" in line else ():
        if not ESCAPED.fullmatch(match[0]):
            return match.start()
    return NOWHERE


def markup(line: str) -> int:
    """Position of the first HTML tag or entity, or NOWHERE."""
    tag = TAG.search(line) if "<" in line else None
    positions = [tag.start() if tag else NOWHERE, entity(line)]
    return min((position for position in positions if position != NOWHERE), default=NOWHERE)


def not_composed(line: str) -> int:
    """Position of the first character not in Unicode's form C, as e with a combining accent, or NOWHERE."""
    if line.isascii() or unicodedata.is_normalized("NFC", line):
        return NOWHERE
    pairs = zip(line, unicodedata.normalize("NFC", line), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def second_sentence(line: str) -> int:
    """Position at which the second sentence of a line starts, or NOWHERE."""
    parts = sentences.split_line(line)
    return len(parts.sentences[0] + parts.gaps[0]) if parts.gaps else NOWHERE


CHECKS = {
    "empty": Check("empty lines", lambda line: NOWHERE if line.strip() else 0),
    "control": Check(
        "lines with control characters",
        position_finder(CONTROL),
        "they are data to every command; remove them unless you know what they mean",
    ),
    "tab": Check(
        "lines with a tab", lambda line: line.find("\t"), "are these two columns of a table in one file?"
    ),
    "lost": Check(
        "lines with U+FFFD, a character that was lost",
        lambda line: line.find("\ufffd"),
        "convert the original again, from its actual encoding",
    ),
    "twice encoded": Check(
        "lines that look encoded twice (Ã© for é)",
        position_finder(TWICE_ENCODED),
        "convert them back: iconv -f utf-8 -t latin1",
    ),
    "not composed": Check(
        "lines that are not in Unicode's normal form C",
        not_composed,
        "the same word may have two spellings; normalize both sides: uconv -x nfc",
    ),
    "escaped": Check(
        "lines with escapes (&apos; &quot; ...)",
        position_finder(ESCAPED),
        f"undo them, unless Moses' tokenizer has made the text: sed {UNDO} FILE",
    ),
    "html": Check(
        "lines with HTML tags or entities",
        markup,
        "remove the markup; a model would learn to write it",
    ),
    "cut": Check(
        "lines with words that a tokenizer has cut (can 't, l' homme)",
        position_finder(CUT_CONTRACTION),
        "a blank there is a mistake in raw text; nmt-tokenize --detokenize takes it out",
    ),
    "subwords": Check("lines cut into subwords (@@ or ▁)", position_finder(SUBWORDS)),
    "long": Check(
        f"lines of more than {MAX_LINE_WORDS} words",
        lambda line: 0 if len(line) > MAX_LINE_WORDS and line_length(line) > MAX_LINE_WORDS else NOWHERE,
        "are they several sentences each?",
    ),
    "sentences": Check(
        "lines of several sentences",
        second_sentence,
        "unless most lines have several, a model learns to translate single sentences: give nmt-translate "
        "--split-sentences",
    ),
    "without letters": Check(
        "lines without letters",
        lambda line: 0 if line.strip() and not LETTER.search(line) else NOWHERE,
    ),
}
