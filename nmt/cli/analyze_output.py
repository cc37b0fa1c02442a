"""Where an analysis goes: its TSV to stdout, or into a folder beside its figures."""

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from nmt import files
from nmt.cli import options
from nmt.errors import UserError

log = logging.getLogger("nmt.analyze")


def add_output(parser: options.Parser, name: str) -> None:
    parser.derived = lambda found: [
        ("--output", f"{found.output}/{name}.{kind}") for kind in ("tsv", "png", "svg") if found.output
    ]
    parser.add_argument(
        "--output",
        "-o",
        default="",
        metavar="DIR",
        help=f"folder for {name}.tsv, .png and .svg; without it the TSV goes to stdout",
    )


def add_title(parser: options.Parser) -> None:
    parser.add_argument("--title", default="", help="title of the figure")


def folder(name: str) -> Path:
    directory = Path(name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.cannot_write(directory, error) from error
    return directory


def write(
    output: str,
    name: str,
    lines: Iterable[str],
    summary: Sequence[object],
    draw: Callable[[Sequence[Path]], None],
    kinds: Sequence[str] = ("png", "svg"),
) -> None:
    """The table to stdout and the summary to stderr; or, with a folder, table and figures there, summary and
    names to stdout."""
    if not output:
        files.write_text("-", lines)
        for line in summary:
            log.info("%s", line)
        return
    directory = folder(output)
    table = directory / f"{name}.tsv"
    files.write_text(table, lines)
    written = [table]
    try:
        figures = [directory / f"{name}.{kind}" for kind in kinds]
        draw(figures)
        written += figures
    except UserError as error:
        log.warning("no figure: %s", error)
    for line in summary:
        print(line)
    for path in written:
        print(path)
