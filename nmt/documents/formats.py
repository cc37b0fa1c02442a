"""The formats of documents by name."""

import os

from nmt.documents.document import Document, DocumentFormat
from nmt.errors import ConfigError
from nmt.lazy import LazyPart

DOCX_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
FORMATS: dict[str, DocumentFormat] = {
    "text": DocumentFormat(
        (".txt", ".text"), "text/plain; charset=utf-8", LazyPart("nmt.documents.plain:parse")
    ),
    "html": DocumentFormat(
        (".html", ".htm", ".xhtml"), "text/html", LazyPart("nmt.documents.html_text:parse_file")
    ),
    "xliff": DocumentFormat(
        (".xlf", ".xliff", ".sdlxliff", ".mqxliff"),
        "application/xliff+xml",
        LazyPart("nmt.documents.xliff:parse"),
    ),
    "docx": DocumentFormat((".docx", ".docm", ".dotx"), DOCX_TYPE, LazyPart("nmt.documents.docx:parse")),
}


def endings() -> list[str]:
    """The endings of the names of all formats."""
    return [ending for kind in FORMATS.values() for ending in kind.endings]


def choose_format(name: str) -> str:
    """The name of the format of a file, by the ending of the file's name. ConfigError if there is none."""
    ending = os.path.splitext(name)[1].lower()
    for format_name, kind in FORMATS.items():
        if ending in kind.endings:
            return format_name
    raise ConfigError(
        f"{name}: its ending names no format of documents, expected one of {', '.join(endings())}; rename "
        "the file, or name its format (--document-format)"
    )


def parse(data: bytes, name: str, format_name: str = "") -> Document:
    """Parse a document. `name`: of the file, for messages; `format_name`: empty for that of the file's
    ending. ConfigError for an ending without a format, DataError for a damaged file."""
    return FORMATS[format_name or choose_format(name)].parse(data, name)
