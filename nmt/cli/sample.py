"""nmt-sample: draw random lines from a language model."""

import logging
import sys
from collections.abc import Sequence

from nmt.cli import arguments, options
from nmt.io import files
from nmt.search.config import SamplingConfig

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    log.info("%s", options.set_up_torch(args.device, args.threads, args.matmul, args.run))
    from nmt.runs import checkpoint
    from nmt.runs.neural_lm import sample_lines

    run = checkpoint.load_lm(args.run, args.checkpoint, args.device)
    lines = sample_lines(
        run,
        count=args.count,
        max_length=args.max_length,
        config=arguments.parse_settings(SamplingConfig, args),
        boundaries=args.boundaries,
    )
    with files.Writing(args.output) as out, options.progress(args, "lines", args.count) as progress:
        out.write_lines(progress.over(lines))


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-sample",
        "Draw random lines from a language model trained by nmt-train; the same seed gives the same lines.",
    )
    options.add_model(parser)
    parser.add_argument("--count", "-n", type=arguments.integer(1, 10**7), default=10, help="number of lines")
    parser.add_argument(
        "--max-length",
        type=arguments.integer(1, 10**6),
        default=200,
        metavar="N",
        help="cut lines off after this many units",
    )
    for name, metavar in (("temperature", "T"), ("top_k", "K"), ("top_p", "P")):
        arguments.add_setting(parser, SamplingConfig, name, metavar=metavar)
    parser.add_argument(
        "--boundaries",
        metavar="MARK",
        help="models whose tokens are of several units: write this mark between tokens",
    )
    arguments.add_setting(parser, SamplingConfig, "seed")
    options.add_output(parser)
    options.add_quiet(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
