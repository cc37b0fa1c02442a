"""Translation of HTML: text is translated with its inline tags; everything else stays unchanged.

A parser decides which characters are text. Time is linear in the length of any document.
"""

import hashlib
import html
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from selectolax.lexbor import LexborHTMLParser, LexborNode

from nmt.serve.engine import TranslatedLine
from nmt.serve.http_api import BadRequest
from nmt.text.tokenize import unescape

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

    def render(self, translation: TranslatedLine) -> str:
        """Render the escaped translation with the tags; for an empty translation, the source as it was."""
        best = translation.hypotheses[0]
        raw = "".join(item.raw for item in self.items)
        if not best.text.strip():
            return raw
        target = best.text.strip(" ")
        placement = TagPlacement(
            locate_words(translation.words, self.text),
            locate_words(best.words, target),
            best.alignment,
        )
        body = "".join(render_stretch(placement.place_all(self.root), target, 0, len(target)))
        return leading_blanks(raw) + body + leading_blanks(raw[::-1])[::-1]


def leading_blanks(raw: str) -> str:
    """Return the blanks at the beginning of a text."""
    match = BLANK_RUN.match(raw)
    return match[0] if match else ""


def locate_words(words: Sequence[str], text: str) -> list[Span]:
    """Find the spans of words in a text, in order. A word that does not follow the one before it within
    SEARCH_WIDTH characters, as it is or in lower case, gets an empty span.

    Without `words`, the text is split at blanks.
    """
    if not words:
        return [match.span() for match in re.finditer(r"\S+", text)]
    lower = text.lower() if len(text.lower()) == len(text) else text
    spans, offset = list[Span](), 0
    for word in words:
        form = unescape(word).strip("▁ ")
        for key in (form, form.lower()):
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
        """`sources`, `targets`: spans of the words in their texts; `alignment`: indices of the words of each
        link, source first."""
        self.sources, self.targets = sources, targets
        self.links: list[set[int]] = [set() for _ in targets]
        for source, target in alignment:
            if source < len(sources) and target < len(targets):
                self.links[target].add(source)

    def place_all(self, root: TagPair) -> list[PlacedTags]:
        """Place the elements of the whole text, whose root encloses all."""
        return self.place_within(root, 0, len(self.targets))

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


# ---- documents ---------------------------------------------------------------------------------------------


BLANK_CHARACTERS = "\t\n\f\r "
# Elements within a sentence: with content that is translated, with content that is not, without content.
INLINE_ELEMENTS = frozenset(
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark nobr q s small span strike "
    "strong sub sup time tt u".split()
)
OPAQUE_ELEMENTS = frozenset("code kbd samp var".split())
VOID_ELEMENTS = frozenset("img wbr".split())
# Elements that are not translated, and elements whose content is not parsed as markup: it extends to their
# end tag, or to the end of the document.
VERBATIM_ELEMENTS = OPAQUE_ELEMENTS | frozenset(
    "script style pre textarea svg math iframe noembed noframes noscript xmp plaintext template".split()
)
RAW_ELEMENTS = frozenset("script style textarea title iframe noembed noframes xmp plaintext".split())
# Elements whose end tag may be missing: an element of the same name does not nest in them.
UNCLOSED_ELEMENTS = VOID_ELEMENTS | frozenset(
    "area base body br caption col colgroup dd dt embed head hr html input li link meta optgroup option p "
    "param rp rt source tbody td tfoot th thead tr track".split()
)
MAX_INLINE = 500  # tokens of a sentence
MAX_DEPTH = 1000  # nested elements; at each tag a parser's time grows with their number

# Tags, comments and other markup as the HTML standard's tokenizer delimits them (the section on
# tokenization).
VALUE_PATTERN = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^"'>\t\n\f\r ][^>\t\n\f\r ]*+|(?=>))"""
ATTRIBUTE_PATTERN = (
    rf"(?:=[^\t\n\f\r />=]*+|[^\t\n\f\r />=]++)(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+{VALUE_PATTERN})?+"
)
MARKUP = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))"
    rf"|<(?P<close>/?)(?P<name>[A-Za-z][^\t\n\f\r />]*+)(?:[\t\n\f\r /]++|{ATTRIBUTE_PATTERN})*+(?:>|\Z)"
    r"|<[!?/][^>]*+(?:>|\Z)",
    re.DOTALL,
)


@dataclass(frozen=True)
class HtmlToken:
    """A part of a document: text, a tag or other markup, such as a comment."""

    raw: str  # as in the document
    name: str = ""  # of a tag, in lower case
    close: bool = False  # an end tag
    is_text: bool = False
    whole: bool = False  # an untranslated element with its end tag


@dataclass
class HtmlDocument:
    """A document with its sentences: `segments` by the index of their first token."""

    tokens: list[HtmlToken]
    segments: dict[int, TaggedText] = field(default_factory=dict)

    @property
    def lines(self) -> list[str]:
        """The texts to translate, in the order of the document."""
        return [segment.text for segment in self.segments.values()]

    def render(self, translations: Sequence[TranslatedLine]) -> str:
        """Render the document with its translations. If these would change its structure, only those of
        sentences without markup are taken; if that is not enough, none. `translations`: of `lines`, in
        order."""
        source, elements = self.join_tokens({}), None
        rows = dict(zip(self.segments, translations, strict=True))
        plain = {number: row for number, row in rows.items() if len(self.segments[number].items) == 1}
        for choice in (rows, plain):
            target = self.join_tokens(choice)
            elements = elements or skeleton(source)
            if skeleton(target) == elements:
                return target
        return source

    def join_tokens(self, translations: dict[int, TranslatedLine]) -> str:
        """Render the document with translations of some segments, by the index of their first token."""
        parts, skip = list[str](), 0
        for number, token in enumerate(self.tokens):
            if number in translations:
                segment = self.segments[number]
                parts.append(segment.render(translations[number]))
                skip = number + len(segment.items)
            elif number >= skip:
                parts.append(token.raw)
        return "".join(parts)


def parse_html(document: str) -> HtmlDocument:
    """Split a document into tokens and sentences. BadRequest for one that is nested too deeply."""
    tokens = list(merge_opaque(list(check_depth(tokenize(document)))))
    parsed = HtmlDocument(tokens)
    text = translatable(tokens)
    for run in text_runs(tokens, text):
        for part in map(partial(trim_part, tokens), split_balanced(tokens, run)):
            if (
                segment := TaggedText.from_items([inline_item(tokens[number]) for number in part])
            ) is not None:
                parsed.segments[part.start] = segment
    return parsed


# ---- tokens ------------------------------------------------------------------------------------------------


def tokenize(document: str) -> Iterator[HtmlToken]:
    """Split a document into tokens, whose raw texts add up to the document."""
    offset = 0
    while offset < len(document):
        match = next_markup(document, offset)
        start = match.start() if match else len(document)
        if start > offset:
            yield HtmlToken(document[offset:start], is_text=True)
        if match is None:
            return
        name = (match["name"] or "").lower()
        yield HtmlToken(match[0], name, bool(match["close"]))
        offset = match.end()
        if name in RAW_ELEMENTS and not match["close"]:
            end = end_of_raw(document, name, offset)
            if end > offset:
                yield HtmlToken(document[offset:end], is_text=name == "title")
            offset = end


def next_markup(document: str, at: int) -> "re.Match[str] | None":
    """Find the next tag, comment or other markup from offset `at`: < before a letter, a slash, ! or ?. None
    if there is none."""
    start = re.compile("<(?=[A-Za-z/!?])").search(document, at)
    return MARKUP.match(document, start.start()) if start else None


def end_of_raw(document: str, name: str, at: int) -> int:
    """The offset of the end tag of an element whose content is not markup, or else the document's length."""
    if name == "plaintext":
        return len(document)
    end = re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE).search(document, at)
    return end.start() if end else len(document)


def merge_opaque(tokens: Sequence[HtmlToken]) -> Iterator[HtmlToken]:
    """Merge untranslated inline elements that contain only text into one token each."""
    number = 0
    while number < len(tokens):
        part = tokens[number : number + 3]
        opaque = part[0].name in OPAQUE_ELEMENTS and part[-1].name == part[0].name
        whole = opaque and [token.close for token in part] == [False, False, True] and part[1].is_text
        yield HtmlToken("".join(token.raw for token in part), whole=True) if whole else part[0]
        number += 3 if whole else 1


def check_depth(tokens: Iterable[HtmlToken]) -> Iterator[HtmlToken]:
    """Yield the tokens unchanged. BadRequest for elements that are nested too deeply."""
    opened, depth = Counter[str](), 0
    for token in tokens:
        if token.name and token.name not in UNCLOSED_ELEMENTS:
            step = -min(1, opened[token.name]) if token.close else 1
            opened[token.name] += step
            depth += step
            if depth > MAX_DEPTH:
                raise BadRequest(f"HTML: more than {MAX_DEPTH} unclosed or nested elements; close them")
        yield token


# ---- text of elements --------------------------------------------------------------------------------------


def translatable(tokens: Sequence[HtmlToken]) -> set[int]:
    """Indices of the tokens that a parser reads as text of elements to translate. To find them, the document
    is parsed with a unique word in place of each text."""
    document = "".join(token.raw for token in tokens)
    # no document contains its own digest
    stem = f"zq{hashlib.blake2b(document.encode(), digest_size=8).hexdigest()}n"
    probe = "".join(
        replace_words(token.raw, f"{stem}{number}q") if token.is_text else token.raw
        for number, token in enumerate(tokens)
    )
    mark = re.compile(f"{stem}(\\d+)q")
    texts = [
        {
            int(match[1])
            for node, verbatim in parsed_nodes(reading)
            if node.is_text_node and not verbatim
            for match in mark.finditer(node.text_content or "")
        }
        for reading in readings(probe)
    ]
    return set.intersection(*texts)


def replace_words(raw: str, mark: str) -> str:
    """Replace a text that has words by a mark, keeping the blanks at both ends."""
    body = raw.strip(BLANK_CHARACTERS)
    if not has_words(body):
        return raw
    start = raw.index(body)
    return raw[:start] + mark + raw[start + len(body) :]


def readings(document: str) -> list[str]:
    """Return the document, and a second version of it if browsers with scripting may parse it differently.

    With scripting, the content of `noscript` is not parsed as markup; that of `noembed` never is.
    """
    scripted = re.sub(r"(</?)noscript(?=[\t\n\f\r />])", r"\1noembed", document, flags=re.IGNORECASE)
    return [document] if scripted == document else [document, scripted]


def parsed_nodes(document: str) -> Iterator[tuple[LexborNode, bool]]:
    """Yield the nodes of a document in order, each with whether it is inside an untranslated element."""
    top = LexborHTMLParser(document).root
    states = dict[int, bool]()
    for node in top.parent.traverse(include_text=True) if top and top.parent else ():
        above = states.get(node.parent.mem_id, False) if node.parent else False
        if node.is_element_node:
            states[node.mem_id] = (
                above or node.tag in VERBATIM_ELEMENTS or node.attributes.get("translate") == "no"
            )
        yield node, above


def skeleton(document: str) -> Counter[tuple[str, tuple[tuple[str, str | None], ...], str]]:
    """Count what a translation must not change: (tag, attributes, text) of elements, comments and
    untranslated texts."""
    return Counter(
        (
            node.tag or "",
            tuple(sorted(node.attributes.items(), key=str)) if node.is_element_node else (),
            (node.comment_content or "")
            if node.is_comment_node
            else (node.text_content or "")
            if text
            else "",
        )
        for reading in readings(document)
        for node, verbatim in parsed_nodes(reading)
        if (text := node.is_text_node and verbatim) or not node.is_text_node
    )


# ---- parts to translate ------------------------------------------------------------------------------------


def text_runs(tokens: Sequence[HtmlToken], text: set[int]) -> Iterator[range]:
    """Yield ranges of tokens that may belong to one sentence: text, inline tags and elements, comments."""
    start = 0
    for number in range(len(tokens) + 1):
        if number == len(tokens) or not is_inline(tokens[number], number in text):
            if number > start:
                yield range(start, number)
            start = number + 1


def is_inline(token: HtmlToken, translatable: bool) -> bool:
    """Whether a token may be part of a sentence. A text without words always may."""
    if token.is_text:
        return translatable or not has_words(token.raw)
    return token.whole or token.name in INLINE_ELEMENTS | VOID_ELEMENTS or token.raw.startswith("<!--")


def has_words(raw: str) -> bool:
    return any(map(str.isalnum, html.unescape(raw)))


def split_balanced(tokens: Sequence[HtmlToken], run: range) -> Iterator[range]:
    """Split a run of tokens into parts with balanced tags, leaving out the tags between the parts. A run of
    more than MAX_INLINE tokens is split at every tag."""
    opened, pairs, borders = list[int](), list[tuple[int, int]](), list[int]()
    tags = [number for number in run if tokens[number].name in INLINE_ELEMENTS]
    for number in tags:
        if not tokens[number].close:
            opened.append(number)
        elif opened and tokens[opened[-1]].name == tokens[number].name:
            pairs.append((opened.pop(), number))
        else:
            borders.append(number)
    borders = sorted([*borders, *opened])
    crossed = [pair for pair in pairs if bisect(borders, pair[0]) < bisect(borders, pair[1])]
    borders = sorted([*borders, *(number for pair in crossed for number in pair)])
    start = run.start
    for border in [*(tags if len(run) > MAX_INLINE else borders), run.stop]:
        if border > start:
            yield range(start, border)
        start = border + 1


def trim_part(tokens: Sequence[HtmlToken], part: range) -> range:
    """Remove blanks, and markup other than paired tags, from both ends of a part."""
    start, stop = part.start, part.stop
    while start < stop and is_outer(tokens[start]):
        start += 1
    while start < stop and is_outer(tokens[stop - 1]):
        stop -= 1
    return range(start, stop)


def is_outer(token: HtmlToken) -> bool:
    """Whether a token at the edge of a part can be left out of it: a blank, or markup other than a paired
    tag."""
    return not token.raw.strip(BLANK_CHARACTERS) if token.is_text else token.name not in INLINE_ELEMENTS


def inline_item(token: HtmlToken) -> InlineItem:
    """Convert a token to a part of a sentence."""
    if token.is_text:
        return InlineItem(token.raw, html.unescape(token.raw).replace("\0", ""))
    paired = token.name in INLINE_ELEMENTS
    return InlineItem(token.raw, opens=paired and not token.close, closes=paired and token.close)
