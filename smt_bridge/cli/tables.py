"""Options that commands on phrase tables share."""

import argparse

from nmt.cli import options
from nmt.cli.arguments import Input, Output
from nmt.errors import ConfigError


def add_table(parser: argparse.ArgumentParser, what: str = "plain, gzip, or -") -> None:
    """The table that a command reads."""
    parser.add_argument("table", type=Input, metavar="TABLE", help=f"phrase table; {what}")


def add_unsorted(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Accept any order."""
    parser.add_argument(
        "--unsorted", action="store_true", help=f"accept a table that is not in LC_ALL=C order{more}"
    )


def add_outputs(parser: argparse.ArgumentParser, texts: str, rows: str) -> None:
    """The texts that decide what is written, and both tables. `texts` and `rows` say what they are for."""
    parser.add_argument(
        "--input",
        "-i",
        type=Input,
        nargs="+",
        required=True,
        metavar="TEXT",
        help=f"texts to be translated, {texts}",
    )
    options.add_output(parser)
    parser.add_argument(
        "--reordering", type=Input, metavar="TABLE", help="lexical reordering table of the same pairs"
    )
    parser.add_argument("--reordering-output", type=Output, metavar="FILE", help=rows)


def check_reordering(args: argparse.Namespace) -> None:
    """ConfigError where one of the options of the reordering table is missing."""
    if bool(args.reordering) != bool(args.reordering_output):
        raise ConfigError("--reordering and --reordering-output go together")
