"""smt-extract: phrase table and reordering table of a word-aligned corpus, in Moses' formats."""

import logging
import resource
import sys
import time
from collections.abc import Sequence

from nmt import files
from nmt.cli import arguments, options
from nmt.cli.arguments import Input, Output, add_setting
from nmt.errors import ConfigError
from smt_bridge.cli.progress import Progress
from smt_bridge.config import ExtractConfig

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-extract",
        (
            "Extract and score the phrase pairs of a word-aligned corpus: the same tables as Moses' "
            "train-model.perl makes, in LC_ALL=C order."
        ),
    )
    parser.add_argument(
        "--source", "-s", type=Input, required=True, metavar="FILE", help="tokenized, escaped text"
    )
    parser.add_argument("--target", "-t", type=Input, required=True, metavar="FILE", help="its translation")
    parser.add_argument(
        "--alignment",
        "-a",
        type=Input,
        required=True,
        metavar="FILE",
        help="points 0-0 1-2, of smt-align or any other tool; plain or gzip",
    )
    parser.add_argument(
        "--output", "-o", type=Output, default="-", metavar="TABLE", help="phrase table; .gz compresses"
    )
    parser.add_argument(
        "--reordering",
        type=Output,
        metavar="TABLE",
        default=None,
        help="lexical reordering table (msd-bidirectional-fe) of the same pairs",
    )
    parser.add_argument(
        "--lexical",
        metavar="STEM",
        default=None,
        help="write word translation probabilities to STEM.e2f and STEM.f2e",
    )
    add_setting(parser, ExtractConfig, "max_length", help="words of a phrase")
    add_setting(parser, ExtractConfig, "smoothing", help="of phi")
    add_setting(
        parser, ExtractConfig, "memory", metavar="MB", help="more is put into files beside the output"
    )
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-extract", args.quiet)
    if args.lexical:
        inputs = [("--source", args.source), ("--target", args.target), ("--alignment", args.alignment)]
        tables = [("--output", args.output), ("--reordering", args.reordering)]
        arguments.check_separate(
            inputs, [*tables, *(("--lexical", f"{args.lexical}.{way}") for way in ("e2f", "f2e"))]
        )
    files.existing([args.source, args.target, args.alignment])
    if "-" in (args.source, args.target, args.alignment):
        raise ConfigError("the texts are read twice; give files, not -")
    from smt_bridge.extraction.tables import Inputs, Outputs, build

    begin = time.monotonic()
    config = arguments.settings_of(ExtractConfig, args)
    with Progress(0, "words", args.quiet) as progress:
        pairs = build(
            Inputs(args.source, args.target, args.alignment),
            Outputs(args.output, args.reordering, args.lexical),
            config,
            progress.add,
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    log.info("%s phrase pairs, %.0f s, %.0f MB", f"{pairs:,}", time.monotonic() - begin, memory)


if __name__ == "__main__":
    sys.exit(main())
