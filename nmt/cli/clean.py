"""nmt-clean: keep the pairs of a parallel corpus that are worth training on, and count the removed ones by
reason."""

import logging
import sys
from collections.abc import Sequence

from nmt.cli import options, parallel_text
from nmt.cli.arguments import OutputPath, add_settings, parse_settings
from nmt.io import files
from nmt.text.clean import CleanConfig, CleanReport, clean

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-clean",
        "Remove sentence pairs that are empty, too short, too long, too different in length, or repeated. "
        "Both outputs stay parallel.",
    )
    parallel_text.add_options(parser)
    for side in parallel_text.SIDES:
        parser.add_argument(
            f"--output-{side}",
            type=OutputPath,
            required=True,
            metavar="FILE",
            help=f"{side} sides of the pairs that are kept; .gz compresses",
        )
    add_settings(parser, CleanConfig, "min_length", "max_length", "ratio", "unit", "keep_duplicates")
    parser.add_argument("--report", type=OutputPath, metavar="FILE", help="also write the counts as TSV")
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    config = parse_settings(CleanConfig, args)
    config.check()
    parallel_text.check_options(args)
    report = CleanReport()
    with parallel_text.read_documents(args):
        inputs = (args.source, args.target)
        pairs = files.check_parallel(*inputs)
        with options.progress(args, "pairs", pairs) as progress:
            rows = clean(progress.over(files.parallel(*inputs)), config, report)
            files.write_parallel((args.output_source, args.output_target), rows)
    if args.report:
        files.write_text(args.report, report.lines())
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.items()) or "none"
    log.info("%s of %s pairs kept; dropped: %s", f"{report.kept:,}", f"{report.pairs:,}", dropped)


if __name__ == "__main__":
    sys.exit(main())
