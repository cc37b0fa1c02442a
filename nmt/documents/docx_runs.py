"""The runs of a DOCX paragraph as pieces: texts with their formats, and markup."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from nmt.documents.xml_text import Piece, XmlFile, escape

# Elements around runs: with content that is translated, and with content that stays.
PAIRS = frozenset("hyperlink ins moveTo smartTag customXml sdt dir bdo".split())
RANGES = {
    f"{name}End": f"{name}Start"
    for name in ("bookmark", "commentRange", "perm", "moveFromRange", "moveToRange")
}
RANGE_STARTS = frozenset(RANGES.values())
# What says nothing about a translation: marks of the spell checker, of pages as they were laid out, and of
# where a word may be broken.
DROPPED = frozenset(("proofErr", "lastRenderedPageBreak", "softHyphen"))
BREAKS = frozenset("tab br cr ptab".split())  # in a run; no sentence goes beyond them
PROPERTIES = frozenset("pPr rPr sdtPr sdtEndPr smartTagPr customXmlPr".split())
NOT_FORMAT = frozenset(("lang", "noProof"))  # properties of a run that do not show


@dataclass(frozen=True)
class RunFormat:
    """A format: how a run in it begins and ends, up to its text."""

    start: str
    close: str


@dataclass(frozen=True)
class RunEdge:
    """Where a text that is replaced begins or ends: the token, and what has to stand there."""

    token: int
    raw: str = ""


@dataclass(frozen=True)
class Origin:
    """Where a piece is from: its tokens, and those of its run, if it is in one."""

    first: int
    end: int
    run: int = -1  # start tag of its run
    content: tuple[int, int] = (0, 0)  # the tokens of the run's content


@dataclass
class Paragraph:
    """The pieces of a paragraph with their origins, and the formats of its texts by key."""

    file: XmlFile
    prefix: str
    pieces: list[Piece] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    formats: dict[str, RunFormat] = field(default_factory=dict)

    def add(self, piece: Piece, origin: Origin) -> None:
        self.pieces.append(replace(piece, number=len(self.pieces)))
        self.origins.append(origin)

    def name(self, index: int) -> str:
        """The name of a tag without the prefix of WordprocessingML; others keep theirs."""
        return self.file.tokens[index].name.removeprefix(self.prefix)

    def text_format(self, piece: Piece) -> RunFormat:
        """The format of a text."""
        return self.formats[piece.format]

    def has_tags(self, first: int, end: int) -> bool:
        """Whether there are any tags among some tokens."""
        return any(token.name for token in self.file.tokens[first:end])

    def edges(self, first: Piece, last: Piece) -> tuple[RunEdge, RunEdge]:
        """The ends of the tokens that are replaced for the pieces from `first` to `last`: a run of which a
        part stays is closed before, and opened again after."""
        start, end = self.origins[first.number], self.origins[last.number]
        first_edge, last_edge = RunEdge(start.first), RunEdge(end.end)
        if start.run >= 0:
            inner = self.has_tags(start.content[0], start.first)
            first_edge = RunEdge(start.first, f"</{self.prefix}r>") if inner else RunEdge(start.run)
        if end.run >= 0:
            inner = self.has_tags(end.end, end.content[1])
            opening = self.file.raw(end.run, end.content[0])
            last_edge = RunEdge(end.end, opening) if inner else RunEdge(self.file.partners[end.run] + 1)
        return first_edge, last_edge


def read_paragraph(file: XmlFile, start: int, prefix: str) -> Paragraph:
    """Read the pieces of a paragraph. `start`: its start tag; `prefix`: of the names of WordprocessingML."""
    paragraph = Paragraph(file, prefix)
    read_content(paragraph, range(start + 1, file.partners[start]))
    join_fields(paragraph)
    return paragraph


def read_content(paragraph: Paragraph, content: range) -> None:
    """Add the pieces of some tokens."""
    file, index = paragraph.file, content.start
    while index < content.stop:
        name, end = paragraph.name(index), file.partners[index] + 1
        inner = content_tag(paragraph, index)
        if name == "r":
            read_run(paragraph, index)
        elif inner >= 0:
            read_pair(paragraph, index, inner)
        elif file.tokens[index].name and name not in PROPERTIES and name not in DROPPED:
            key = file.tokens[index].attribute("id")
            piece = Piece(
                file.raw(index, end),
                begins=f"{name} {key}" if name in RANGE_STARTS else "",
                ends=f"{RANGES[name]} {key}" if name in RANGES else "",
                border=has_paragraph(paragraph, index),
            )
            paragraph.add(piece, Origin(index, end))
        index = end


def read_pair(paragraph: Paragraph, index: int, inner: int) -> None:
    """Add an element as a pair of tags, with its content. `inner`: see `content_tag`."""
    file = paragraph.file
    first, end = inner + 1, file.partners[inner]
    while first < end and (paragraph.name(first) in PROPERTIES or not file.tokens[first].name):
        first = file.partners[first] + 1
    after = file.partners[index] + 1
    paragraph.add(Piece(file.raw(index, first), opens=True), Origin(index, first))
    read_content(paragraph, range(first, end))
    paragraph.add(Piece(file.raw(end, after), closes=True), Origin(end, after))


def content_tag(paragraph: Paragraph, index: int) -> int:
    """The start tag of the element to translate: one of PAIRS, or inside it. -1 for any other element."""
    tokens, name = paragraph.file.tokens, paragraph.name(index)
    if name not in PAIRS or not tokens[index].opens:
        return -1
    if name != "sdt":
        return index
    inside = paragraph.file.children(index)
    return next((tag for tag in inside if paragraph.name(tag) == "sdtContent" and tokens[tag].opens), -1)


def read_run(paragraph: Paragraph, run: int) -> None:
    """Add the pieces of a run."""
    file, prefix = paragraph.file, paragraph.prefix
    tokens, partners = file.tokens, file.partners
    if not tokens[run].opens:
        return
    content = [index for index in file.children(run) if tokens[index].name]
    properties = next((index for index in content if paragraph.name(index) == "rPr"), -1)
    first = partners[properties] + 1 if properties >= 0 else run + 1
    opening = file.raw(run, first)
    key = format_key(paragraph, properties)
    paragraph.formats.setdefault(
        key, RunFormat(f'{opening}<{prefix}t xml:space="preserve">', f"</{prefix}t></{prefix}r>")
    )
    for index in content:
        name, end = paragraph.name(index), partners[index] + 1
        if index == properties or name in DROPPED:
            continue
        origin = Origin(index, end, run, (first, partners[run]))
        raw = f"{opening}{file.raw(index, end)}</{prefix}r>"
        if name == "noBreakHyphen":
            paragraph.add(Piece("-", "-", format=key), origin)
        elif name == "t":
            text = "".join(token.text for token in tokens[index + 1 : end - 1])
            if tokens[index].attribute("xml:space") != "preserve":
                text = text.strip(" \t\n\r")
            if text:
                paragraph.add(Piece(escape(text), text, format=key), origin)
        else:
            border = name in BREAKS or has_paragraph(paragraph, index)
            paragraph.add(Piece(raw, border=border, format=key), origin)


def format_key(paragraph: Paragraph, properties: int) -> str:
    """The properties of a run as far as they show. `properties`: their start tag; -1 if there are none."""
    file = paragraph.file
    if properties < 0 or not file.tokens[properties].opens:
        return ""
    return "".join(
        file.raw(index, file.partners[index] + 1)
        for index in file.children(properties)
        if file.tokens[index].name and paragraph.name(index) not in NOT_FORMAT
    )


def has_paragraph(paragraph: Paragraph, index: int) -> bool:
    """Whether there are paragraphs inside an element, such as those of a text box."""
    file, name = paragraph.file, f"{paragraph.prefix}p"
    return any(token.name == name for token in file.tokens[index + 1 : file.partners[index]])


# ---- fields ------------------------------------------------------------------------------------------------
# A field is `begin`, its instruction, `separate`, its result and `end`, each in a run.


def join_fields(paragraph: Paragraph) -> None:
    """Join the pieces of each field: a link becomes a pair of tags around its result, any other field one
    piece. Where a field is not whole in its paragraph, no sentence goes beyond its marks."""
    marks = {piece.number: field_mark(paragraph, piece.number) for piece in paragraph.pieces}
    opened, outer = list[int](), list[tuple[int, int]]()
    loose = set[int]()
    for number, mark in marks.items():
        if mark == "begin":
            opened.append(number)
        elif mark == "end":
            start = opened.pop() if opened else number
            if start == number:
                loose.add(number)
            elif not opened:
                outer.append((start, number))
        elif mark and not opened:
            loose.add(number)
    if opened:  # it ends in another paragraph
        loose |= {number for number, mark in marks.items() if mark and number >= opened[0]}
    pieces = [replace(piece, border=piece.border or piece.number in loose) for piece in paragraph.pieces]
    origins, joined, offset = paragraph.origins, list[tuple[Piece, Origin]](), 0
    for start, end in outer:
        joined += zip(pieces[offset:start], origins[offset:start], strict=True)
        joined += join_field(paragraph, pieces[start : end + 1], origins[start : end + 1], marks, loose)
        offset = end + 1
    joined += zip(pieces[offset:], origins[offset:], strict=True)
    paragraph.pieces, paragraph.origins = [], []
    for piece, origin in joined:
        paragraph.add(piece, origin)


def field_mark(paragraph: Paragraph, number: int) -> str:
    """Which mark of a field a piece is: begin, separate, end or instruction; empty for others."""
    origin = paragraph.origins[number]
    if origin.run < 0:
        return ""
    name = paragraph.name(origin.first)
    if name == "fldChar":
        return paragraph.file.tokens[origin.first].attribute("fldCharType")
    return "instruction" if name in ("instrText", "delInstrText") else ""


def join_field(
    paragraph: Paragraph,
    pieces: Sequence[Piece],
    origins: Sequence[Origin],
    marks: dict[int, str],
    loose: set[int],
) -> Iterator[tuple[Piece, Origin]]:
    """Yield the pieces of a field, the first of which begins it and the last of which ends it."""
    depths = list(accumulate(int(piece.opens) - int(piece.closes) for piece in pieces))
    nested = sum(marks[piece.number] == "begin" for piece in pieces) > 1
    separate = next(
        (index for index, piece in enumerate(pieces) if marks[piece.number] == "separate"), len(pieces) - 1
    )
    instruction = "".join(
        token.text
        for origin in origins[: separate + 1]
        for token in paragraph.file.tokens[origin.first : origin.end]
        if origin.run >= 0
    )
    whole = not any(depths[: separate + 1]) and depths[-1] == 0 and min(depths) == 0
    if not whole or any(piece.number in loose for piece in pieces):
        borders = (replace(piece, border=piece.border or bool(marks[piece.number])) for piece in pieces)
        yield from zip(borders, origins, strict=True)
    elif instruction.split()[:1] == ["HYPERLINK"] and not nested and separate < len(pieces) - 1:
        raw = "".join(raw_between_runs(paragraph, piece) for piece in pieces[: separate + 1])
        start, end = span(origins[: separate + 1]), origins[-1]
        yield Piece(raw, opens=True), start
        yield from zip(pieces[separate + 1 : -1], origins[separate + 1 : -1], strict=True)
        yield Piece(pieces[-1].raw, closes=True), end
    else:
        border = any(piece.border for piece in pieces)
        raw = "".join(raw_between_runs(paragraph, piece) for piece in pieces)
        yield Piece(raw, border=border), span(origins)


def raw_between_runs(paragraph: Paragraph, piece: Piece) -> str:
    """A piece as it is written between runs."""
    if not piece.is_text:
        return piece.raw
    run = paragraph.formats[piece.format]
    return run.start + piece.raw + run.close


def span(origins: Sequence[Origin]) -> Origin:
    """The origin of joined pieces. They are taken as between runs if they are from several of them."""
    first, last = origins[0], origins[-1]
    if first.run == last.run:
        return replace(first, end=last.end)
    return Origin(first.first, last.end, first.run, (first.content[0], last.end))
