"""smt-extract: extract phrase and reordering tables from a word-aligned corpus, in Moses' formats."""

import logging
import sys
import time
from collections.abc import Sequence

from nmt.cli import arguments, jobs, options
from nmt.cli.arguments import InputPath, OutputPath, add_setting, add_settings
from nmt.compute.resources import peak_memory
from nmt.io import files
from nmt.work.executors import ExecutorConfig
from smt_bridge.cli.shared_options import add_memory, add_texts
from smt_bridge.extraction.config import ExtractConfig

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    files.existing([args.source, args.target, args.alignment])
    files.require_files((args.source, args.target, args.alignment), "the texts are read twice")
    executor = arguments.parse_settings(ExecutorConfig, args)
    shared_folder = jobs.shared_folder(args, "smt-extract", executor)
    from smt_bridge.extraction.tables import TableInputs, TableOutputs, build

    start = time.monotonic()
    inputs = TableInputs(source=args.source, target=args.target, alignment=args.alignment)
    outputs = TableOutputs(table=args.output, reordering=args.reordering, lexical=args.lexical)
    config = arguments.parse_settings(ExtractConfig, args)
    with options.progress(args, "words", None) as progress:
        pairs = build(inputs, outputs, config, progress.reach, executor, shared_folder)
    log.info("%s phrase pairs, %.0f s, %.0f MB", f"{pairs:,}", time.monotonic() - start, peak_memory())


def parser() -> options.Parser:
    parser = options.Parser(
        "smt-extract",
        "Extract and score the phrase pairs of a word-aligned corpus. The tables are those that Moses' "
        "train-model.perl makes, in LC_ALL=C order.",
    )
    add_texts(parser, "tokenized, escaped text", "its translation")
    parser.add_argument(
        "--alignment",
        "-a",
        type=InputPath,
        required=True,
        metavar="FILE",
        help="points 0-0 1-2, from smt-align or any other tool; plain or gzip",
    )
    parser.add_argument(
        "--output", "-o", type=OutputPath, default="-", metavar="TABLE", help="phrase table; .gz compresses"
    )
    parser.add_argument(
        "--reordering",
        type=OutputPath,
        metavar="TABLE",
        default=None,
        help="lexical reordering table of the same pairs",
    )
    parser.add_argument(
        "--lexical",
        metavar="STEM",
        default=None,
        help="write word translation probabilities to STEM.e2f and STEM.f2e",
    )
    parser.derived = lambda args: (
        [("--lexical", f"{args.lexical}.{suffix}") for suffix in ("e2f", "f2e")] if args.lexical else []
    )
    add_settings(parser, ExtractConfig, "max_length", "smoothing", "count_feature")
    add_setting(parser, ExtractConfig, "reordering_type", metavar="TYPE")
    add_memory(parser)
    jobs.add_shared_job(parser)
    options.add_quiet(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
