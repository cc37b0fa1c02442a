"""nmt-clean: keep the pairs of a parallel corpus that are worth training on, and count the others by
reason."""

import logging
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from nmt import files
from nmt.cli import options
from nmt.cli.arguments import Input, Output, add_setting, settings_of
from nmt.data.clean import CleanConfig, CleanReport, clean

log = logging.getLogger("nmt.clean")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "nmt-clean",
        (
            "Drop pairs that are empty, too short or long, of unlike length, or repeated; both outputs stay "
            "parallel."
        ),
    )
    for side, letter in (("source", "s"), ("target", "t")):
        parser.add_argument(
            f"--{side}",
            f"-{letter}",
            type=Input,
            required=True,
            metavar="FILE",
            help=f"{side} text; plain or gzip",
        )
        parser.add_argument(
            f"--output-{side}",
            type=Output,
            required=True,
            metavar="FILE",
            help="what is kept of it; .gz compresses",
        )
    add_setting(parser, CleanConfig, "min_length", help="fewest words of each side")
    add_setting(parser, CleanConfig, "max_length", help="most words of each side")
    add_setting(parser, CleanConfig, "ratio", metavar="R", help="longer side over shorter, at most; 0: any")
    add_setting(parser, CleanConfig, "keep_duplicates", help="keep pairs that stood above already")
    parser.add_argument(
        "--report", type=Output, default=None, metavar="FILE", help="write the counts as TSV too"
    )
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("nmt-clean", args.quiet)
    config = settings_of(CleanConfig, args)
    config.check()
    files.check_parallel(args.source, args.target)
    report = CleanReport()
    with ExitStack() as stack:
        outputs = [
            stack.enter_context(files.Writing(path)) for path in (args.output_source, args.output_target)
        ]
        for pair in clean(files.parallel(args.source, args.target), config, report):
            for out, line in zip(outputs, pair, strict=True):
                out.write(line + "\n")
    if args.report:
        files.write_text(args.report, report.lines())
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.items()) or "none"
    log.info("%s of %s pairs kept; dropped: %s", f"{report.kept:,}", f"{report.pairs:,}", dropped)


if __name__ == "__main__":
    sys.exit(main())
