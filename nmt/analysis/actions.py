"""The Protocol of an action of `nmt-analyze`, and its result: a table, a summary and perhaps a figure."""

import argparse
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from nmt.cli import options
from nmt.cli.options import Parser
from nmt.errors import ConfigError, UserError
from nmt.io import files

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from nmt.runs.torch_run import TorchRun

log = logging.getLogger(__name__)

FORMATS = ("png", "svg")
BLANKS = str.maketrans("\t\n", "  ")  # what would end a field


class Analysis(Protocol):
    """An action of nmt-analyze: `nmt-analyze NAME`. To add one, add its class to nmt.cli.analyze.ANALYSES."""

    help: str  # one line

    def add_options(self, parser: Parser) -> None:
        """Add the options of the action, including --output (see `add_output`)."""

    def run(self, args: argparse.Namespace) -> "Findings | None":
        """Read the inputs and compute. None if the action writes --output itself, in a form of its own.

        UserError for mistakes in the options and inputs.
        """


@dataclass(frozen=True)
class ResultTable:
    """Rows under named columns.

    `columns` maps each name to the format of its values: "" for the default, ".4f" for four decimals. None
    is written as an empty field, a tab or line break in a text as a blank.
    """

    columns: Mapping[str, str]
    rows: Iterable[Iterable[object]]

    def lines(self) -> Iterator[str]:
        """Yield the table as TSV: a header, then one line per row. ConfigError for a row that does not fit
        the columns, which an analysis of a plugin may have made."""
        yield "\t".join(self.columns)
        for row in self.rows:
            try:
                line = "\t".join(
                    "" if value is None else format(value, spec).translate(BLANKS)
                    for value, spec in zip(row, self.columns.values(), strict=True)
                )
            except (TypeError, ValueError) as error:
                names = ", ".join(self.columns)
                raise ConfigError(
                    f"analysis: row {row!r} does not fit the columns {names}: {error}"
                ) from error
            yield line


def field_values(records: Iterable[object]) -> list[list[object]]:
    """One row per dataclass instance, with its values in the order of the fields."""
    return [list(vars(record).values()) for record in records]


def record_table(record: "type[DataclassInstance]", rows: Iterable[object], **formats: str) -> ResultTable:
    """Build the table of a dataclass's instances, with a column for each field. `formats`: by field."""
    return ResultTable(
        {field.name: formats.get(field.name, "") for field in fields(record)}, field_values(rows)
    )


def single_field(text: str) -> str:
    """Replace tabs and runs of blanks in a text by single blanks, so that it fits in one column."""
    return " ".join(files.split_words(text))


@dataclass
class Findings:
    """A table, the lines of its summary, and perhaps a figure, which `draw` writes to the given paths."""

    table: ResultTable
    summary: Sequence[object] = ()
    draw: Callable[[Sequence[Path]], None] | None = None
    formats: Sequence[str] = FORMATS

    def write(self, output: str, name: str) -> None:
        """Write NAME.tsv and the figures, NAME.png etc., into the folder `output`, and print the summary and
        the paths of the files. Without a folder, the table goes to stdout and the summary to the log.

        UserError if the table cannot be written; a figure that cannot be drawn or written is a warning.
        """
        if not output:
            files.write_text("-", self.table.lines())
            for line in self.summary:
                log.info("%s", line)
            return
        directory = Path(output)
        with files.naming_unwritten(directory):
            directory.mkdir(parents=True, exist_ok=True)
        paths = [directory / f"{name}.tsv"]
        files.write_text(paths[0], self.table.lines())
        if self.draw:
            figures = [directory / f"{name}.{suffix}" for suffix in self.formats]
            try:
                self.draw(figures)
                paths += figures
            except UserError as error:
                log.warning("no figure: %s", error)
        for line in [*self.summary, *paths]:
            print(line)


def add_output(parser: Parser) -> None:
    """Add --output: a folder for the table and the figures, which are named after the action."""
    name = parser.prog.split()[-1]
    parser.derived = lambda args: [
        ("--output", f"{args.output}/{name}.{suffix}") for suffix in ("tsv", *FORMATS) if args.output
    ]
    parser.add_argument(
        "--output",
        "-o",
        default="",
        metavar="DIR",
        help=f"folder for {name}.tsv, .png and .svg; without it the TSV goes to stdout",
    )


def add_title(parser: Parser) -> None:
    parser.add_argument("--title", default="", help="title of the figure")


def add_sentence(parser: Parser) -> None:
    """Add the options of a run and of one source sentence, which `read_sentence` reads, and --output."""
    options.add_model(parser)
    parser.add_argument(
        "--line", default="", metavar="TEXT", help="the source sentence; default: the first line of --input"
    )
    options.add_input(parser, "source text")
    parser.add_argument(
        "--tokenized", action="store_true", help="the text is tokenized like the training text of the run"
    )
    add_output(parser)


def read_sentence(args: argparse.Namespace) -> str:
    """Return --line, or the first line of --input; empty if that has no line."""
    return str(args.line or next(files.read_lines(args.input), ""))


def load_run(args: argparse.Namespace, path: str) -> "TorchRun":
    """Load the run in a directory, with the checkpoint and device that the options of `options.add_compute`
    name. Also sets torch's threads and matrix back end for this process. ConfigError for a device that is
    missing, CheckpointError for a directory that is not a translator's run, or is damaged."""
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, path)
    from nmt.runs.torch_run import TorchRun

    run = TorchRun.of(path, which=args.checkpoint, device=args.device)
    log.info("%s: %s", run.name, set_up)
    return run
