"""Sentences with inline tags: `A <b>dog</b> runs.` is translated as one, and each tag stands in the
translation as often as in the sentence.

A pair of tags encloses the words that are aligned to those it enclosed: of all stretches the one with the
most of them and the fewest words of others. Without an alignment it stands as far into the translation as
it did into the sentence. Pairs stay in each other, or beside each other, as they were.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from nmt.serve.engine import Translated
from nmt.text.escapes import unescape

Span = tuple[int, int]

BLANKS = re.compile("[\t\n\f\r ]+")
NEAR = 20  # characters in which the next word of a text is looked for
ALONE = 0.1  # what a word that is aligned to nothing counts against a stretch


@dataclass(frozen=True)
class Inline:
    """A part of a sentence: text, or a tag, a comment and the like."""

    raw: str
    text: str = ""  # what a reader sees
    opens: bool = False  # a start tag that has an end tag
    closes: bool = False  # that end tag


@dataclass
class Element:
    """A pair of tags, or something without an end, around a stretch of the text."""

    start: str
    first: int  # character of the text
    tight: bool = False  # no blank before it
    apart: bool = False  # blanks before and after something without an end
    end: str = ""
    last: int = 0  # the character after its stretch
    children: list["Element"] = field(default_factory=list)


@dataclass
class TaggedText:
    """A sentence, or several, with inline tags that have their partners in it."""

    items: Sequence[Inline]
    text: str  # what is translated
    root: Element

    @staticmethod
    def of(items: Sequence[Inline]) -> "TaggedText | None":
        """None where there is no word to translate. Tags are balanced."""
        text, root = "", Element("", 0)
        opened, points = [root], list[Element]()  # points: since the last word
        for item in items:
            if item.text:
                part = BLANKS.sub(" ", item.text)
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
                element = Element(item.raw, len(text), tight, last=len(text))
                opened[-1].children.append(element)
                (opened if item.opens else points).append(element)
        root.last = len(text)
        return TaggedText(items, text.rstrip(" "), root) if any(map(str.isalnum, text)) else None

    def translated(self, translation: Translated) -> str:
        """The sentence with its translation, which is text, whatever it holds; as it was without one."""
        best = translation.hypotheses[0]
        raw = "".join(item.raw for item in self.items)
        if not best.text.strip():
            return raw
        target = best.text.strip(" ")
        placement = Placement(
            locate(translation.words, self.text),
            locate(best.words, target),
            best.alignment,
            self.root.last,
        )
        body = "".join(written(self.root, placement.place(self.root), target))
        return leading(raw) + body + leading(raw[::-1])[::-1]


def leading(raw: str) -> str:
    """The blanks that a text begins with."""
    match = BLANKS.match(raw)
    return match[0] if match else ""


def locate(words: Sequence[str], text: str) -> list[Span]:
    """Where the words of a text stand in it, in order; a word that is written otherwise there has no width.
    Without words they are those between blanks."""
    if not words:
        return [match.span() for match in re.finditer(r"\S+", text)]
    lower = text.lower() if len(text.lower()) == len(text) else text
    spans, at = list[Span](), 0
    for word in words:
        form = unescape(word).strip("▁ ")
        for key in (form, form.lower()):
            start = lower.find(key, at, at + len(key) + NEAR)
            if key and start >= 0:
                spans.append((start, start + len(key)))
                at = start + len(key)
                break
        else:
            spans.append((at, at))
    return spans


# ---- where tags go -----------------------------------------------------------------------------------------


@dataclass
class Placed:
    """Where an element stands in a translation: characters."""

    element: Element
    first: int
    last: int
    children: list["Placed"] = field(default_factory=list)
    blank: str = ""  # before it


class Placement:
    """Chooses the target words of elements."""

    def __init__(
        self, sources: Sequence[Span], targets: Sequence[Span], alignment: Sequence[Span], length: int
    ) -> None:
        """`sources`, `targets`: where the words stand; `length`: of the source text."""
        self.sources, self.targets, self.length = sources, targets, length
        self.links: list[set[int]] = [set() for _ in targets]
        for source, target in alignment:
            if source < len(sources) and target < len(targets):
                self.links[target].add(source)

    def place(self, root: Element) -> list[Placed]:
        """The children of the whole sentence."""
        return self.children(root, 0, len(self.targets))

    def children(self, parent: Element, low: int, high: int) -> list[Placed]:
        """The children of an element that has the target words from `low` on, before `high`."""
        taken, rows = [(low, low), (high, high)], list[tuple[int, int, int, Element]]()
        for number, child in enumerate(parent.children):
            first, last = self.words_of(child, parent, taken)
            if first < last:
                taken = sorted([*taken, (first, last)])
            rows.append((first, last, number, child))
        return [
            self.placed(child, first, last) for first, last, _, child in sorted(rows, key=lambda row: row[:3])
        ]

    def placed(self, element: Element, first: int, last: int) -> Placed:
        blank = ""
        if first < last:
            start, end = self.targets[first][0], self.targets[last - 1][1]
        elif first and (element.tight or element.apart or first == len(self.targets)):
            start = end = self.targets[first - 1][1]
            blank = " " if element.apart else ""
        else:
            start = end = self.targets[first][0] if first < len(self.targets) else 0
        return Placed(element, start, end, self.children(element, first, last), blank)

    def words_of(self, element: Element, parent: Element, taken: Sequence[Span]) -> Span:
        """The target words of an element, beside those that are taken."""
        inside = self.inside(element)
        gaps = [(left[1], right[0]) for left, right in pairwise(taken)]
        if inside:
            score, first, last = max(self.best_stretch(gap, inside) for gap in gaps)
            if score > 0:
                return first, last
        low, high = taken[0][0], taken[-1][1]
        first, last = (
            low + self.share(position, parent, high - low) for position in (element.first, element.last)
        )
        if not inside:
            first = last = self.beside(element, first)
        first, last = nearest(first, max(last, first + bool(inside)), gaps)
        return first, last

    def inside(self, element: Element) -> set[int]:
        """The source words within an element."""
        return {
            number
            for number, (start, end) in enumerate(self.sources)
            if start < end and start < element.last and end > element.first
        }

    def best_stretch(self, gap: Span, inside: set[int]) -> tuple[float, int, int]:
        """The stretch within a gap with the most words that are aligned to those inside, and the fewest of
        others: its score, its first word, and the one after its last."""
        best, total, start = (0.0, gap[0], gap[0]), 0.0, gap[0]
        for word in range(*gap):
            links = self.links[word]
            total += 1.0 if links & inside else -1.0 if links else -ALONE
            if total > best[0]:
                best = (total, start, word + 1)
            if total <= 0:
                total, start = 0.0, word + 1
        return best

    def share(self, position: int, parent: Element, words: int) -> int:
        """The target word as far into the words of the parent as a character is into its text."""
        length = max(1, parent.last - parent.first)
        return round(words * min(1.0, max(0.0, (position - parent.first) / length)))

    def beside(self, element: Element, otherwise: int) -> int:
        """Before which target word an element without words stands: after the one that is aligned to the
        source word before it."""
        before = [
            number for number, (start, end) in enumerate(self.sources) if start < min(end, element.first)
        ]
        aligned = [word for word, links in enumerate(self.links) if before and before[-1] in links]
        return max(aligned) + 1 if aligned else otherwise


def nearest(first: int, last: int, gaps: Sequence[Span]) -> Span:
    """The span within a gap that is nearest to another; shorter, or empty, where there is no room for it."""
    size = last - first
    low, high = min(
        gaps, key=lambda gap: (min(size, 1) > gap[1] - gap[0], max(gap[0] - first, first - gap[1], 0))
    )
    first = min(max(first, low), high)
    if first + size > high:
        first = max(low, high - size)
    return first, min(high, first + size)


def written(parent: Element, children: Sequence[Placed], target: str) -> Iterator[str]:
    """The text of the whole sentence with its tags."""
    yield from stretch(children, target, 0, len(target))


def stretch(children: Sequence[Placed], target: str, at: int, end: int) -> Iterator[str]:
    """The text from `at` to `end` with the tags in it."""
    for child in children:
        first = max(at, child.first)
        last = max(first, child.last)
        yield html.escape(target[at:first], quote=False)
        yield child.blank + child.element.start
        yield from stretch(child.children, target, first, last)
        yield child.element.end
        at = last
    yield html.escape(target[at:end], quote=False)
