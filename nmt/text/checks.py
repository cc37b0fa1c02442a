"""Checks of single lines, for problems in the text and for properties that need a setting. Each is an entry
of CHECKS."""

import logging
import re
import shlex
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import regex

from nmt.io import files
from nmt.io.numbers import shown
from nmt.text import sentences
from nmt.text.scripts import line_length
from nmt.text.sentences import MAX_LINE_WORDS
from nmt.text.tokenize import ESCAPES, unescape

# ---- signs of tokenization ---------------------------------------------------------------------------------
# Signs that a text has been tokenized: full stops that stand alone, contractions that are cut.

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
TOKENIZED_SHARE = 0.8  # of the lines with a full stop or comma at the end of a word: nearly everywhere
LEAST_LINES = 10  # with a full stop or comma, needed to judge the whole text


@dataclass
class Punctuation:
    """How the full stops and commas of a text stand."""

    ends: int = 0  # lines with one at the end of a word
    apart: int = 0  # lines with one that is a word of its own

    def add(self, line: str) -> None:
        """Count the marks at the end of a line."""
        self.ends += bool(MARK_AT_END.search(line))
        self.apart += bool(MARK_APART.search(line))

    def is_tokenized(self) -> bool:
        """Are full stops and commas words of their own nearly everywhere?"""
        return self.apart > TOKENIZED_SHARE * self.ends


def warn_of_tokenized(lines: Iterable[str], path: str) -> Iterator[str]:
    """The lines, for a command that tokenizes them. A warning names the first that is tokenized already, or
    says at the end that the whole text looks so."""
    punctuation, warned = Punctuation(), False
    for number, line in enumerate(lines, 1):
        punctuation.add(line)
        if not warned and (cut := CUT_CONTRACTION.search(unescape(line))):
            warned = True
            log.warning(
                "%s:%d: %s: tokenized already; raw text is expected, and --detokenize makes it",
                files.name_of(path), number, shown(cut[0].strip()),
            )  # fmt: skip
        yield line
    if not warned and punctuation.ends >= LEAST_LINES and punctuation.is_tokenized():
        log.warning(
            "%s: tokenized already: full stops and commas are words of their own; raw text is expected, and "
            "--detokenize makes it",
            files.name_of(path),
        )


# ---- checks of a line --------------------------------------------------------------------------------------

NOWHERE = -1
# Tab is no control character here: it has a check of its own.
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
    """A thing to look for in a line.

    `position(line)`: the index of its first occurrence, or NOWHERE. `advice`: what to do about it, if any.
    """

    what: str
    position: Callable[[str], int]
    advice: str = ""


def place_of(pattern: "re.Pattern[str]") -> Callable[[str], int]:
    """A function from a line to the position of a pattern's first match, or NOWHERE."""

    def first_match(line: str) -> int:
        match = pattern.search(line)
        return match.start() if match else NOWHERE

    return first_match


def entity(line: str) -> int:
    """Position of the first HTML entity that is not an escape of Moses."""
    for match in ENTITY.finditer(line) if "&" in line else ():
        if not ESCAPED.fullmatch(match[0]):
            return match.start()
    return NOWHERE


def not_composed(line: str) -> int:
    """Position of the first character not in Unicode's normal form C, such as e with a combining accent."""
    if line.isascii() or unicodedata.is_normalized("NFC", line):
        return NOWHERE
    composed = unicodedata.normalize("NFC", line)
    pairs = zip(line, composed, strict=False)
    return next(
        (
            position
            for position, (composed_character, character) in enumerate(pairs)
            if composed_character != character
        ),
        len(composed),
    )


def second_sentence(line: str) -> int:
    """Position at which the second sentence of a line starts."""
    parts = sentences.split_line(line)
    return len(parts.sentences[0] + parts.gaps[0]) if parts.gaps else NOWHERE


CHECKS = {
    "empty": Check("empty lines", lambda line: NOWHERE if line.strip() else 0),
    "control": Check(
        "lines with control characters",
        place_of(CONTROL),
        "they are data to every command; remove them unless you know what they mean",
    ),
    "tab": Check(
        "lines with a tab", lambda line: line.find("\t"), "are these two columns of a table in one file?"
    ),
    "lost": Check(
        "lines with U+FFFD, a character that was lost",
        lambda line: line.find("\ufffd"),
        "convert the original anew, with the encoding that it has",
    ),
    "twice encoded": Check(
        "lines that look encoded twice (Ã© for é)",
        place_of(TWICE_ENCODED),
        "convert them back: iconv -f utf-8 -t latin1",
    ),
    "not composed": Check(
        "lines that are not in Unicode's normal form C",
        not_composed,
        "the same word may have two spellings; normalize both sides: uconv -x nfc",
    ),
    "escaped": Check(
        "lines with escapes (&apos; &quot; ...)",
        place_of(ESCAPED),
        f"undo them, unless Moses' tokenizer has made the text: sed {UNDO} FILE",
    ),
    "html": Check(
        "lines with HTML tags or entities",
        lambda line: max(place_of(TAG)(line) if "<" in line else NOWHERE, entity(line)),
        "remove the markup; a model would learn to write it",
    ),
    "cut": Check(
        "lines with words that a tokenizer has cut (can 't, l' homme)",
        place_of(CUT_CONTRACTION),
        "a blank there is a mistake in raw text; nmt-tokenize --detokenize takes it out",
    ),
    "subwords": Check("lines cut into subwords (@@ or ▁)", place_of(SUBWORDS)),
    "long": Check(
        f"lines of more than {MAX_LINE_WORDS} words",
        lambda line: 0 if len(line) > MAX_LINE_WORDS and line_length(line) > MAX_LINE_WORDS else NOWHERE,
        "are they several sentences each?",
    ),
    "sentences": Check(
        "lines of several sentences",
        second_sentence,
        "unless most are, the run learns to translate one; give nmt-translate --split-sentences then",
    ),
    "without letters": Check(
        "lines without letters",
        lambda line: 0 if line.strip() and not LETTER.search(line) else NOWHERE,
    ),
}
