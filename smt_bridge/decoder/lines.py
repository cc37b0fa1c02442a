"""How lines of text become what the decoder reads, how long ones are cut, and how its translations become
lines again."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from nmt.errors import ConfigError
from nmt.text import long_lines
from nmt.text.sentences import SplitText
from smt_bridge.decoder import xml_input
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.decoder.xml_input import Marked, Markup


class Lines(Protocol):
    """What a decoder asks for the words of a line, and for the line of a translation. Several threads may
    share one."""

    def marked(self, line: str, markup: Markup) -> Marked:
        """The words of a line, and what its markup says. ValueError for a mistake in the markup."""
        ...

    def text(self, found: PhraseTranslation) -> str:
        """A translation as a line of text."""
        ...

    def sentences(self, lines: Iterable[str]) -> SplitText:
        """The sentences of lines. ConfigError where lines are words between blanks."""
        ...


class TokenizedLines:
    """Words between blanks, as Moses reads and writes them."""

    def marked(self, line: str, markup: Markup) -> Marked:
        return xml_input.parse(line, markup)

    def text(self, found: PhraseTranslation) -> str:
        return " ".join(found.text)

    def sentences(self, lines: Iterable[str]) -> SplitText:
        raise ConfigError("split_sentences goes with raw text: load the folder of a hybrid system")


def parts(line: Marked, limit: int) -> list[Marked]:
    """A line in parts of at most `limit` words, cut at punctuation where there is some. An exclusive
    translation is not cut, unless it is itself longer; then it is dropped."""
    whole = {one.begin: one.last + 1 for one in line.forced if one.last - one.begin < limit}
    units, at = list[str](), 0
    while at < len(line.words):
        end = whole.get(at, at + 1)
        units.append(" ".join(line.words[at:end]))
        at = end
    found, at = list[Marked](), 0
    for part in long_lines.parts(units, limit, lambda unit: unit.count(" ") + 1):
        words = [word for unit in part for word in unit.split(" ")]
        inside = [one for one in line.forced if at <= one.begin and one.last < at + len(words)]
        found.append(
            Marked(
                words,
                [replace(one, begin=one.begin - at, last=one.last - at) for one in inside],
                avoided=line.avoided,
            )
        )
        at += len(words)
    return found
