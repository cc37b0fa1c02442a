"""DOCX: the paragraphs of the body, of tables, text boxes, headers, footers and notes.

Formats of characters and hyperlinks follow their words. Fields, deleted text, pictures, references to notes,
bookmarks and all other parts of the file stay. A tab or a line break ends a text.
Source: the standard ECMA-376, part 1, WordprocessingML.
"""

import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO

from nmt.documents.document import Document
from nmt.documents.docx_runs import Paragraph, RunFormat, read_paragraph
from nmt.documents.inline import AlignedTranslation, InlineItem, TaggedText
from nmt.documents.xml_text import Edit, Part, Piece, XmlFile, clean_translation, cut, escape, read_xml
from nmt.errors import DataError

TYPES = "[Content_Types].xml"
# Endings of the types of parts that have texts. The first three are the body of a document.
KINDS = tuple(
    f"{kind}+xml"
    for kind in (
        "wordprocessingml.document.main", "wordprocessingml.template.main", "macroEnabled.main",
        "wordprocessingml.header", "wordprocessingml.footer", "wordprocessingml.footnotes",
        "wordprocessingml.endnotes",
    )
)  # fmt: skip
BODIES = 3
BLANKS = " \t\n\r"


# ---- the ZIP file ------------------------------------------------------------------------------------------
# It may come from anywhere: nothing is extracted to a folder, and what it unpacks to is bounded.


MOST_PARTS = 5000
LARGEST_PART = 64 << 20  # bytes, unpacked
# What a file may unpack to: so many bytes, or its own size times so much if that is more.
UNPACKED, RATIO = 64 << 20, 50
OLD_OFFICE = b"\xd0\xcf\x11\xe0"  # the beginning of .doc, and of encrypted files
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1
DAMAGES = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, OverflowError, RuntimeError,
    NotImplementedError, IndexError,
)  # fmt: skip


@dataclass(frozen=True)
class Package:
    """The parts of a ZIP file, unpacked."""

    entries: list[zipfile.ZipInfo]
    parts: Mapping[str, bytes]  # by name

    def write(self, changed: Mapping[str, bytes]) -> bytes:
        """The ZIP file with some parts changed, in the same order. The same parts give the same bytes."""
        out = BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for entry in self.entries:
                copy = zipfile.ZipInfo(entry.filename, entry.date_time)
                copy.compress_type, copy.external_attr = entry.compress_type, entry.external_attr
                copy.create_system = entry.create_system
                archive.writestr(copy, changed.get(entry.filename, self.parts[entry.filename]))
        return out.getvalue()


def read_package(data: bytes, name: str) -> Package:
    """Unpack a ZIP file in memory. DataError for one that is damaged or encrypted, that unpacks to far more
    than a document does, or whose names are ambiguous or lead out of it. `name`: of the file."""
    if data.startswith(OLD_OFFICE):
        raise DataError(
            f"{name}:1: is a .doc, or encrypted, expected .docx; save it as .docx, without a password"
        )
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            entries = archive.infolist()
            check_entries(entries, len(data), name)
            parts = {entry.filename: read_part(archive, entry) for entry in entries}
    except DAMAGES as error:
        what = str(error).split("\n")[0] or type(error).__name__
        raise DataError(
            f"{name}:1: damaged ZIP file ({what}), expected a document; was it copied whole?"
        ) from error
    return Package(entries, parts)


def read_part(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Unpack a part up to its size in the directory: `ZipFile.read` would unpack all of it first."""
    with archive.open(entry) as stream:
        return stream.read(entry.file_size)


def check_entries(entries: list[zipfile.ZipInfo], size: int, name: str) -> None:
    """DataError for what `read_package` refuses, as far as the directory of a ZIP file of `size` bytes tells.
    No part is unpacked to more than the directory says."""
    if len(entries) > MOST_PARTS:
        raise DataError(
            f"{name}:1: {len(entries):,} parts, expected at most {MOST_PARTS:,}; is this a document?"
        )
    names = [entry.filename for entry in entries]
    for entry in entries:
        location = f"{name}:1: part {entry.filename}"
        if entry.flag_bits & ENCRYPTED:
            raise DataError(f"{location}: is encrypted; save the document without a password")
        if entry.compress_type not in METHODS:
            raise DataError(f"{location}: compression method {entry.compress_type}, expected deflate")
        if entry.filename.startswith("/") or ".." in entry.filename.split("/") or "\\" in entry.filename:
            raise DataError(f"{location}: its name leads out of the document; is this from a trusted source?")
        if entry.file_size > LARGEST_PART:
            raise DataError(f"{location}: unpacks to more than {LARGEST_PART >> 20} MiB; is this a document?")
    if len(set(names)) < len(names):
        twice = next(part for part in names if names.count(part) > 1)
        raise DataError(f"{name}:1: part {twice}: is there twice, expected once; is this a document?")
    if sum(entry.file_size for entry in entries) > max(UNPACKED, RATIO * size):
        raise DataError(
            f"{name}:1: unpacks to more than {RATIO} times its size, expected a document; if you trust it "
            "save it again with less compression"
        )


# ---- documents ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlacedText:
    """A text to translate, and how its translation is written."""

    text: TaggedText
    first: int  # of the tokens that are replaced
    end: int
    opening: str  # what precedes the translation: the end of a run, blanks
    closing: str
    empty_runs: Sequence[str]  # runs without text, which are left out

    def edit(self, translation: AlignedTranslation) -> Edit:
        """Replace the tokens by a translation."""
        raw = self.opening + self.text.render(clean_translation(translation)) + self.closing
        for empty in self.empty_runs:
            raw = raw.replace(empty, "")
        return Edit(self.first, self.end, raw)


@dataclass(frozen=True)
class TextPart:
    """A part of the file with its texts."""

    file: XmlFile
    texts: Sequence[PlacedText]

    def write(self, rows: Iterator[AlignedTranslation]) -> bytes:
        """The part with the next translations of `rows`."""
        return self.file.write([text.edit(next(rows)) for text in self.texts])


@dataclass(frozen=True)
class DocxDocument(Document):
    """A DOCX file with its parts that have texts, by name."""

    package: Package
    parts: Mapping[str, TextPart] = field(default_factory=dict)

    @property
    def lines(self) -> list[str]:
        return [text.text.text for part in self.parts.values() for text in part.texts]

    def write(self, translations: Sequence[AlignedTranslation]) -> bytes:
        rows = iter(translations)
        return self.package.write({name: part.write(rows) for name, part in self.parts.items() if part.texts})


def parse(data: bytes, name: str) -> DocxDocument:
    """Find the texts of a DOCX file. DataError for a file that is damaged, too large or of another kind."""
    package = read_package(data, name)
    parts = {part: parse_part(package.parts[part], f"{name}/{part}") for part in text_parts(package, name)}
    return DocxDocument(package, parts)


def text_parts(package: Package, name: str) -> list[str]:
    """The names of the parts that may have texts, the body first. DataError for a file without a body."""
    if TYPES not in package.parts:
        raise DataError(f"{name}:1: a ZIP file without {TYPES}, expected .docx; is this a document of Word?")
    location, ranks = f"{name}/{TYPES}", dict[str, int]()
    for token in read_xml(package.parts[TYPES], location).tokens:
        part, kind = token.attribute("PartName").removeprefix("/"), token.attribute("ContentType")
        rank = next((rank for rank, ending in enumerate(KINDS) if kind.endswith(ending)), -1)
        if token.local == "Override" and rank >= 0 and part in package.parts:
            ranks[part] = rank
    if not any(rank < BODIES for rank in ranks.values()):
        raise DataError(f"{name}:1: has no text document inside, expected .docx; is this a document of Word?")
    return sorted(ranks, key=lambda part: (ranks[part], part))


def parse_part(data: bytes, name: str) -> TextPart:
    """Find the texts of a part. DataError, with the line, if it is not well-formed XML."""
    file = read_xml(data, name)
    root = next(token for token in file.tokens if token.name)
    prefix = root.name.removesuffix(root.local)  # such as w:
    texts = [
        text
        for index, token in enumerate(file.tokens)
        if token.opens and token.name == f"{prefix}p"
        for text in place_texts(read_paragraph(file, index, prefix))
    ]
    return TextPart(file, texts)


# ---- texts of a paragraph ----------------------------------------------------------------------------------


def place_texts(paragraph: Paragraph) -> Iterator[PlacedText]:
    """Yield the texts of a paragraph."""
    texts = (place_text(paragraph, part) for part in cut(paragraph.pieces))
    yield from (text for text in texts if text is not None)


def place_text(paragraph: Paragraph, part: Part) -> PlacedText | None:
    """Find out how a part of a paragraph is written in translation; None if it has no word. Text outside of
    all tags gets the format of the most characters; each other format becomes a pair of tags."""
    pieces, sizes = part.pieces, Counter[RunFormat]()
    for piece in pieces:
        if piece.is_text:
            sizes[paragraph.text_format(piece)] += len(piece.text.strip())
    base = max(sizes, key=lambda run: sizes[run])
    whole = "".join(piece.text for piece in pieces)
    blanks = [whole[: len(whole) - len(whole.lstrip(BLANKS))], whole[len(whole.rstrip(BLANKS)) :]]
    text = TaggedText.from_items(list(format_items(paragraph, trim_blanks(pieces), base)))
    if text is None:
        return None
    first, last = paragraph.pieces[part.first], paragraph.pieces[part.end - 1]
    start, end = paragraph.edges(first, last)
    return PlacedText(
        text=text,
        first=start.token,
        end=end.token,
        opening=start.raw + base.start + escape(blanks[0]),
        closing=escape(blanks[1]) + base.close + end.raw,
        empty_runs=[run.start + run.close for run in sizes],
    )


def trim_blanks(pieces: Sequence[Piece]) -> list[Piece]:
    """Remove the blanks at both ends of the text of pieces."""
    trimmed = list(pieces)
    texts = [index for index, piece in enumerate(pieces) if piece.text.strip(BLANKS)]
    for index, piece in enumerate(pieces):
        if piece.is_text and texts and (index <= texts[0] or index >= texts[-1]):
            text = piece.text
            text = text.lstrip(BLANKS) if index <= texts[0] else text
            text = text.rstrip(BLANKS) if index >= texts[-1] else text
            trimmed[index] = replace(piece, text=text, raw=escape(text))
    return [piece for piece in trimmed if piece.raw]


def format_items(paragraph: Paragraph, pieces: Sequence[Piece], base: RunFormat) -> Iterator[InlineItem]:
    """Yield the items of a text: around stretches in another format than `base` a pair of tags."""
    current = base
    for index, piece in enumerate(pieces):
        wanted = next_format(paragraph, pieces, index, current, base)
        if wanted is not current:
            if current is not base:
                yield InlineItem(current.close + base.start, closes=True)
            if wanted is not base:
                yield InlineItem(base.close + wanted.start, opens=True)
            current = wanted
        if piece.is_text:
            yield InlineItem(piece.raw, piece.text)
        else:
            yield replace(piece.item, raw=current.close + piece.raw + current.start)
    if current is not base:
        yield InlineItem(current.close + base.start, closes=True)


def next_format(
    paragraph: Paragraph, pieces: Sequence[Piece], index: int, current: RunFormat, base: RunFormat
) -> RunFormat:
    """The format that a piece is written in: that of a text, but blanks and single codes stay in a stretch
    that goes on after them. Tags are outside of all stretches."""
    piece = pieces[index]
    if piece.opens or piece.closes:
        return base
    if piece.text.strip():
        return paragraph.text_format(piece)
    for following in pieces[index + 1 :]:
        if following.opens or following.closes:
            return base
        if following.text.strip():
            return current if paragraph.text_format(following) is current else base
    return base
