"""What an action of nmt-analyze is, and what it hands back: a table, its summary and a figure."""

import argparse
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nmt.analysis.table import Table
from nmt.cli.options import Parser
from nmt.errors import UserError
from nmt.io import files

log = logging.getLogger(__name__)

FORMATS = ("png", "svg")


class Result(Protocol):
    """What an analysis found, ready to be written."""

    def write(self, output: str, name: str) -> None:
        """Write to what --output gives; `name` is the name of the analysis."""


class Analysis(Protocol):
    """An action of nmt-analyze: `nmt-analyze NAME`. To add one, add its class to nmt.cli.analyze.ANALYSES."""

    help: str  # one line

    def add_options(self, parser: Parser) -> None:
        """Add the options of the action, --output included (see `add_output`)."""

    def run(self, args: argparse.Namespace) -> Result:
        """Read the inputs and compute. UserError for what a user got wrong."""


@dataclass
class Findings:
    """A table, the lines of its summary, and perhaps a figure, which `draw` writes under the given names."""

    table: Table
    summary: Sequence[object] = ()
    draw: Callable[[Sequence[Path]], None] | None = None
    formats: Sequence[str] = FORMATS

    def write(self, output: str, name: str) -> None:
        """Without a folder `output`, the table to stdout and the summary to stderr; with one, table and
        figures go there, and summary and file names to stdout."""
        if not output:
            files.write_text("-", self.table.lines())
            for line in self.summary:
                log.info("%s", line)
            return
        directory = make_folder(output)
        written = [directory / f"{name}.tsv"]
        files.write_text(written[0], self.table.lines())
        if self.draw:
            figures = [directory / f"{name}.{suffix}" for suffix in self.formats]
            try:
                self.draw(figures)
                written += figures
            except UserError as error:
                log.warning("no figure: %s", error)
        for line in [*self.summary, *written]:
            print(line)


def make_folder(name: str) -> Path:
    """The folder of that name, made where it is missing."""
    directory = Path(name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.cannot_write(directory, error) from error
    return directory


def add_output(parser: Parser) -> None:
    """--output: a folder for the table and the figures, which are named for the action."""
    name = parser.prog.split()[-1]
    parser.derived = lambda found: [
        ("--output", f"{found.output}/{name}.{suffix}") for suffix in ("tsv", *FORMATS) if found.output
    ]
    parser.add_argument(
        "--output",
        "-o",
        default="",
        metavar="DIR",
        help=f"folder for {name}.tsv, .png and .svg; without it the TSV goes to stdout",
    )


def add_title(parser: Parser) -> None:
    """--title"""
    parser.add_argument("--title", default="", help="title of the figure")
