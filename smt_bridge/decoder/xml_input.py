"""Demands of an input line on its translation: phrases to avoid, and Moses' markup, with translations for
spans and constraints on reordering.

<np translation="big house||mansion" prob="0.8||0.2">grosses haus</np>    prob defaults to 1
<zone> eins zwei drei </zone> vier                  once entered, a zone must be finished
eins zwei <wall/> drei                              words before the wall are translated first
<np translation="x" span="3-4"/>                    words given by their positions, from 0

Tags may be nested, and entities are ordinary words. For some mistakes Moses translates only half of a line,
or nothing; here every mistake is a ValueError, to which callers add the line."""

import math
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nmt.formats.phrase_table import LARGEST
from nmt.io import files, numbers
from nmt.io.numbers import shown

# ---- avoided -----------------------------------------------------------------------------------------------
# Phrases that translations must not contain.


class AvoidedPhrases:
    """A set of phrases of target words, indexed by their first word."""

    def __init__(self, phrases: Iterable[Sequence[str]]) -> None:
        self.by_first: dict[str, list[list[str]]] = {}
        for phrase in phrases:
            if phrase:
                self.by_first.setdefault(phrase[0], []).append(list(phrase))

    def __bool__(self) -> bool:
        return bool(self.by_first)

    def occurs(self, words: Sequence[str]) -> bool:
        """Whether a text contains one of the phrases."""
        return any(
            list(words[start : start + len(phrase)]) == phrase
            for start, word in enumerate(words)
            for phrase in self.by_first.get(word, ())
        )


NOTHING_AVOIDED = AvoidedPhrases([])


# ---- xml input ---------------------------------------------------------------------------------------------


FLOOR = -100.0  # used for the logarithm of 0, as in Moses
SEPARATOR = "||"
FACTORS = 4  # most factors of a word in Moses
BLANKS = " \t\r\n"
MODEL_TAGS = ("update", "weight-overwrite")


class Markup(NamedTuple):
    """How to parse the markup of lines."""

    policy: str = "pass-through"  # DecoderConfig.xml_input
    brackets: tuple[str, str] = ("<", ">")  # of tags
    longest: int = 20  # most words of a span with a translation


def brackets(text: str) -> tuple[str, str]:
    """Split a setting such as `< >` into its two brackets. ValueError for any other text."""
    pair = text.split()
    if len(pair) != 2:
        raise ValueError(f"{shown(text)}: expected two strings with a blank between them, such as < >")
    return pair[0], pair[1]


@dataclass(frozen=True)
class ForcedTranslation:
    """A translation that the input line gives for a span."""

    first: int  # first source word
    last: int  # last source word
    words: list[str]
    log_prob: float
    exclusive: bool = False  # whether it is the only option, whatever the policy
    points: tuple[tuple[int, int], ...] = ()  # alignment points
    raw: str | None = None  # replaces its words in raw text


@dataclass
class MarkedLine:
    """A line without its tags, and the constraints that they set."""

    words: list[str]
    forced: list[ForcedTranslation] = field(default_factory=list)
    walls: list[int] = field(default_factory=list)  # the word before each wall
    zones: list[tuple[int, int]] = field(default_factory=list)  # first and last word
    avoided: AvoidedPhrases = NOTHING_AVOIDED  # options of the table must not contain these


@dataclass
class Tag:
    """An opening tag with its attributes."""

    name: str
    start: int  # number of words before it
    content: str  # its attributes, unparsed


def surface(text: str) -> list[str]:
    """The words of a text, reduced to their first factors. As in Moses, an empty first factor is an empty
    word. ValueError for a word of more than FACTORS factors."""
    words = files.split_words(text)
    if "|" not in text:
        return words
    for word in words:
        if word.count("|") >= FACTORS:
            raise ValueError(
                f"{shown(word)} has more than {FACTORS} factors, and Moses stops at it; write &#124; for a "
                "literal |"
            )
    return [word.partition("|")[0] for word in words]


def parse_markup(line: str, markup: Markup) -> MarkedLine:
    """Split a line into words, reduced to their first factors, and parse its markup. Under the policy
    `ignore`, translations are dropped but zones and walls are kept; under `pass-through`, tags are treated as
    words. ValueError for a mistake in the markup, and for a word of more than FACTORS factors."""
    opening, closing = markup.brackets
    if markup.policy == "pass-through" or opening not in line:
        return MarkedLine(surface(line))
    marked, open_tags, walls = MarkedLine([]), list[Tag](), list[range]()
    for token in tokens(line.strip(BLANKS), opening, closing):
        if not is_tag(token, opening):
            marked.words += surface(token)
            continue
        inside = token[len(opening) : -len(closing)].strip(BLANKS)
        closed, unary = inside.startswith("/"), inside.endswith("/")
        if closed and unary:
            raise ValueError(f"tag {shown(token)} both closes and is closed; write <x>, </x> or <x/>")
        name, _, content = inside.removeprefix("/").removesuffix("/").partition(" ")
        if not closed:
            open_tags.append(Tag(name, len(marked.words), content))
        if closed or unary:
            if not open_tags:
                raise ValueError(
                    f"tag {shown(name)} is closed, but was not opened; open it before, or remove it"
                )
            tag = open_tags.pop()
            if tag.name != name:
                raise ValueError(
                    f"tag {shown(tag.name)} is closed by {shown(name)}; close the inner tag first"
                )
            apply_tag(marked, walls, tag, markup)
    if open_tags:
        name = open_tags[-1].name
        remedy = f"close it by {shown(f'{opening}/{name}{closing}')}"
        raise ValueError(f"tag {shown(name)} is never closed; {remedy}")
    check_spans(marked)
    words = len(marked.words)  # walls after the end of the line are dropped
    marked.walls = sorted({word for each in walls for word in range(each.start, min(each.stop, words))})
    return marked


def tokens(line: str, opening: str, closing: str) -> Iterator[str]:
    """Split a line into tags and the text between them; a bracketed text that is not a tag is a token of its
    own. ValueError for a tag without a closing bracket, and for an opening bracket before a tag, which would
    make Moses read the tag as text."""
    position = 0
    while position < len(line):
        left = line.find(opening, position)
        if left < 0:
            yield line[position:]
            return
        right = line.find(closing, left + len(opening) - 1)
        if right < 0:
            raise ValueError(
                f"{shown(line[left:])}: a tag without {closing!r}; write &lt; for a literal one. Moses drops "
                "the rest of the line"
            )
        if left > position:
            yield line[position:left]
        position = right + len(closing)
        token = line[left:position]
        if not is_tag(token, opening) and any(
            is_tag(opening + part, opening) for part in token.split(opening)[2:]
        ):
            raise ValueError(
                f"{shown(token)}: {opening!r} before a tag, which Moses then takes for text; write &lt; for "
                "a literal one"
            )
        yield token


def is_tag(token: str, opening: str) -> bool:
    """Whether a token is a tag. Tags start with a letter or /, so `3 < 5 and 7 > 2` is text."""
    return token.startswith(opening) and re.match(r"[/a-zA-Z]", token[len(opening) :]) is not None


def apply_tag(marked: MarkedLine, walls: list[range], tag: Tag, markup: Markup) -> None:
    """Add what a closed tag says about its span: a zone or forced translations to `marked`, or the words
    before walls, which may be beyond the end of the line, to `walls`. ValueError for a mistake in the tag,
    and for a tag that Moses or the engine does not support there."""
    start, end = tag_span(tag, len(marked.words))
    if tag.name == "wall":
        walls.append(range(max(0, start - 1), end))
    elif tag.name == "zone":
        if start >= end:
            raise ValueError("a zone without words; enclose at least one")
        marked.zones.append((start, end - 1))
    elif tag.name == "ne":
        if end - start != 1:
            raise ValueError("tag 'ne' has to enclose one word; mark each word by itself")
    elif tag.name in MODEL_TAGS:
        raise ValueError(
            f"tag {shown(tag.name)} changes the model while Moses decodes, which the embedded engine does "
            "not do; remove it, or decode with Moses"
        )
    else:
        translations = tag_translations(tag)
        if translations and start >= end:
            raise ValueError(
                f"tag {shown(tag.name)} has a translation, but encloses no word; enclose at least one"
            )
        if translations and end - start > markup.longest:
            raise ValueError(
                f"tag {shown(tag.name)} has a translation of {end - start} words, but options have at most "
                f"{markup.longest} (max-phrase-length); split the span, or raise that limit"
            )
        if markup.policy != "ignore":
            marked.forced += [
                ForcedTranslation(start, end - 1, surface(text), log_prob) for text, log_prob in translations
            ]


def tag_span(tag: Tag, words: int) -> tuple[int, int]:
    """The start and end (exclusive) of a tag's span, in words. An attribute span="i-j" or span="i" takes
    precedence over the tag's position. `words`: number of words before the closing tag. ValueError for a span
    of any other form, and for one that ends before it begins; whether it ends within the line is checked by
    `check_spans`."""
    span = attribute(tag, "span")
    if not span:
        return tag.start, words
    try:
        ends = [numbers.count(word) for word in span.split("-")]
    except ValueError:
        ends = []
    if len(ends) not in (1, 2):
        raise ValueError(f"span={shown(span)} of tag {shown(tag.name)}: expected numbers of words, i-j or i")
    if ends[-1] < ends[0]:
        raise ValueError(
            f"span={shown(span)} of tag {shown(tag.name)} ends before it begins; write {ends[1]}-{ends[0]}"
        )
    return ends[0], ends[-1] + 1


def tag_translations(tag: Tag) -> list[tuple[str, float]]:
    """The alternative translations in a tag, with their natural log probabilities. The attribute `english` is
    an older name for `translation`. ValueError for a probability that is not a number of 0 or more, and
    unless there are as many probabilities as translations, or none."""
    texts = parts(attribute(tag, "translation")) + parts(attribute(tag, "english"))
    probs = parts(attribute(tag, "prob"))
    if probs and len(probs) != len(texts):
        raise ValueError(
            f"tag {shown(tag.name)} has {len(texts)} translations, but {len(probs)} probabilities; give one "
            "for each, or none"
        )
    return [
        (text, parse_log_prob(prob)) for text, prob in zip(texts, probs or ["1"] * len(texts), strict=True)
    ]


def parts(value: str) -> list[str]:
    """Split the value of an attribute into its alternatives."""
    return [part.strip(BLANKS) for part in value.split(SEPARATOR)] if value else []


def parse_log_prob(text: str) -> float:
    """Natural log of a probability, rounded to single precision as in Moses; FLOOR for 0. ValueError for text
    that is not a number, is negative, or is too large."""
    try:
        prob = numbers.real(text)
    except ValueError as error:
        raise ValueError(f"prob: {error}") from error
    if prob < 0:
        raise ValueError(f"prob: {shown(text)} is negative, expected 0 or more")
    if prob > LARGEST:
        raise ValueError(f"prob: {shown(text)} is too large for single precision")
    value = float(struct.unpack("f", struct.pack("f", prob))[0])  # Moses computes in single precision
    return max(FLOOR, math.log(value)) if value > 0 else FLOOR


def attribute(tag: Tag, name: str) -> str:
    """The value of an attribute; empty if absent. A quote after a backslash is part of the value. ValueError
    for an attribute that Moses would misread."""
    start = tag.content.find(f'{name}="')
    if start < 0:
        if re.search(rf"(?:^| ){name}\s*=", tag.content):
            raise ValueError(
                f'Moses ignores {name} of tag {shown(tag.name)}; write {name}="..." without blanks '
                "and with double quotes"
            )
        return ""
    start += len(name) + 2
    end = tag.content.find('"', start)
    if end == start:
        if '"' in tag.content[end + 1 :]:
            raise ValueError(
                f'{name}="" of tag {shown(tag.name)} is empty, and Moses takes what follows for its value; '
                "leave it out"
            )
        return ""
    while end > 0 and tag.content[end - 1] == "\\" and tag.content.find('"', end + 1) >= 0:
        end = tag.content.find('"', end + 1)
    if end < 0:
        raise ValueError(f"{name} of tag {shown(tag.name)} has no closing quote; add it")
    return tag.content[start:end]


def check_spans(marked: MarkedLine) -> None:
    """ValueError for a span attribute that reaches beyond the end of the line."""
    words = len(marked.words)
    for last in [*(option.last for option in marked.forced), *(last for _, last in marked.zones)]:
        if last >= words:
            raise ValueError(
                f"a span ends at word {last}, but the words of the line have the numbers 0 to {words - 1}"
                if words
                else f"a span ends at word {last}, but the line has no words"
            )
