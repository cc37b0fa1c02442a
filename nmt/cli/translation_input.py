"""The input of nmt-translate: blocks of lines, with the prefixes and constraints of each line."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from nmt.cli.arguments import InputPath, add_setting, add_settings
from nmt.io import files
from nmt.search.config import BeamConfig, ConstraintConfig
from nmt.text import glossary
from nmt.text.tokenize import unescape

if TYPE_CHECKING:
    from nmt.cli.arguments import Container
    from nmt.runs.constraints import ConstraintMaker, LineConstraints
    from nmt.runs.run import Run

LINE_FILES = ("prefix", "constraints", "avoid_lines")  # options that name files parallel to the input
WHOLE_TEXT = ("terms", "avoid")  # options that name files for all lines
CONSTRAINTS = (*LINE_FILES, *WHOLE_TEXT, "no_repeat_ngram")


def add_constraints(parser: "Container") -> None:
    for name, help_text in (
        ("--terms", "glossary: a term, a tab and its required translation on each line"),
        ("--constraints", "phrases that the translation of each line must contain, separated by tabs"),
        ("--avoid", "phrases that no translation may contain, one on each line"),
        ("--avoid-lines", "phrases that the translation of each line may not contain, separated by tabs"),
    ):
        parser.add_argument(name, type=InputPath, metavar="FILE", help=help_text)
    add_settings(parser, BeamConfig, "no_repeat_ngram", "allocation")
    add_setting(parser, ConstraintConfig, "unmet")


def given_options(args: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """The options among `names` (attributes of `args`) that have a value."""
    return [name for name in names if getattr(args, name)]


def side_files(args: argparse.Namespace) -> list[str]:
    """The paths of the files parallel to the input, in the order of LINE_FILES."""
    return [getattr(args, name) for name in given_options(args, LINE_FILES)]


def check_line_files(args: argparse.Namespace) -> None:
    """DataError if a file should be parallel to the input and is not."""
    if paths := side_files(args):
        files.check_parallel(args.input, *paths)


@dataclass
class TranslationBlock:
    """Lines that are translated together, with the corresponding lines of parallel files."""

    first: int  # number of the first line in the input, from 0
    lines: list[str]
    side_lines: dict[str, list[str]]  # lines of the parallel files, by option


def read_blocks(args: argparse.Namespace) -> Iterator[TranslationBlock]:
    """Read the input and its parallel files in blocks of --read-ahead lines; with --escaped they are
    unescaped, and --tag is put before each line of the input. DataError as from `nmt.io.files.parallel`."""
    names = given_options(args, LINE_FILES)
    rows = files.parallel(args.input, *side_files(args))
    first = 0
    while block := list(islice(rows, args.read_ahead)):
        lines, *others = (
            [unescape_line(line, args.escaped) for line in column] for column in zip(*block, strict=True)
        )
        if args.tag:
            lines = [f"{args.tag} {line}" for line in lines]
        yield TranslationBlock(first, lines, dict(zip(names, others, strict=True)))
        first += len(lines)


def unescape_line(line: str, escaped: bool) -> str:
    """Undo Moses' escapes in a line, keeping its tabs; unless `escaped`, return it unchanged."""
    if not escaped:
        return line
    return "\t".join(" ".join(map(unescape, files.split_words(part))) for part in line.split("\t"))


class InputConstraints:
    """The constraints of all lines. DataError, naming its line, for a malformed glossary or a term that
    cannot be required; ConfigError for a run without constraints."""

    def __init__(self, args: argparse.Namespace, run: "Run") -> None:
        self.args = args
        self.by_line = bool(args.constraints or args.avoid_lines)
        self.maker: ConstraintMaker | None = None
        if not given_options(args, (*WHOLE_TEXT, *LINE_FILES[1:])):
            return
        from nmt.runs.constraints import Constraints

        phrases = glossary.read_phrases(args.avoid) if args.avoid else []
        avoid = [unescape_line(phrase, args.escaped) for phrase in phrases]
        rows = [
            (location, unescape_line(term, args.escaped), unescape_line(target, args.escaped))
            for location, term, target in (glossary.read_rows(args.terms) if args.terms else ())
        ]
        constraints = Constraints(avoid=avoid, unmet=args.unmet)
        self.maker = run.maker(constraints, rows)

    def check_required(self) -> None:
        """Check the constraints of all lines beforehand. DataError for a phrase that cannot be required."""
        if self.args.constraints and self.maker and self.maker.strict:
            for number, line in enumerate(files.preview(self.args.constraints)):
                self.maker.required(
                    glossary.split_phrases(unescape_line(line, self.args.escaped)),
                    self.locate("constraints", number),
                )

    def locate(self, option: str, number: int) -> str:
        """`file:line` of a line, for messages: in the file that the option names, or else in the input."""
        return f"{files.name_of(getattr(self.args, option) or self.args.input)}:{number + 1}"

    def for_block(self, block: TranslationBlock) -> "list[LineConstraints]":
        """The constraints of each line of a block; an empty list if there are none at all. Errors as from
        `ConstraintMaker.for_line`."""
        if self.maker is None:
            return []
        no_phrases = [""] * len(block.lines)
        required, avoided = (block.side_lines.get(name, no_phrases) for name in LINE_FILES[1:])
        return [
            self.maker.for_line(
                line,
                self.locate("constraints", number),
                glossary.split_phrases(required_line),
                glossary.split_phrases(avoid_line),
            )
            for number, (line, required_line, avoid_line) in enumerate(
                zip(block.lines, required, avoided, strict=True), block.first
            )
        ]
