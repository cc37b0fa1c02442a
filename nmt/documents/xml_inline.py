"""Texts of XML with inline markup, cut into the parts that are translated as one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt.documents.document import has_words
from nmt.documents.inline import InlineItem

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
    overlapping: bool  # has codes of pairs that are neither inside each other nor side by side

    @property
    def first(self) -> int:
        """The number of its first piece."""
        return self.pieces[0].number

    @property
    def end(self) -> int:
        """The number of its last piece, and 1."""
        return self.pieces[-1].number + 1


def cut(pieces: Sequence[Piece]) -> list[Part]:
    """Cut pieces into parts, leaving out borders, tags whose partners are elsewhere, and blanks and single
    codes at the ends of a part; and parts without words. Each text of a part with too many pieces is a part
    of its own."""
    parts, start = list[Part](), 0
    for index in range(len(pieces) + 1):
        if index == len(pieces) or pieces[index].border:
            paired = pair_codes(pieces[start:index])
            overlapping = has_overlap(paired)
            for part in split_balanced(paired):
                for trimmed in [trim(part)] if len(part) <= MOST_PIECES else single_texts(part):
                    if has_words("".join(piece.text for piece in trimmed)):
                        parts.append(Part(trimmed, overlapping))
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


def has_overlap(pieces: Sequence[Piece]) -> bool:
    """Whether both codes of a pair are there, but could not be turned into tags."""
    return not {piece.begins for piece in pieces if piece.begins}.isdisjoint(piece.ends for piece in pieces)


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


def single_texts(part: Sequence[Piece]) -> list[list[Piece]]:
    """Each text of a part by itself."""
    return [[piece] for piece in part if piece.is_text]
