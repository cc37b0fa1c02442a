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

from selectolax.lexbor import LexborHTMLParser, LexborNode

from nmt.documents.document import Document, decode_text, has_words
from nmt.documents.inline import AlignedTranslation, InlineItem, TaggedText
from nmt.errors import DataError

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
# The declaration of an encoding, as far as the HTML standard looks for it.
CHARSET = re.compile(rb"<meta\b[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
PRESCAN = 1024  # bytes
UTF8, UTF8_MARK = "utf-8", b"\xef\xbb\xbf"
# Browsers read the first three as windows-1252, too.
ENCODINGS = dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "windows-1252"), "cp1252") | {
    "utf-8": UTF8,
    "utf8": UTF8,
}
MAX_DEPTH = 1000  # nested elements; at each tag a parser's time grows with their number

# Tags, comments and other markup as the HTML standard's tokenizer delimits them (the section on
# tokenization).
MARKUP_START = re.compile("<(?=[A-Za-z/!?])")
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
class HtmlDocument(Document):
    """A document with its sentences: `segments` by the index of their first token."""

    tokens: list[HtmlToken]
    segments: dict[int, TaggedText] = field(default_factory=dict)
    encoding: str = UTF8  # in which `write` encodes it

    @property
    def lines(self) -> list[str]:
        """The texts to translate, in the order of the document."""
        return [segment.text for segment in self.segments.values()]

    def render(self, translations: Sequence[AlignedTranslation]) -> str:
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

    def write(self, translations: Sequence[AlignedTranslation]) -> bytes:
        return self.render(translations).encode(self.encoding, "xmlcharrefreplace")

    def join_tokens(self, translations: dict[int, AlignedTranslation]) -> str:
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


def parse_file(data: bytes, name: str) -> HtmlDocument:
    """Split the document of a file into tokens and sentences. DataError for one that is nested too deeply, or
    in an encoding that is not read. `name`: of the file, for messages."""
    encoding = declared_encoding(data, name)
    return parse_html(decode_text(data, name, encoding), name, encoding)


def declared_encoding(data: bytes, name: str) -> str:
    """The encoding declared in the first kilobyte, by default UTF-8. DataError for one that is not read."""
    match = CHARSET.search(data, 0, PRESCAN)
    if match is None or data.startswith(UTF8_MARK):
        return UTF8
    label = match[1].decode("ascii").lower()
    if label not in ENCODINGS:
        raise DataError(
            f"{name}:1: declares the encoding {label}, expected UTF-8; convert it, e.g. iconv -t utf-8, and "
            "change what it declares"
        )
    return ENCODINGS[label]


def parse_html(document: str, name: str = "HTML", encoding: str = UTF8) -> HtmlDocument:
    """Split a document into tokens and sentences. DataError for one that is nested too deeply. `name`: for
    messages; `encoding`: of the file that will be written."""
    tokens = list(merge_opaque(list(check_depth(tokenize(document), name))))
    parsed = HtmlDocument(tokens, encoding=encoding)
    text = translatable(tokens)
    for run in text_runs(tokens, text):
        for part in map(partial(trim_part, tokens), split_balanced(tokens, run)):
            segment = TaggedText.from_items([inline_item(tokens[number]) for number in part])
            if segment is not None:
                parsed.segments[part.start] = segment
    return parsed


# ---- tokens ------------------------------------------------------------------------------------------------


def tokenize(document: str) -> Iterator[HtmlToken]:
    """Split a document into tokens, whose raw texts add up to the document."""
    offset = 0
    while offset < len(document):
        begins = MARKUP_START.search(document, offset)
        match = MARKUP.match(document, begins.start()) if begins else None
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


def check_depth(tokens: Iterable[HtmlToken], document: str) -> Iterator[HtmlToken]:
    """Yield the tokens unchanged. DataError for elements that are nested too deeply. `document`: its name."""
    opened, depth, line = Counter[str](), 0, 1
    for token in tokens:
        if token.name and token.name not in UNCLOSED_ELEMENTS:
            step = -min(1, opened[token.name]) if token.close else 1
            opened[token.name] += step
            depth += step
            if depth > MAX_DEPTH:
                raise DataError(
                    f"{document}:{line}: more than {MAX_DEPTH} unclosed or nested elements; close them"
                )
        line += token.raw.count("\n")
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
    if not has_words(html.unescape(body)):
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
    """Count what must not change: (tag, attributes, text) of elements, comments and untranslated texts."""
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
        return translatable or not has_words(html.unescape(token.raw))
    return token.whole or token.name in INLINE_ELEMENTS | VOID_ELEMENTS or token.raw.startswith("<!--")


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
    """Whether a token at the edge of a part can be left out: a blank, or markup other than a paired tag."""
    return not token.raw.strip(BLANK_CHARACTERS) if token.is_text else token.name not in INLINE_ELEMENTS


def inline_item(token: HtmlToken) -> InlineItem:
    """Convert a token to a part of a sentence."""
    if token.is_text:
        return InlineItem(token.raw, html.unescape(token.raw).replace("\0", ""))
    paired = token.name in INLINE_ELEMENTS
    return InlineItem(token.raw, opens=paired and not token.close, closes=paired and token.close)
