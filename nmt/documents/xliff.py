"""XLIFF 1.2 and 2.x: targets are filled in, with the inline codes of their sources.

A target that has text is replaced unless the file says that it is done: `approved`, or a state from
`translated` on. What is marked as not to be translated stays.
Sources: the standards XLIFF 1.2 and XLIFF 2.1 of OASIS.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from nmt.documents.document import Document
from nmt.documents.inline import AlignedTranslation, TaggedText
from nmt.documents.xml_text import (
    Edit,
    Part,
    Piece,
    XmlFile,
    XmlToken,
    clean_translation,
    cut,
    escape,
    read_xml,
)
from nmt.errors import DataError
from nmt.formats.parallel_text import primary_subtag

# Elements that enclose text. All others within a text are codes, with their content.
PAIRS = frozenset(("g", "mrk", "pc"))
# Codes that begin and end a stretch of text: the attributes that match, of those that begin and that end one.
BEGINS = {"bx": ("rid", "id"), "bpt": ("rid", "id"), "sc": ("id",), "sm": ("id",)}
ENDS = {"ex": ("rid", "id"), "ept": ("rid", "id"), "ec": ("startRef",), "em": ("startRef",)}
KINDS = {"ex": "bx", "ept": "bpt", "ec": "sc", "em": "sm"}
# States of targets that may be replaced; those without a state may, too.
OPEN_STATES = frozenset(("", "new", "needs-translation", "needs-adaptation", "needs-l10n", "initial"))
LINE_BREAKS = re.compile("(\n[ \t\n]*)")


@dataclass(frozen=True)
class Unit:
    """A source with the place of its target. Indices are of tokens, of the tags of elements."""

    pieces: Sequence[Piece]  # the content of the source
    parts: Sequence[tuple[Part, TaggedText]]  # of it, to translate
    source: int  # start tag of <source>
    after: int  # end tag that the target follows
    target: int  # start tag of the target; 0: none
    tag: int  # its start tag


@dataclass(frozen=True)
class FileLanguages:
    """The languages that the start tag of a file names, in these attributes."""

    tag: int
    source: str
    target: str


@dataclass
class XliffDocument(Document):
    """A file of XLIFF with its units."""

    file: XmlFile
    name: str
    version2: bool
    units: list[Unit] = field(default_factory=list)
    files: list[FileLanguages] = field(default_factory=list)
    target_language: str = ""

    @property
    def lines(self) -> list[str]:
        return [text.text for unit in self.units for _, text in unit.parts]

    def set_languages(self, source: str, target: str) -> None:
        for names in self.files:
            tag = self.file.tokens[names.tag]
            for attribute, code in ((names.source, source), (names.target, target)):
                named = tag.attribute(attribute)
                if code and named and primary_subtag(named) != primary_subtag(code):
                    raise DataError(
                        f"{self.name}:{self.file.line(names.tag)}: {attribute}={named}, but the translation "
                        f"is from {source or 'another language'} to {target or 'another'}; is this the right "
                        "file?"
                    )
            if self.version2 and self.units and not target and not tag.attribute(names.target):
                raise DataError(
                    f"{self.name}:{self.file.line(names.tag)}: names no target language, and the model does "
                    f"not know its own; write {names.target} into <{tag.name}>"
                )
        self.target_language = target

    def write(self, translations: Sequence[AlignedTranslation]) -> bytes:
        rows = iter(translations)
        edits = [edit for unit in self.units for edit in self.unit_edits(unit, rows)]
        if self.target_language:
            for names in self.files:
                tag = self.file.tokens[names.tag]
                if not tag.attribute(names.target):
                    changed = tag.with_attribute(names.target, self.target_language)
                    edits.append(Edit(names.tag, names.tag + 1, changed.raw))
        return self.file.write(edits)

    def unit_edits(self, unit: Unit, rows: Iterator[AlignedTranslation]) -> Iterator[Edit]:
        """Yield the edits of a unit, whose translations are the next of `rows`."""
        content, tokens = render(unit, rows), self.file.tokens
        if unit.target:
            tag = tokens[unit.target]
            first, end, gap = unit.target, self.file.partners[unit.target] + 1, ""
        else:
            prefix = tokens[unit.source].name.removesuffix("source")
            tag = XmlToken(f"<{prefix}target>", f"{prefix}target", opens=True)
            first = end = unit.after + 1
            preceding = tokens[unit.source - 1]
            gap = preceding.raw if preceding.is_text and preceding.raw.isspace() else ""
        if not tag.opens:  # <target/>
            tag = replace(tag, raw=tag.raw[:-2].rstrip() + ">", opens=True)
        parent = tokens[unit.tag]
        if self.version2:
            parent = parent.with_attribute("subState", "").with_attribute("state", "translated")
        else:
            tag = tag.with_attribute("state", "needs-review-translation")
            tag = tag.with_attribute("state-qualifier", "leveraged-mt")
            if parent.attribute("approved") == "yes":  # nobody has approved this translation
                parent = parent.with_attribute("approved", "no")
        yield Edit(unit.tag, unit.tag + 1, parent.raw)
        yield Edit(first, end, f"{gap}{tag.raw}{content}</{tag.name}>")


def parse(data: bytes, name: str) -> XliffDocument:
    """Find the units of a file of XLIFF. DataError, with the line, for a file that is not well-formed XML, is
    of another kind or has tags out of order."""
    file = read_xml(data, name)
    root, tag = next((index, token) for index, token in enumerate(file.tokens) if token.name)
    if tag.local != "xliff":
        raise DataError(
            f"{name}:{file.line(root)}: begins with <{tag.name}>, expected <xliff>; is this XLIFF?"
        )
    version = tag.attribute("version")
    if version[:2] not in ("1.", "2."):
        raise DataError(f"{name}:1: version {version or 'missing'}, expected 1.2 or 2.x; is this XLIFF?")
    document = XliffDocument(file, name, version.startswith("2"))
    if document.version2:
        document.files.append(FileLanguages(root, "srcLang", "trgLang"))
    if tag.opens:
        find_units(document, root, Inherited())
    return document


# ---- units -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inherited:
    """Properties that an element has from those around it."""

    translate: bool = True
    preserve: bool = False  # line breaks are part of the text

    def within(self, tag: XmlToken) -> "Inherited":
        """The properties that the content of an element has."""
        space = tag.attribute("xml:space")
        return Inherited(
            self.translate if not tag.attribute("translate") else tag.attribute("translate") != "no",
            self.preserve if not space else space == "preserve",
        )


def find_units(document: XliffDocument, parent: int, above: Inherited) -> None:
    """Add the units inside an element to a document."""
    for index in document.file.children(parent):
        token = document.file.tokens[index]
        if not token.opens:
            continue
        inside = above.within(token)
        if token.local == "file" and not document.version2:
            document.files.append(FileLanguages(index, "source-language", "target-language"))
        if token.local in ("file", "body", "group", "unit"):
            find_units(document, index, inside)
        elif token.local in ("trans-unit", "segment") and inside.translate:
            unit = read_unit(document, index, inside)
            document.units += [unit] if unit else []


def read_unit(document: XliffDocument, parent: int, inherited: Inherited) -> Unit | None:
    """Read a unit (version 1) or segment (2); None if it has nothing to translate, or its target is done."""
    file = document.file
    tokens, partners, tags = file.tokens, file.partners, dict[str, int]()
    for index in file.children(parent):
        if tokens[index].name:
            tags.setdefault(tokens[index].local, index)
    source, target = tags.get("source", 0), tags.get("target", 0)
    if not source or not tokens[source].opens:
        return None
    has_text = target and partners[target] > target + 1
    if has_text and is_done(tokens[parent], tokens[target], document.version2):
        return None
    origin = tags.get("seg-source", source)
    origin = origin if tokens[origin].opens else source
    if not file.raw(origin + 1, partners[origin]).strip():
        return None
    inside = inherited.within(tokens[origin])
    pieces = read_pieces(file, range(origin + 1, partners[origin]), inside.preserve)
    parts = [(part, TaggedText.from_items([piece.item for piece in part.pieces])) for part in cut(pieces)]
    return Unit(
        pieces=pieces,
        parts=[(part, text) for part, text in parts if text is not None],
        source=source,
        after=partners[origin],
        target=target,
        tag=parent,
    )


def is_done(parent: XmlToken, target: XmlToken, version2: bool) -> bool:
    """Whether a unit with a target says that this is done."""
    if version2:
        return parent.attribute("state") not in OPEN_STATES
    return parent.attribute("approved") == "yes" or target.attribute("state") not in OPEN_STATES


def read_pieces(file: XmlFile, content: range, preserve: bool) -> list[Piece]:
    """Read the pieces of a source. `content`: its tokens; `preserve`: line breaks end a text."""
    pieces, index = list[Piece](), content.start
    while index < content.stop:
        token = file.tokens[index]
        end = index + 1
        if token.is_text:
            texts = LINE_BREAKS.split(token.text) if preserve and "\n" in token.text else [token.text]
            whole = len(texts) == 1
            pieces += [
                Piece(token.raw if whole else escape(text), text, border=preserve and "\n" in text)
                for text in texts
                if text
            ]
        elif token.local == "mrk" and (token.closes or token.opens) and is_segment(file, index):
            pieces.append(Piece(token.raw, border=True))
        elif token.local in PAIRS and token.closes:
            pieces.append(Piece(token.raw, closes=True))
        elif token.local in PAIRS and token.opens and not is_protected(token):
            pieces.append(Piece(token.raw, opens=True))
        else:
            end = file.partners[index] + 1
            begins, ends = code_key(token, BEGINS), code_key(token, ENDS)
            pieces.append(Piece(file.raw(index, end), begins=begins, ends=ends))
        index = end
    return [replace(piece, number=number) for number, piece in enumerate(pieces)]


def is_segment(file: XmlFile, index: int) -> bool:
    """Whether a tag belongs to the mark of a segment."""
    return file.tokens[min(index, file.partners[index])].attribute("mtype") == "seg"


def is_protected(token: XmlToken) -> bool:
    """Whether the content of a mark is not to be translated."""
    return token.attribute("mtype") == "protected" or token.attribute("translate") == "no"


def code_key(token: XmlToken, names: dict[str, tuple[str, ...]]) -> str:
    """The key of a code that begins or ends a stretch; empty for others."""
    values = (token.attribute(name) for name in names.get(token.local, ()))
    value = next((value for value in values if value), "")
    return f"{KINDS.get(token.local, token.local)} {value}" if value else ""


def render(unit: Unit, rows: Iterator[AlignedTranslation]) -> str:
    """Render the target of a unit, whose translations are the next of `rows`."""
    parts, offset = list[str](), 0
    for part, text in unit.parts:
        translation = clean_translation(next(rows))
        if part.overlapping:  # their order counts, which relative positions keep
            translation = replace(translation, alignment=())
        parts += [piece.raw for piece in unit.pieces[offset : part.first]]
        parts.append(text.render(translation))
        offset = part.end
    return "".join([*parts, *(piece.raw for piece in unit.pieces[offset:])])
