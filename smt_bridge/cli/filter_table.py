"""smt-filter-table: keep only the phrase pairs that can be used for certain texts."""

import argparse
import logging
import sys
from collections.abc import Sequence

from nmt.cli import options
from nmt.errors import DataError
from nmt.io import files
from smt_bridge.cli.shared_options import add_outputs, add_table, add_unsorted, check_reordering
from smt_bridge.tables.filter import Filtering, Occurring, filter_tables, read_texts

log = logging.getLogger(__name__)

RAW = ("'", '"', "[", "]", "|")
ESCAPED = ("&apos;", "&quot;", "&#91;", "&#93;", "&#124;")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "smt-filter-table",
        "Keep the phrase pairs whose source phrase occurs in the texts, and the corresponding rows of the "
        "reordering table.",
    )
    add_table(parser)
    add_outputs(parser, "tokenized and escaped like the table", "filtered reordering table")
    add_unsorted(parser)
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("smt-filter-table", args)
    check_reordering(args)
    files.existing([args.table, *args.input, *([args.reordering] if args.reordering else [])])
    wanted = Occurring(read_texts(args.input))
    check_texts(args.input[0], wanted)
    log.info("%s pairs kept", f"{write_tables(args, wanted):,}")


def check_texts(name: str, wanted: Occurring) -> None:
    """DataError for texts without words; a warning for texts that look unescaped."""
    if not wanted.grams:
        raise DataError(f"{name}: no words, expected a text to be translated")
    raw, escaped = (any(word.encode() in wanted.grams for word in words) for words in (RAW, ESCAPED))
    if raw and not escaped:
        log.warning(
            "%s: has words such as ' and \" where Moses' tables have &apos; and &quot;; tokenize it like the "
            "corpus of the table",
            name,
        )


def write_tables(args: argparse.Namespace, wanted: Occurring) -> int:
    """Write the filtered tables; returns the number of pairs."""
    with options.line_progress(args, args.table, unit="pairs") as progress:
        return filter_tables(
            Filtering(args.table, args.output, args.reordering, args.reordering_output, args.unsorted),
            wanted,
            progress.over,
        )


if __name__ == "__main__":
    sys.exit(main())
