"""The text of an HTML document. A parser says which of its characters are text; these are translated, all
else stays byte for byte. Inline tags stay in their sentence (nmt/serve/inline_tags.py).

Time grows with the length of the document, whatever it holds.
"""

import hashlib
import html
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from selectolax.lexbor import LexborHTMLParser, LexborNode

from nmt.serve.engine import Translated
from nmt.serve.fields import BadRequest
from nmt.serve.inline_tags import Inline, TaggedText

BLANKS = "\t\n\f\r "
# What may stand inside of a sentence, and what stands in it as a whole.
INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark nobr q s small span strike "
    "strong sub sup time tt u".split()
)
OPAQUE = frozenset("code kbd samp var".split())
VOID = frozenset("img wbr".split())
# Elements that are not translated, and those whose text is no markup: up to their end tag, or to the end.
VERBATIM = OPAQUE | frozenset(
    "script style pre textarea svg math iframe noembed noframes noscript xmp plaintext template".split()
)
RAW = frozenset("script style textarea title iframe noembed noframes xmp plaintext".split())
# Elements that the next one may end: they do not nest without another that does.
UNCLOSED = VOID | frozenset(
    "area base body br caption col colgroup dd dt embed head hr html input li link meta optgroup option p "
    "param rp rt source tbody td tfoot th thead tr track".split()
)
MOST_INLINE = 500  # tokens of a sentence
DEEPEST = 1000  # elements in each other; parsers take time for each of them at each tag

# Tags, comments and the like as the tokenizer of the HTML standard (section 13.2.5) delimits them.
VALUE = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^"'>\t\n\f\r ][^>\t\n\f\r ]*+|(?=>))"""
ATTRIBUTE = rf"(?:=[^\t\n\f\r />=]*+|[^\t\n\f\r />=]++)(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+{VALUE})?+"
MARKUP = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))"
    rf"|<(?P<close>/?)(?P<name>[A-Za-z][^\t\n\f\r />]*+)(?:[\t\n\f\r /]++|{ATTRIBUTE})*+(?:>|\Z)"
    r"|<[!?/][^>]*+(?:>|\Z)",
    re.DOTALL,
)


@dataclass(frozen=True)
class HtmlToken:
    """A part of a document: text, or a tag, a comment and the like."""

    raw: str
    name: str = ""  # of a tag, in lower case
    close: bool = False  # an end tag
    is_text: bool = False
    whole: bool = False  # an element with its end, which is not translated


@dataclass
class Document:
    """A document with its sentences: `segments` by the number of their first token."""

    tokens: list[HtmlToken]
    segments: dict[int, TaggedText] = field(default_factory=dict)

    @property
    def lines(self) -> list[str]:
        """The texts to be translated."""
        return [segment.text for segment in self.segments.values()]

    def translated(self, translations: Sequence[Translated]) -> str:
        """The document with a translation for each line; as it was, where the markup would mean something
        else."""
        source, elements = self.joined({}), None
        rows = dict(zip(self.segments, translations, strict=True))
        plain = {number: row for number, row in rows.items() if len(self.segments[number].items) == 1}
        for choice in (rows, plain):
            target = self.joined(choice)
            elements = elements or skeleton(source)
            if skeleton(target) == elements:
                return target
        return source

    def joined(self, translations: dict[int, Translated]) -> str:
        """The document with these segments translated."""
        parts, skip = list[str](), 0
        for number, token in enumerate(self.tokens):
            if number in translations:
                segment = self.segments[number]
                parts.append(segment.translated(translations[number]))
                skip = number + len(segment.items)
            elif number >= skip:
                parts.append(token.raw)
        return "".join(parts)


def parse(document: str) -> Document:
    """A document with its sentences. BadRequest for one that is nested too deeply."""
    tokens = list(with_whole(list(checked(tokenize(document)))))
    made = Document(tokens)
    text = translatable(tokens)
    for run in runs(tokens, text):
        for part in map(partial(trimmed, tokens), balanced(tokens, run)):
            if (segment := TaggedText.of([inline(tokens[number]) for number in part])) is not None:
                made.segments[part.start] = segment
    return made


# ---- tokens ------------------------------------------------------------------------------------------------


def tokenize(document: str) -> Iterator[HtmlToken]:
    """The tokens of a document; their raw texts together are the document."""
    at = 0
    while at < len(document):
        match = next_markup(document, at)
        start = match.start() if match else len(document)
        if start > at:
            yield HtmlToken(document[at:start], is_text=True)
        if match is None:
            return
        name = (match["name"] or "").lower()
        yield HtmlToken(match[0], name, bool(match["close"]))
        at = match.end()
        if name in RAW and not match["close"]:
            end = end_of_raw(document, name, at)
            if end > at:
                yield HtmlToken(document[at:end], is_text=name == "title")
            at = end


def next_markup(document: str, at: int) -> "re.Match[str] | None":
    """The next tag, comment or the like: < before a letter, a slash, ! or ?"""
    start = re.compile("<(?=[A-Za-z/!?])").search(document, at)
    return MARKUP.match(document, start.start()) if start else None


def end_of_raw(document: str, name: str, at: int) -> int:
    """Where the end tag of an element starts whose text is no markup."""
    if name == "plaintext":
        return len(document)
    end = re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE).search(document, at)
    return end.start() if end else len(document)


def with_whole(tokens: Sequence[HtmlToken]) -> Iterator[HtmlToken]:
    """Inline elements that are not translated as one token each, if there is only text in them."""
    number = 0
    while number < len(tokens):
        part = tokens[number : number + 3]
        opaque = part[0].name in OPAQUE and part[-1].name == part[0].name
        whole = opaque and [token.close for token in part] == [False, False, True] and part[1].is_text
        yield HtmlToken("".join(token.raw for token in part), whole=True) if whole else part[0]
        number += 3 if whole else 1


def checked(tokens: Iterable[HtmlToken]) -> Iterator[HtmlToken]:
    """Pass the tokens on. BadRequest for elements that are nested too deeply."""
    opened, depth = Counter[str](), 0
    for token in tokens:
        if token.name and token.name not in UNCLOSED:
            step = -min(1, opened[token.name]) if token.close else 1
            opened[token.name] += step
            depth += step
            if depth > DEEPEST:
                raise BadRequest(f"HTML: more than {DEEPEST} elements that are not closed, or in each other")
        yield token


# ---- what is text ------------------------------------------------------------------------------------------


def translatable(tokens: Sequence[HtmlToken]) -> set[int]:
    """The numbers of the tokens that a parser has as text of elements that are translated. It is asked with a
    word of its own in place of each text."""
    document = "".join(token.raw for token in tokens)
    # no document has its own digest in it
    stem = f"zq{hashlib.blake2b(document.encode(), digest_size=8).hexdigest()}n"
    probe = "".join(
        marked(token.raw, f"{stem}{number}q") if token.is_text else token.raw
        for number, token in enumerate(tokens)
    )
    mark = re.compile(f"{stem}(\\d+)q")
    texts = [
        {
            int(match[1])
            for node, verbatim in nodes(reading)
            if node.is_text_node and not verbatim
            for match in mark.finditer(node.text_content or "")
        }
        for reading in readings(probe)
    ]
    return set.intersection(*texts)


def marked(raw: str, mark: str) -> str:
    """A text with a word instead of its own, if it has any, between the same blanks."""
    body = raw.strip(BLANKS)
    if not has_words(body):
        return raw
    start = raw.index(body)
    return raw[:start] + mark + raw[start + len(body) :]


def readings(document: str) -> list[str]:
    """A document as it is read without scripting, and as it is with it, where the two may differ: there
    `noscript` has no elements in it, as `noembed` never has."""
    other = re.sub(r"(</?)noscript(?=[\t\n\f\r />])", r"\1noembed", document, flags=re.IGNORECASE)
    return [document] if other == document else [document, other]


def nodes(document: str) -> Iterator[tuple[LexborNode, bool]]:
    """The nodes of a document in order, each with whether it is in an element that is not translated."""
    top = LexborHTMLParser(document).root
    states = dict[int, bool]()
    for node in top.parent.traverse(include_text=True) if top and top.parent else ():
        above = states.get(node.parent.mem_id, False) if node.parent else False
        if node.is_element_node:
            states[node.mem_id] = above or node.tag in VERBATIM or node.attributes.get("translate") == "no"
        yield node, above


def skeleton(document: str) -> Counter[tuple[str, tuple[tuple[str, str | None], ...], str]]:
    """All that a document has but text: its elements with their attributes, its comments, and what is not
    translated."""
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
        for node, verbatim in nodes(reading)
        if (text := node.is_text_node and verbatim) or not node.is_text_node
    )


# ---- sentences ---------------------------------------------------------------------------------------------


def runs(tokens: Sequence[HtmlToken], text: set[int]) -> Iterator[range]:
    """Neighbors that may be in one sentence: text, inline tags, comments, and inline elements that are not
    translated."""
    start = 0
    for number in range(len(tokens) + 1):
        if number == len(tokens) or not is_inline(tokens[number], number in text):
            if number > start:
                yield range(start, number)
            start = number + 1


def is_inline(token: HtmlToken, translatable: bool) -> bool:
    """Whether a token may stand inside of a sentence. A text without words may be anywhere."""
    if token.is_text:
        return translatable or not has_words(token.raw)
    return token.whole or token.name in INLINE | VOID or token.raw.startswith("<!--")


def has_words(raw: str) -> bool:
    return any(map(str.isalnum, html.unescape(raw)))


def balanced(tokens: Sequence[HtmlToken], run: range) -> Iterator[range]:
    """A run in parts within which every tag has its partner; cut at every tag where these are too many."""
    opened, pairs, borders = list[int](), list[tuple[int, int]](), list[int]()
    tags = [number for number in run if tokens[number].name in INLINE]
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
    for border in [*(tags if len(run) > MOST_INLINE else borders), run.stop]:
        if border > start:
            yield range(start, border)
        start = border + 1


def trimmed(tokens: Sequence[HtmlToken], part: range) -> range:
    """A part of a run without what stands before its first word or tag, and after the last."""
    start, stop = part.start, part.stop
    while start < stop and is_outer(tokens[start]):
        start += 1
    while start < stop and is_outer(tokens[stop - 1]):
        stop -= 1
    return range(start, stop)


def is_outer(token: HtmlToken) -> bool:
    """Blanks, and what is neither text nor a tag with a partner."""
    return not token.raw.strip(BLANKS) if token.is_text else token.name not in INLINE


def inline(token: HtmlToken) -> Inline:
    """A token as a part of a sentence."""
    if token.is_text:
        return Inline(token.raw, html.unescape(token.raw).replace("\0", ""))
    paired = token.name in INLINE
    return Inline(token.raw, opens=paired and not token.close, closes=paired and token.close)
