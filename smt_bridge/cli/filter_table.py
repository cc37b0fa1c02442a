"""smt-filter-table: keep only the phrase pairs that given texts can use."""

import argparse
import logging
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from nmt import files
from nmt.cli import options
from nmt.cli.arguments import Input, Output
from nmt.errors import ConfigError, DataError
from smt_bridge.filter_table import Occurring, filtered, read_texts, same_rows

log = logging.getLogger("nmt.filter_table")

RAW = ("'", '"', "[", "]", "|")
ESCAPED = ("&apos;", "&quot;", "&#91;", "&#93;", "&#124;")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-filter-table",
        (
            "Keep the phrase pairs whose source occurs in the given texts, and the same rows of the "
            "reordering "
            "table."
        ),
    )
    parser.add_argument("table", type=Input, metavar="TABLE", help="phrase table; plain, gzip, or -")
    parser.add_argument(
        "--input",
        "-i",
        type=Input,
        nargs="+",
        required=True,
        metavar="TEXT",
        help="texts to be translated, tokenized and escaped as the table is",
    )
    options.add_output(parser)
    parser.add_argument(
        "--reordering",
        type=Input,
        metavar="TABLE",
        default=None,
        help="lexical reordering table of the same pairs",
    )
    parser.add_argument(
        "--reordering-output", type=Output, metavar="FILE", default=None, help="its filtered rows"
    )
    parser.add_argument("--unsorted", action="store_true", help="take a table that is not in LC_ALL=C order")
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-filter-table", args.quiet)
    if bool(args.reordering) != bool(args.reordering_output):
        raise ConfigError("--reordering and --reordering-output go together")
    files.existing([args.table, *args.input, *([args.reordering] if args.reordering else [])])
    wanted = Occurring(read_texts(args.input))
    if not wanted.grams:
        raise DataError(f"{args.input[0]}: no words, expected a text to be translated")
    if any(raw.encode() in wanted.grams for raw in RAW) and not any(
        escaped.encode() in wanted.grams for escaped in ESCAPED
    ):
        log.warning(
            (
                "%s: words such as ' and \" stand unescaped; Moses' tables hold &apos; and &quot;. Tokenize "
                "it "
                "as the table's corpus was"
            ),
            args.input[0],
        )
    log.info("%s pairs kept", f"{write(args, wanted):,}")


def write(args: argparse.Namespace, wanted: Occurring) -> int:
    kept = 0
    with ExitStack() as stack:
        out = stack.enter_context(files.Writing(args.output))
        pairs = filtered(args.table, wanted, args.unsorted)
        if not args.reordering:
            for pair in pairs:
                out.write(pair.raw + b"\n")
                kept += 1
            return kept
        other_out = stack.enter_context(files.Writing(args.reordering_output))
        for pair, other in same_rows(
            pairs, filtered(args.reordering, wanted, args.unsorted), args.reordering
        ):
            out.write(pair.raw + b"\n")
            other_out.write(other.raw + b"\n")
            kept += 1
    return kept


if __name__ == "__main__":
    sys.exit(main())
