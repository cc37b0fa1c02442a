"""XML as it stands in a file: its tags and texts with every byte, so that all that is not translated stays.

A parser checks a file before it is cut into tokens. XML may come from anywhere: no entity is expanded, and no
DTD and no network is read.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lxml import etree

from nmt.documents.document import BOM, decode_text, has_words, line_number
from nmt.documents.inline import AlignedTranslation, InlineItem
from nmt.errors import DataError
from nmt.formats.parallel_text import SEVERE, check_entities, malformed

# ---- files -------------------------------------------------------------------------------------------------

DECLARATION = re.compile(r"""<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);|#)([^;\s&<]{0,40})")
CHARACTER = re.compile(
    r"&(?:(?P<name>amp|lt|gt|quot|apos)|#x0*(?P<hex>[0-9A-Fa-f]{1,6})|#0*(?P<number>[0-9]{1,7}));"
)
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class XmlFile:
    """The tokens of an XML file, whose raw texts add up to it, and how it is encoded."""

    encoding: str
    tokens: Sequence["XmlToken"]
    partners: Sequence[int]  # of each token: the other tag of its element; itself if there is none

    def raw(self, first: int, end: int) -> str:
        """The tokens `first` to `end` - 1 as in the file."""
        return "".join(token.raw for token in self.tokens[first:end])

    def line(self, index: int) -> int:
        """The number of the line of a token, from 1."""
        return 1 + self.raw(0, index).count("\n")

    def children(self, parent: int) -> Iterator[int]:
        """Yield the indices of the tags and texts of an element's children. `parent`: its start tag."""
        index = parent + 1
        while index < self.partners[parent]:
            yield index
            index = self.partners[index] + 1

    def write(self, edits: Sequence["Edit"]) -> bytes:
        """The file with edits, which do not overlap."""
        parts, offset = list[str](), 0
        for edit in sorted(edits, key=lambda edit: (edit.first, edit.end)):
            parts += [self.raw(offset, edit.first), edit.raw]
            offset = max(offset, edit.end)
        text = "".join([*parts, self.raw(offset, len(self.tokens))])
        return text.encode(self.encoding, "xmlcharrefreplace")


@dataclass(frozen=True)
class Edit:
    """A replacement of the tokens `first` to `end` - 1; an insertion before `first` if they are equal."""

    first: int
    end: int
    raw: str  # the XML that replaces them


def read_xml(data: bytes, name: str) -> XmlFile:
    """Read an XML file. DataError, with the line, if it is not well-formed, for one that declares entities or
    uses undeclared ones, and for one that is neither UTF-8 nor UTF-16. `name`: of the file, for messages."""
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
    tokens = tokenize(text, name)
    return XmlFile("ascii" if declared == "us-ascii" else encoding, tokens, match_tags(tokens))


def check_well_formed(data: bytes, name: str) -> None:
    """DataError, with the line, for XML that is not well-formed, or that declares entities."""
    try:
        root = etree.fromstring(data, etree.XMLParser(**SEVERE, huge_tree=False))
    except etree.XMLSyntaxError as error:
        raise malformed(name, error) from error
    except ValueError as error:
        raise DataError(f"{name}:1: not well-formed XML ({error}); was it copied whole?") from error
    check_entities(root, f"{name}:1")


# ---- tokens ------------------------------------------------------------------------------------------------

TOKEN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[(?P<cdata>.*?)\]\]>|<\?.*?\?>"
    r"""|<!(?:"[^"]*+"|'[^']*+'|\[(?:"[^"]*+"|'[^']*+'|<!--.*?-->|<\?.*?\?>|[^\]"'])*+\]|[^>"'\[])*+>"""
    r"""|<(?P<close>/?)(?P<name>[^\s/>"'!?]++)(?P<rest>(?:[^"'>]++|"[^"]*+"|'[^']*+')*+)>""",
    re.DOTALL,
)
ATTRIBUTE = re.compile(r"""((?<!\s)\s++)([^\s=]++)\s*+=\s*+("[^"]*"|'[^']*')""")


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
        """A copy of a start tag in which an attribute has this value; an empty value removes it."""
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
            raise DataError(f"{name}:{line_number(text, start)}: not well-formed XML; was it copied whole?")
        tokens.append(markup_token(match))
        offset = match.end()
    return tokens


def text_token(raw: str, name: str, document: str, offset: int) -> XmlToken:
    """The token of a text. DataError for an entity that XML does not declare. `document`, `offset`: where the
    text is from, for the line in messages."""
    if match := ENTITY.search(raw):
        line = line_number(document, offset + match.start())
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


def clean_translation(translation: AlignedTranslation) -> AlignedTranslation:
    """A translation without the characters that XML does not allow."""
    return replace(translation, text=NOT_XML.sub(" ", translation.text))


# ---- pieces of text ----------------------------------------------------------------------------------------
# Texts with inline markup, cut into the parts that are translated as one.


MOST_PIECES = 500  # of a part
MOST_OPEN = 100  # codes that are waiting for their ends


@dataclass(frozen=True)
class Piece:
    """A text, or markup within or between texts."""

    raw: str  # as it is written into a translation
    text: str = ""
    opens: bool = False  # a tag of a pair
    closes: bool = False
    begins: str = ""  # the key of a code that another code with this key ends
    ends: str = ""
    border: bool = False  # no sentence goes beyond it
    format: str = ""  # of a text, where the document has formats instead of tags
    number: int = 0  # index in the list of pieces that `cut` gets

    @property
    def is_text(self) -> bool:
        return bool(self.text)

    @property
    def item(self) -> InlineItem:
        return InlineItem(self.raw, self.text, self.opens, self.closes)


@dataclass(frozen=True)
class Part:
    """Pieces that are translated as one, with balanced pairs."""

    pieces: Sequence[Piece]
    overlapping: bool  # between its borders there are pairs of codes that overlap without being nested

    @property
    def first(self) -> int:
        """The number of its first piece."""
        return self.pieces[0].number

    @property
    def end(self) -> int:
        """The number of its last piece plus 1."""
        return self.pieces[-1].number + 1


def cut(pieces: Sequence[Piece]) -> list[Part]:
    """Cut pieces into parts, leaving out borders, tags whose partners are elsewhere, and blanks and single
    codes at the ends of a part; and parts without words. Each text of a part with too many pieces is a part
    of its own."""
    parts, start = list[Part](), 0
    for index in range(len(pieces) + 1):
        if index == len(pieces) or pieces[index].border:
            paired = pair_codes(pieces[start:index])
            # Whether both codes of a pair are there, but could not be turned into tags.
            overlapping = bool({piece.begins for piece in paired} & {piece.ends for piece in paired} - {""})
            for part in split_balanced(paired):
                texts = [[piece] for piece in part if piece.is_text]
                for pieces_of_text in [trim(part)] if len(part) <= MOST_PIECES else texts:
                    if has_words("".join(piece.text for piece in pieces_of_text)):
                        parts.append(Part(pieces_of_text, overlapping))
            start = index + 1
    return parts


def pair_codes(pieces: Sequence[Piece]) -> list[Piece]:
    """Turn codes that begin and end a stretch into pairs of tags where they nest with all other tags."""
    paired, opened = list(pieces), list[int]()
    for index, piece in enumerate(pieces):
        if piece.opens or piece.begins:
            opened.append(index)
        elif piece.closes:
            while opened and not pieces[opened[-1]].opens:
                opened.pop()
            if opened:
                opened.pop()
        elif piece.ends:
            depth = find_code(pieces, opened, piece.ends)
            if depth is not None:
                start = opened[depth]
                paired[start] = replace(pieces[start], opens=True, begins="")
                paired[index] = replace(piece, closes=True, ends="")
                del opened[depth:]
    return paired


def find_code(pieces: Sequence[Piece], opened: Sequence[int], key: str) -> int | None:
    """The index in `opened` of the code with a key, looking back to the innermost tag; None if there is none
    among the last MOST_OPEN codes."""
    for depth in reversed(range(max(0, len(opened) - MOST_OPEN), len(opened))):
        piece = pieces[opened[depth]]
        if piece.opens:
            return None
        if piece.begins == key:
            return depth
    return None


def split_balanced(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Split pieces at the tags whose partners are not among them, leaving out these tags."""
    opened, borders = list[int](), set[int]()
    for index, piece in enumerate(pieces):
        if piece.opens:
            opened.append(index)
        elif piece.closes:
            if opened:
                opened.pop()
            else:
                borders.add(index)
    borders.update(opened)
    parts: list[list[Piece]] = [[]]
    for index, piece in enumerate(pieces):
        if index in borders:
            parts.append([])
        else:
            parts[-1].append(piece)
    return parts


def trim(part: Sequence[Piece]) -> list[Piece]:
    """Remove blanks and codes without partners from both ends of a part."""
    inner = [index for index, piece in enumerate(part) if piece.opens or piece.closes or piece.text.strip()]
    return list(part[inner[0] : inner[-1] + 1]) if inner else []
