"""Sentences with inline markup: the text is translated, and the markup is placed in the translation by the
word alignment."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise

from nmt.text.sentences import SplitLine, SplitText
from nmt.text.tokenize import unescape

# ---- translations ------------------------------------------------------------------------------------------


@dataclass
class AlignedTranslation:
    """The translation of a text, with the words of both sides and their alignment; words are counted from 0.
    Without an alignment, markup keeps its relative position."""

    text: str
    source_words: Sequence[str] = ()  # empty: the words between blanks
    target_words: Sequence[str] = ()  # likewise
    alignment: Sequence[tuple[int, int]] = ()  # source word, target word


def join_sentences(text: SplitText, translations: Sequence[AlignedTranslation]) -> list[AlignedTranslation]:
    """Join the translations of all sentences into those of the lines."""
    groups = zip(text.lines, text.group(translations), strict=True)
    return [join_line(line, group, text.blank) for line, group in groups]


def join_line(line: SplitLine, parts: Sequence[AlignedTranslation], blank: str) -> AlignedTranslation:
    """Join the translations of a line's sentences. `blank`: as in `SplitLine.join`. A sentence without source
    words beside others that have some gets those between blanks, so that its markup has words around it."""
    if len(parts) == 1:
        return parts[0]
    words = [part.source_words for part in parts]
    if any(words):
        words = [own or sentence.split() for own, sentence in zip(words, line.sentences, strict=True)]
    sources = [0, *accumulate(map(len, words))]
    targets = [0, *accumulate(len(part.target_words) for part in parts)]
    return AlignedTranslation(
        text=line.join([part.text for part in parts], blank),
        source_words=list(chain(*words)),
        target_words=[word for part in parts for word in part.target_words],
        alignment=[
            (source + first, target + second)
            for part, source, target in zip(parts, sources, targets, strict=False)
            for first, second in part.alignment
        ],
    )


# ---- sentences with inline tags ----------------------------------------------------------------------------
# `A <b>dog</b> runs.` is translated as one sentence, and its translation has each tag equally often.
#
# In the translation a pair of tags encloses the stretch with the most words that are aligned to the enclosed
# source words, and the fewest other words. Without an alignment, the pair keeps its relative position. Pairs
# that were nested stay nested, and pairs that were side by side stay so.


Span = tuple[int, int]

BLANK_RUN = re.compile("[\t\n\f\r ]+")
SEARCH_WIDTH = 20  # characters in which the next word of a text is searched for
UNALIGNED_COST = 0.1  # cost of an unaligned word within a stretch; a word aligned to others costs 1


@dataclass(frozen=True)
class InlineItem:
    """A part of a sentence: text, a tag or other markup, such as a comment."""

    raw: str  # as in the document
    text: str = ""  # unescaped; empty for markup
    opens: bool = False  # a start tag that has an end tag
    closes: bool = False  # the end tag of such a start tag


@dataclass
class TagPair:
    """A pair of tags around a stretch of the text, or an element without an end tag."""

    start: str
    first: int  # offset of its stretch in the text
    tight: bool = False  # follows a word without a blank between them
    apart: bool = False  # an element without an end tag, with blanks on both sides
    end: str = ""
    last: int = 0  # offset of the end of its stretch
    children: list["TagPair"] = field(default_factory=list)


@dataclass
class TaggedText:
    """One or more sentences with balanced inline tags."""

    items: Sequence[InlineItem]
    text: str  # without tags; this is what is translated
    root: TagPair  # encloses the whole text, without tags of its own

    @staticmethod
    def from_items(items: Sequence[InlineItem]) -> "TaggedText | None":
        """Collect the text and tags of items with balanced tags; None if there is no word to translate."""
        text, root = "", TagPair("", 0)
        opened, points = [root], list[TagPair]()  # points: elements without an end tag since the last word
        for item in items:
            if item.text:
                part = BLANK_RUN.sub(" ", item.text)
                if part.startswith(" "):
                    for element in points:
                        element.apart = not element.tight
                    points = []
                text += part.removeprefix(" ") if not text or text.endswith(" ") else part
                points = [] if part.strip(" ") else points
            elif item.closes:
                element = opened.pop()
                element.end, element.last = item.raw, len(text)
            else:
                tight = bool(text) and not text.endswith(" ")
                element = TagPair(item.raw, len(text), tight, last=len(text))
                opened[-1].children.append(element)
                (opened if item.opens else points).append(element)
        root.last = len(text)
        return TaggedText(items, text.rstrip(" "), root) if any(map(str.isalnum, text)) else None

    def render(self, translation: AlignedTranslation) -> str:
        """Render the escaped translation with the tags; for an empty translation, the source as it was."""
        raw = "".join(item.raw for item in self.items)
        if not translation.text.strip():
            return raw
        target = translation.text.strip(" ")
        placement = TagPlacement(
            locate_words(translation.source_words, self.text),
            locate_words(translation.target_words, target),
            translation.alignment,
        )
        elements = placement.place_within(self.root, 0, len(placement.targets))
        body = "".join(render_stretch(elements, target, 0, len(target)))
        return leading_blanks(raw) + body + leading_blanks(raw[::-1])[::-1]


def leading_blanks(raw: str) -> str:
    """Return the blanks at the beginning of a text."""
    match = BLANK_RUN.match(raw)
    return match[0] if match else ""


def locate_words(words: Sequence[str], text: str) -> list[Span]:
    """Find the spans of words in a text, in order. A word that does not follow the one before it within
    SEARCH_WIDTH characters, as it is, without Moses' escapes or in lower case, gets an empty span.

    Without `words`, the text is split at blanks.
    """
    if not words:
        return [match.span() for match in re.finditer(r"\S+", text)]
    lower = text.lower() if len(text.lower()) == len(text) else text
    spans, offset = list[Span](), 0
    for word in words:
        form = unescape(word).strip("▁ ")
        for key in dict.fromkeys((word.strip("▁ "), form, form.lower())):
            start = lower.find(key, offset, offset + len(key) + SEARCH_WIDTH)
            if key and start >= 0:
                spans.append((start, start + len(key)))
                offset = start + len(key)
                break
        else:
            spans.append((offset, offset))
    return spans


# ---- placement of tags -------------------------------------------------------------------------------------


@dataclass
class PlacedTags:
    """An element with its position in a translation, as character offsets."""

    element: TagPair
    first: int
    last: int
    children: list["PlacedTags"] = field(default_factory=list)
    blank: str = ""  # written before the element


class TagPlacement:
    """Chooses the target words that each element encloses."""

    def __init__(
        self, sources: Sequence[Span], targets: Sequence[Span], alignment: Sequence[tuple[int, int]]
    ) -> None:
        """`sources`, `targets`: spans of the words; `alignment`: the words of each link, source first."""
        self.sources, self.targets = sources, targets
        self.links: list[set[int]] = [set() for _ in targets]
        for source, target in alignment:
            if source < len(sources) and target < len(targets):
                self.links[target].add(source)

    def place_within(self, parent: TagPair, low: int, high: int) -> list[PlacedTags]:
        """Place the children of an element that encloses the target words `low` to `high` - 1."""
        taken, rows = [(low, low), (high, high)], list[tuple[int, int, int, TagPair]]()
        for number, child in enumerate(parent.children):
            first, last = self.target_words(child, parent, taken)
            if first < last:
                taken = sorted([*taken, (first, last)])
            rows.append((first, last, number, child))
        return [
            self.place_element(child, first, last)
            for first, last, _, child in sorted(rows, key=lambda row: row[:3])
        ]

    def place_element(self, element: TagPair, first: int, last: int) -> PlacedTags:
        """Place an element, with its children, around the target words `first` to `last` - 1. If these are
        none, it stands at the end of the word before, or at the beginning of the word `first`."""
        blank = ""
        if first < last:
            start, end = self.targets[first][0], self.targets[last - 1][1]
        elif first and (element.tight or element.apart or first == len(self.targets)):
            start = end = self.targets[first - 1][1]
            blank = " " if element.apart else ""
        else:
            start = end = self.targets[first][0] if first < len(self.targets) else 0
        return PlacedTags(element, start, end, self.place_within(element, first, last), blank)

    def target_words(self, element: TagPair, parent: TagPair, taken: Sequence[Span]) -> Span:
        """Choose the target words that an element encloses, outside the spans in `taken`, whose first and
        last mark the ends of the words of its parent. Returns (first, last + 1)."""
        inside = self.enclosed_words(element)
        gaps = [(left[1], right[0]) for left, right in pairwise(taken)]
        if inside:
            score, first, last = max(self.best_stretch(gap, inside) for gap in gaps)
            if score > 0:
                return first, last
        low, high = taken[0][0], taken[-1][1]
        first, last = (
            low + self.scale_offset(position, parent, high - low)
            for position in (element.first, element.last)
        )
        if not inside:
            first = last = self.point_position(element, first)
        first, last = nearest_gap(first, max(last, first + bool(inside)), gaps)
        return first, last

    def enclosed_words(self, element: TagPair) -> set[int]:
        """The indices of the source words that an element encloses."""
        return {
            number
            for number, (start, end) in enumerate(self.sources)
            if start < end and start < element.last and end > element.first
        }

    def best_stretch(self, gap: Span, inside: set[int]) -> tuple[float, int, int]:
        """Find the stretch of a gap with the most words aligned to those in `inside`, and the fewest others.

        Returns its score, the index of its first word, and the index after its last word.
        """
        best, total, start = (0.0, gap[0], gap[0]), 0.0, gap[0]
        for word in range(*gap):
            links = self.links[word]
            total += 1.0 if links & inside else -1.0 if links else -UNALIGNED_COST
            if total > best[0]:
                best = (total, start, word + 1)
            if total <= 0:
                total, start = 0.0, word + 1
        return best

    def scale_offset(self, position: int, parent: TagPair, words: int) -> int:
        """Scale a character offset in the parent's text to an offset in its `words` target words."""
        length = max(1, parent.last - parent.first)
        return round(words * min(1.0, max(0.0, (position - parent.first) / length)))

    def point_position(self, element: TagPair, otherwise: int) -> int:
        """Choose the position of an element without words: after the last target word that is aligned to the
        source word before the element. Returns the index of the target word that follows the element, or
        `otherwise` if no target word is aligned so."""
        preceding = [
            number for number, (start, end) in enumerate(self.sources) if start < min(end, element.first)
        ]
        aligned = [word for word, links in enumerate(self.links) if preceding and preceding[-1] in links]
        return max(aligned) + 1 if aligned else otherwise


def nearest_gap(first: int, last: int, gaps: Sequence[Span]) -> Span:
    """Move the span of words from `first` to `last` - 1 into the nearest gap, shortened (possibly to nothing)
    if the gap is smaller. Returns the span in the same form."""
    size = last - first
    low, high = min(
        gaps, key=lambda gap: (min(size, 1) > gap[1] - gap[0], max(gap[0] - first, first - gap[1], 0))
    )
    first = min(max(first, low), high)
    if first + size > high:
        first = max(low, high - size)
    return first, min(high, first + size)


def render_stretch(children: Sequence[PlacedTags], target: str, start: int, end: int) -> Iterator[str]:
    """Render the characters `start` to `end` of `target`, the whole translation, with the elements `children`
    that are placed in them."""
    for child in children:
        first = max(start, child.first)
        last = max(first, child.last)
        yield html.escape(target[start:first], quote=False)
        yield child.blank + child.element.start
        yield from render_stretch(child.children, target, first, last)
        yield child.element.end
        start = last
    yield html.escape(target[start:end], quote=False)
