"""What a format of documents has to do: find the texts to translate, and write the document with their
translations. Files, options and models are the caller's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from nmt.documents.inline import AlignedTranslation
from nmt.errors import DataError
from nmt.lazy import LazyPart

BOM = "\ufeff"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Document:
    """A document with its texts. All that is not text stays as it is."""

    @property
    def lines(self) -> list[str]:
        """The texts to translate, in order, each on one line and of one or more sentences."""
        raise NotImplementedError

    def write(self, translations: Sequence[AlignedTranslation]) -> bytes:
        """The document with the translations of `lines`, in order."""
        raise NotImplementedError

    def set_languages(self, source: str, target: str) -> None:
        """Set the languages (codes, empty where unknown) for formats that name them. DataError if the
        document names other languages, or must name one that is unknown."""


@dataclass(frozen=True)
class DocumentFormat:
    """A format: the endings of its files' names, and how its bytes are parsed."""

    endings: tuple[str, ...]  # in lower case, the usual one first
    media_type: str
    parser: LazyPart  # a function of the bytes and the file's name, imported by the first document

    def parse(self, data: bytes, name: str) -> Document:
        """Parse the bytes of a file. `name`: of the file, for messages. DataError, with the line, for a file
        that is damaged or of another format."""
        return cast(Callable[[bytes, str], Document], self.parser.load())(data, name)


def decode_text(data: bytes, name: str, encoding: str = "utf-8") -> str:
    """Decode a text file; a byte order mark stays its first character. DataError, with the line, for bytes
    that are not of this encoding. `name`: of the file, for messages."""
    if encoding == "utf-8" and data.startswith(UTF16_MARKS):
        raise DataError(f"{name}:1: is UTF-16, expected UTF-8; convert it, e.g. iconv -f utf-16 -t utf-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        advice = "; convert the file, e.g. iconv -f latin1 -t utf-8" if encoding == "utf-8" else ""
        raise DataError(
            f"{name}:{line}: byte 0x{data[error.start]:02x} is not {encoding.upper()}, expected text in that "
            f"encoding{advice}"
        ) from error


def line_number(text: str, offset: int) -> int:
    """The number of the line of a character, from 1."""
    return text.count("\n", 0, offset) + 1


def has_words(text: str) -> bool:
    """Whether there is anything to translate."""
    return any(map(str.isalnum, text))
