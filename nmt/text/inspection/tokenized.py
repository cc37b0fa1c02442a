"""Signs that a text has been tokenized: full stops that stand alone, contractions that are cut."""

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nmt import files
from nmt.numbers import shown
from nmt.text.escapes import unescape

log = logging.getLogger(__name__)

APART = re.compile(r"\S [.,](?: |$)")  # not ? and !, which French writes after a blank
END = re.compile(r"[.,](?: |$)")
APOSTROPHE = "['’]"
LETTER = r"[^\W\d_]"
# it 's, can 't (Moses), ca n't (Penn Treebank), l' homme; not the boys ' toys, and not rock 'n' roll
CUT = re.compile(
    rf"{LETTER} {APOSTROPHE}(?:t|s|re|ve|ll|d|m)(?![\w'’])|{LETTER} n{APOSTROPHE}t(?!\w)"
    rf"|(?:^|(?<=\s))(?:[cdjlmnst]|qu){APOSTROPHE} {LETTER}+",
    re.IGNORECASE,
)
SHARE = 0.8  # of the lines with a full stop or comma at the end of a word: nearly everywhere
LINES = 10  # with a full stop or comma before they say anything about the whole text


@dataclass
class Punctuation:
    """How the full stops and commas of a text stand."""

    ends: int = 0  # lines with one at the end of a word
    apart: int = 0  # lines with one that is a word of its own

    def add(self, line: str) -> None:
        """Count the marks at the end of a line."""
        self.ends += bool(END.search(line))
        self.apart += bool(APART.search(line))

    def is_tokenized(self) -> bool:
        """Are full stops and commas words of their own nearly everywhere?"""
        return self.apart > SHARE * self.ends


def watched(lines: Iterable[str], path: str) -> Iterator[str]:
    """The lines, for a command that tokenizes them. A warning names the first that is tokenized already, or
    says at the end that the whole text looks so."""
    punctuation, warned = Punctuation(), False
    for number, line in enumerate(lines, 1):
        punctuation.add(line)
        if not warned and (cut := CUT.search(unescape(line))):
            warned = True
            log.warning(
                "%s:%d: %s: tokenized already; raw text is expected, and --detokenize makes it",
                files.name_of(path), number, shown(cut[0].strip()),
            )  # fmt: skip
        yield line
    if not warned and punctuation.ends >= LINES and punctuation.is_tokenized():
        log.warning(
            "%s: tokenized already: full stops and commas are words of their own; raw text is expected, and "
            "--detokenize makes it",
            files.name_of(path),
        )
