"""XML as it stands in a file: its tags and texts with every byte, so that all that is not translated stays.

A parser checks a file before it is cut into tokens. XML may come from anywhere: no entity is expanded, and no
DTD and no network is read.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lxml import etree

from nmt.documents.document import BOM, decode_text, line_of
from nmt.documents.inline import AlignedTranslation
from nmt.errors import DataError

# ---- files -------------------------------------------------------------------------------------------------

PARSER = {
    "no_network": True, "load_dtd": False, "dtd_validation": False, "resolve_entities": False,
    "huge_tree": False,
}  # fmt: skip
DECLARATION = re.compile(r"""<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
DOCTYPE = re.compile(r"<!DOCTYPE\b")
ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);|#)([^;\s&<]{0,40})")
CHARACTER = re.compile(
    r"&(?:(?P<name>amp|lt|gt|quot|apos)|#x(?P<hex>[0-9A-Fa-f]{1,6})|#(?P<number>[0-9]{1,7}));"
)
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class XmlFile:
    """The text of an XML file, and how it is encoded."""

    text: str  # with the byte order mark, if there is one
    encoding: str

    def encode(self, text: str) -> bytes:
        """Encode a text as this file is."""
        return text.encode(self.encoding, "xmlcharrefreplace")


def read_xml(data: bytes, name: str) -> XmlFile:
    """Decode an XML file, and check that it is well-formed. DataError, with the line, if it is not, for one
    that declares entities or uses undeclared ones, and for one that is neither UTF-8 nor UTF-16. `name`: of
    the file, for messages."""
    encoding = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(data[:2], "utf-8")
    text = decode_text(data, name, encoding)
    match = DECLARATION.match(text.removeprefix(BOM))
    declared = match[1].lower() if match else encoding
    if declared not in (("utf-8", "utf8", "us-ascii") if encoding == "utf-8" else ("utf-16", encoding)):
        raise DataError(
            f"{name}:1: declares the encoding {declared}, expected UTF-8; convert it, e.g. iconv -t utf-8, "
            "and change what it declares"
        )
    if declared == "us-ascii" and not text.isascii():
        raise DataError(f"{name}:1: declares the encoding us-ascii, but is not; declare UTF-8")
    check_well_formed(data, name)
    return XmlFile(text, "ascii" if declared == "us-ascii" else encoding)


def check_well_formed(data: bytes, name: str) -> None:
    """DataError, with the line, for XML that is not well-formed, or that declares entities."""
    try:
        root = etree.fromstring(data, etree.XMLParser(**PARSER))
    except etree.XMLSyntaxError as error:
        what = re.sub(r"(, line \d+, column \d+)+$", "", error.msg or "empty")
        if "XML_PARSE_HUGE" in what:
            what = "a text of more than 10 MB, or more than 256 elements inside each other"
        raise DataError(
            f"{name}:{error.lineno or 1}: not well-formed XML ({what}); was it copied whole?"
        ) from error
    except ValueError as error:
        raise DataError(f"{name}:1: not well-formed XML ({error}); was it copied whole?") from error
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and (names := [entity.name for entity in dtd.iterentities()]):
        raise DataError(
            f"{name}:1: declares the entity {names[0]}, and entities are not read; write the characters into "
            "the text, and remove <!ENTITY ...>"
        )


# ---- tokens ------------------------------------------------------------------------------------------------

TOKEN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[(?P<cdata>.*?)\]\]>|<\?.*?\?>"
    r"""|<!(?:"[^"]*+"|'[^']*+'|\[(?:"[^"]*+"|'[^']*+'|<!--.*?-->|<\?.*?\?>|[^\]"'])*+\]|[^>"'\[])*+>"""
    r"""|<(?P<close>/?)(?P<name>[^\s/>"'!?]++)(?P<rest>(?:[^"'>]++|"[^"]*+"|'[^']*+')*+)>""",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r"""(\s+)([^\s=]+)\s*=\s*("[^"]*"|'[^']*')""")


@dataclass(frozen=True)
class XmlToken:
    """A tag, a text, or other markup such as a comment."""

    raw: str  # as in the file
    name: str = ""  # of a tag, with its prefix
    opens: bool = False  # a start tag that has an end tag
    closes: bool = False  # an end tag
    text: str = ""  # of a text, without escapes

    @property
    def is_text(self) -> bool:
        return not self.name and bool(self.text)

    @property
    def local(self) -> str:
        """The name of a tag without its prefix."""
        return self.name.rpartition(":")[2]

    def attribute(self, name: str) -> str:
        """The value of an attribute, by its name with or without a prefix; empty if it is missing."""
        for match in ATTRIBUTE.finditer(self.raw):
            if match[2] == name or match[2].rpartition(":")[2] == name:
                return unescape(match[3][1:-1])
        return ""

    def with_attribute(self, name: str, value: str) -> "XmlToken":
        """A copy of a start tag with another value of an attribute; an empty one removes it."""
        written = f'{name}="{html.escape(value)}"' if value else ""
        for match in ATTRIBUTE.finditer(self.raw):
            if match[2] == name:
                changed = f"{match[1]}{written}" if written else ""
                return replace(self, raw=self.raw[: match.start()] + changed + self.raw[match.end() :])
        if not written:
            return self
        end = len(self.raw) - (1 if self.opens else 2)
        body = self.raw[:end].rstrip()
        return replace(self, raw=f"{body} {written}{self.raw[len(body) :]}")


def tokenize(text: str, name: str) -> list[XmlToken]:
    """Split well-formed XML into tokens, whose raw texts add up to it. DataError for an entity that XML does
    not declare. `name`: of the file, for messages."""
    tokens, offset = list[XmlToken](), 0
    while offset < len(text):
        start = text.find("<", offset)
        start = len(text) if start < 0 else start
        if start > offset:
            tokens.append(text_token(text[offset:start], name, text, offset))
        if start == len(text):
            break
        match = TOKEN.match(text, start)
        if match is None:
            raise DataError(f"{name}:{line_of(text, start)}: not well-formed XML; was it copied whole?")
        tokens.append(markup_token(match))
        offset = match.end()
    return tokens


def text_token(raw: str, name: str, document: str, offset: int) -> XmlToken:
    """The token of a text. DataError for an entity that XML does not declare. `document`, `offset`: where the
    text is from, for the line in messages."""
    if match := ENTITY.search(raw):
        line = line_of(document, offset + match.start())
        raise DataError(
            f"{name}:{line}: the entity &{match[1]}; is not declared in XML; write the character itself"
        )
    return XmlToken(raw, text=unescape(raw))


def markup_token(match: "re.Match[str]") -> XmlToken:
    """The token of markup that TOKEN matches."""
    if match["cdata"] is not None:
        return XmlToken(match[0], text=match["cdata"])
    if match["name"] is None:
        return XmlToken(match[0])
    empty = match["rest"].endswith("/")
    return XmlToken(match[0], match["name"], not match["close"] and not empty, bool(match["close"]))


def match_tags(tokens: Sequence[XmlToken]) -> list[int]:
    """For each token the index of the other tag of its element; its own index if there is none."""
    partners, opened = list(range(len(tokens))), list[int]()
    for index, token in enumerate(tokens):
        if token.opens:
            opened.append(index)
        elif token.closes:
            partners[index] = opened.pop()
            partners[partners[index]] = index
    return partners


def unescape(raw: str) -> str:
    """A text or value without the escapes of XML."""
    return CHARACTER.sub(character, raw) if "&" in raw else raw


def character(match: "re.Match[str]") -> str:
    """The character that CHARACTER matches; the match itself if there is none."""
    if match["name"]:
        return html.unescape(match[0])
    number = int(match["hex"], 16) if match["hex"] else int(match["number"])
    return chr(number) if number < 0x110000 else match[0]


def escape(text: str) -> str:
    """A text as it stands in XML."""
    return html.escape(text, quote=False)


def allowed(translation: AlignedTranslation) -> AlignedTranslation:
    """A translation without the characters that XML does not allow."""
    return replace(translation, text=NOT_XML.sub(" ", translation.text))


def raw_text(tokens: Sequence[XmlToken], first: int, end: int) -> str:
    """The tokens `first` to `end` - 1 as in the file."""
    return "".join(token.raw for token in tokens[first:end])


def children(tokens: Sequence[XmlToken], partners: Sequence[int], parent: int) -> Iterator[int]:
    """Yield the indices of the tags of an element's children, and of its texts. `parent`: the index of its
    start tag."""
    index = parent + 1
    while index < partners[parent]:
        yield index
        index = partners[index] + 1


@dataclass(frozen=True)
class Edit:
    """Tokens `first` to `end` - 1 of a file and what replaces them: a text, or the rest of its pieces."""

    first: int
    end: int
    raw: str


def apply_edits(tokens: Sequence[XmlToken], edits: Sequence[Edit]) -> str:
    """The text of a file with edits, which do not overlap."""
    parts, offset = list[str](), 0
    for edit in sorted(edits, key=lambda edit: (edit.first, edit.end)):
        parts += [raw_text(tokens, offset, edit.first), edit.raw]
        offset = max(offset, edit.end)
    return "".join([*parts, raw_text(tokens, offset, len(tokens))])
