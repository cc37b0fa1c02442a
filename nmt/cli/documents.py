"""The options of commands that translate whole documents, and the work that these commands share: a document
is read and checked, its sentences are translated, and it is written completely or not at all."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nmt.cli import options
from nmt.cli.arguments import InputPath
from nmt.documents import formats
from nmt.documents.document import Document
from nmt.documents.formats import FORMATS
from nmt.documents.inline import AlignedTranslation, join_sentences
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.text.sentences import LineLimit, SplitText

if TYPE_CHECKING:
    from nmt.cli.arguments import Container

LARGEST = 256 << 20  # bytes of a document

# Sentences, and the index of the first of them in the document -> their translations
Translator = Callable[[Sequence[str], int], Sequence[AlignedTranslation]]


@dataclass(frozen=True)
class SentenceLimit(LineLimit):
    """The maximum number of words of a sentence of the document `name`. Messages count its sentences, since a
    format need not have lines."""

    def location(self, index: int) -> str:
        return f"{self.name}: sentence {self.first + index + 1}"


def add_options(parser: "Container") -> None:
    parser.add_argument(
        "--document",
        type=InputPath,
        metavar="FILE",
        help="translate this document, in place of --input, and write it in the same format: "
        f"{', '.join(formats.endings())}",
    )
    parser.add_argument(
        "--document-format",
        choices=tuple(FORMATS),
        help="format of the document; default: by the ending of its name",
    )


def check_options(args: argparse.Namespace, refused: Sequence[str]) -> None:
    """ConfigError for options that cannot be combined with --document, or that need it. `refused`: the names
    of further such options of the command."""
    if not args.document:
        if args.document_format:
            raise ConfigError("--document-format requires --document FILE")
        return
    if args.input != "-":
        raise ConfigError("--document takes the place of --input; give one of the two")
    if wrong := [name for name in refused if getattr(args, name)]:
        raise ConfigError(f"--document cannot be combined with {options.flags(wrong[:1])}; leave it out")


def read_document(args: argparse.Namespace) -> Document:
    """Read the document that the options name. ConfigError for a name that has no known ending, DataError for
    a file that cannot be read, is damaged or too large."""
    path = args.document
    format_name = args.document_format or formats.choose_format(files.name_of(path))
    with files.open_bytes(path) as stream, files.naming_unread(path):
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise DataError(f"{files.name_of(path)}: more than {LARGEST >> 20} MiB; split the document")
    return formats.parse(data, files.name_of(path), format_name)


def translate_document(
    args: argparse.Namespace,
    document: Document,
    split: Callable[[Sequence[str]], SplitText],
    translate: Translator,
    block: int,
    opening: str = "",
) -> None:
    """Translate a document and write it. `split`: splits texts into sentences; `translate`: translates some
    sentences; `block`: how many of them at a time; `opening`: the first message."""
    text = split(document.lines)
    sentences, translations = text.sentences, list[AlignedTranslation]()
    with files.Writing(args.output) as out:  # before the work: it may take hours
        with options.progress(args, "sentences", len(sentences), opening) as progress:
            for first in range(0, len(sentences), block):
                translations += translate(sentences[first : first + block], first)
                progress.add(len(translations) - progress.done)
        out.write(document.write(join_sentences(text, translations)))
