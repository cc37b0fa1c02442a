"""nmt-sample: draw lines from a language model."""

import logging
import sys
from collections.abc import Sequence

from nmt import files
from nmt.cli import arguments, options

log = logging.getLogger("nmt.sample")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "nmt-sample",
        "Draw lines from a language model that nmt-train made; the same seed gives the same lines.",
    )
    options.add_model(parser)
    parser.add_argument("--count", "-n", type=arguments.integer(1, 10**7), default=10, help="lines")
    parser.add_argument(
        "--longest",
        type=arguments.integer(1, 10**6),
        default=200,
        help="a line is cut off after so many units",
    )
    parser.add_argument("--temperature", type=arguments.real(above=0), default=1.0, help="draw from p^(1/T)")
    parser.add_argument(
        "--boundaries",
        default=None,
        metavar="MARK",
        help="multiscale models: put this between tokens (table 8.2)",
    )
    parser.add_argument("--seed", type=arguments.integer(0), default=1, help="of the draws")
    options.add_output(parser)
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("nmt-sample", args.quiet)
    log.info("%s", options.set_up_torch(args.device, args.threads, args.matmul, args.run))
    from nmt import checkpoint
    from nmt.errors import ConfigError
    from nmt.lm.multiscale import MultiscaleLM
    from nmt.search.sampling import SamplingConfig, sample

    run = checkpoint.load_lm(args.run, args.checkpoint, args.device)
    if args.boundaries is not None and not isinstance(run.model, MultiscaleLM):
        raise ConfigError("--boundaries: only multiscale models have tokens of several units")
    with files.Writing(args.output) as out:
        if isinstance(run.model, MultiscaleLM):
            for tokens in run.model.sample(args.count, args.longest, args.seed, args.temperature):
                out.write((args.boundaries or "").join(tokens) + "\n")
        else:
            config = SamplingConfig(1, args.temperature, args.seed, max_length_factor=1.0)
            for drawn in sample(run.model, [range(args.longest)] * args.count, config):
                out.write(run.text.text(run.words.decode(drawn[0].words), tokenized=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
