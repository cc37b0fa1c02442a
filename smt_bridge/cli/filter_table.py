"""smt-filter-table: keep only the phrase pairs that can be used for certain texts, and prune."""

import argparse
import logging
import sys
from collections.abc import Sequence

from nmt.cli import options
from nmt.cli.arguments import InputPath, parse_settings
from nmt.errors import ConfigError, DataError
from nmt.io import files
from smt_bridge.cli.shared_options import add_outputs, add_pruning, add_table, add_unsorted, check_reordering
from smt_bridge.extraction.config import PruneConfig
from smt_bridge.tables.filter import FilterPaths, Occurring, filter_tables, read_texts

log = logging.getLogger(__name__)

RAW = ("'", '"', "[", "]", "|")
ESCAPED = ("&apos;", "&quot;", "&#91;", "&#93;", "&#124;")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "smt-filter-table",
        "Keep the phrase pairs whose source phrase occurs in the texts, those that pruning keeps, or both, "
        "and the corresponding rows of the reordering table.",
    )
    add_table(parser)
    add_outputs(parser, "tokenized and escaped like the table", "filtered reordering table", required=False)
    add_pruning(parser)
    for name, text in (
        (
            "--source",
            "parallel text that the table was made from, for --prune-significance: "
            "source side, tokenized and escaped like the table",
        ),
        ("--target", "target side"),
    ):
        parser.add_argument(name, type=InputPath, default="", metavar="FILE", help=text)
    add_unsorted(parser)
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    pruning = parse_settings(PruneConfig, args)
    check_options(args, pruning)
    wanted = Occurring(read_texts(args.input)) if args.input else None
    if wanted is not None:
        check_texts(args.input[0], wanted)
    if pairs := write_tables(args, wanted, pruning):
        log.info("%s pairs kept", f"{pairs:,}")
    else:
        log.warning(
            "%s: no pair is kept, so the output is empty; tokenize the text like the corpus of the table, or "
            "prune less",
            args.table,
        )


def check_options(args: argparse.Namespace, pruning: PruneConfig) -> None:
    """ConfigError for options that contradict each other or lack one; DataError for missing files."""
    check_reordering(args)
    if not args.input and not pruning.is_active():
        raise ConfigError("nothing to filter by: give --input, or an option of pruning (--prune-...)")
    if bool(pruning.prune_significance) != bool(args.source and args.target) or bool(args.source) != bool(
        args.target
    ):
        raise ConfigError("--prune-significance, --source and --target go together")
    if pruning.prune_entropy:
        tables = filter(None, (args.table, args.reordering))
        files.require_files(tables, "--prune-entropy reads the table twice")
    files.existing(
        [path for path in (args.table, *args.input, args.reordering, args.source, args.target) if path]
    )


def check_texts(name: str, wanted: Occurring) -> None:
    """DataError for texts without words; logs a warning for texts that look unescaped. `name`: of the first
    text, for messages; `wanted`: the phrases of all texts."""
    if not wanted.grams:
        raise DataError(f"{name}: no words, expected a text to be translated")
    raw, escaped = (any(word.encode() in wanted.grams for word in words) for words in (RAW, ESCAPED))
    if raw and not escaped:
        log.warning(
            "%s: has words such as ' and \" where Moses' tables have &apos; and &quot;; tokenize it like the "
            "corpus of the table",
            name,
        )


def write_tables(args: argparse.Namespace, wanted: Occurring | None, pruning: PruneConfig) -> int:
    """Write the filtered tables; returns the number of pairs. Errors of `filter_tables`, `prune_tables`."""
    paths = FilterPaths(args.table, args.output, args.reordering, args.reordering_output, args.unsorted)
    with options.line_progress(args, args.table, unit="pairs") as progress:
        if not pruning.is_active():
            return filter_tables(paths, wanted, progress.over)
        from smt_bridge.tables.pruning import prune_tables  # loads numba

        texts = (args.source, args.target) if pruning.prune_significance else None
        return prune_tables(paths, wanted, pruning, texts, progress.over)


if __name__ == "__main__":
    sys.exit(main())
