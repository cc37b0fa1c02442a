"""What nmt-translate is told of each line: prefixes, and what translations must and must not contain."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from nmt import files
from nmt.cli.arguments import Input, add_setting
from nmt.search.config import BeamConfig, ConstraintConfig
from nmt.text import glossary
from nmt.text.escapes import unescape

if TYPE_CHECKING:
    from nmt.cli.arguments import Container
    from nmt.runs.constraints import LineConstraints
    from nmt.runs.run import Run

BESIDE = ("prefix", "constraints", "avoid_lines")  # options of files with a line for each line of the input
FOR_ALL = ("terms", "avoid")
NAMES = (*BESIDE, *FOR_ALL, "no_repeat_ngram")


def add_options(parser: "Container") -> None:
    """The options of constraints."""
    for name, what in (
        ("--terms", "terms and the translations that they must have, a tab between them"),
        ("--constraints", "phrases that the translation of each line must contain, tabs between them"),
        ("--avoid", "phrases that no translation may contain, one a line"),
        ("--avoid-lines", "phrases that the translation of each line may not contain, tabs between them"),
    ):
        parser.add_argument(name, type=Input, default=None, metavar="FILE", help=what)
    add_setting(parser, BeamConfig, "no_repeat_ngram")
    add_setting(parser, BeamConfig, "allocation")
    add_setting(parser, ConstraintConfig, "unmet")


def given(args: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Those of some options that have a value."""
    return [name for name in names if getattr(args, name)]


def paths_beside(args: argparse.Namespace) -> list[str]:
    """The files with a line for each line of the input."""
    return [getattr(args, name) for name in given(args, BESIDE)]


def check(args: argparse.Namespace) -> None:
    """DataError for files that have not a line for each line of the input."""
    if beside := paths_beside(args):
        files.check_parallel(args.input, *beside)


@dataclass
class Block:
    """Lines that are translated together, with what belongs to each."""

    first: int  # number of the first line in the input, from 0
    lines: list[str]
    beside: dict[str, list[str]]  # by the name of the option

    @property
    def prefixes(self) -> list[str] | None:
        """The beginnings of the translations."""
        return self.beside.get("prefix")


def blocks(args: argparse.Namespace) -> Iterator[Block]:
    """The lines of the input with those of the files beside it."""
    beside = given(args, BESIDE)
    rows = files.parallel(args.input, *paths_beside(args))
    first = 0
    while block := list(islice(rows, args.read_ahead)):
        lines, *others = (
            [clean(line, args.escaped) for line in column] for column in zip(*block, strict=True)
        )
        if args.tag:
            lines = [f"{args.tag} {line}" for line in lines]
        yield Block(first, lines, dict(zip(beside, others, strict=True)))
        first += len(lines)


def clean(line: str, escaped: bool) -> str:
    """A line without escapes, its tabs kept."""
    if not escaped:
        return line
    return "\t".join(" ".join(map(unescape, files.split_words(part))) for part in line.split("\t"))


class GivenConstraints:
    """The constraints of one call. DataError for a term that cannot be required, with its line."""

    def __init__(self, args: argparse.Namespace, run: "Run") -> None:
        from nmt.runs.constraints import ConstraintMaker, Constraints

        self.args = args
        self.by_line = bool(args.constraints or args.avoid_lines)
        self.maker: ConstraintMaker | None = None
        if not given(args, (*FOR_ALL, *BESIDE[1:])):
            return
        avoid = [clean(line, args.escaped) for line in phrases(args.avoid)] if args.avoid else []
        rows = [
            (where, clean(term, args.escaped), clean(translation, args.escaped))
            for where, term, translation in (glossary.rows_of(args.terms) if args.terms else ())
        ]
        constraints = Constraints(avoid=avoid, unmet=args.unmet)
        tokenized = args.tokenized or args.escaped
        self.maker = ConstraintMaker(run.members[0], constraints, tokenized, rows)

    def check_required(self) -> None:
        """Read those of single lines through, before the first line is translated. DataError for one that
        cannot be required."""
        if self.args.constraints and self.maker and self.maker.strict:
            for number, line in enumerate(files.preview(self.args.constraints)):
                self.maker.required(fields(clean(line, self.args.escaped)), self.where("constraints", number))

    def where(self, option: str, number: int) -> str:
        """The name of a line in messages: that of an option's file, if it has one, or of the input."""
        return f"{files.name_of(getattr(self.args, option) or self.args.input)}:{number + 1}"

    def of(self, block: Block) -> "list[LineConstraints] | None":
        """The constraints of each line."""
        if self.maker is None:
            return None
        nothing = [""] * len(block.lines)
        required, avoided = (block.beside.get(name, nothing) for name in BESIDE[1:])
        return [
            self.maker.of(line, self.where("constraints", number), fields(wanted), fields(unwanted))
            for number, (line, wanted, unwanted) in enumerate(
                zip(block.lines, required, avoided, strict=True), block.first
            )
        ]


def fields(line: str) -> list[str]:
    """The phrases of a line."""
    return [field for field in line.split("\t") if field.strip(" ")]


def phrases(path: str) -> list[str]:
    """The phrases of a file, one a line; empty lines and those that begin with # are skipped."""
    return [line for line in files.read_lines(path) if line.strip() and not line.startswith("#")]
