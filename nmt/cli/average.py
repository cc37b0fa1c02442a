"""nmt-average: average the weights of several checkpoints of a run; the result is a new run."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import arguments, options
from nmt.cli.arguments import InputPath, OutputPath
from nmt.errors import ConfigError
from nmt.io import locks
from nmt.runs import directory as run_directory

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-average",
        "Average the weights of several checkpoints of a run. The result is a run directory, to be used like "
        "any other.",
    )
    parser.add_argument(
        "run", type=InputPath, metavar="RUN_DIR", help="a run trained with training.keep above 1"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--last",
        type=arguments.positive,
        default=5,
        metavar="N",
        help="average the N newest checkpoints, or all if there are fewer",
    )
    which.add_argument(
        "--steps",
        type=arguments.positive,
        nargs="+",
        default=None,
        metavar="STEP",
        help="average the checkpoints of these updates",
    )
    parser.add_argument(
        "--output", "-o", type=OutputPath, required=True, metavar="DIR", help="the run directory to make"
    )
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("nmt-average", args)
    run, output = Path(args.run), Path(args.output)
    run_directory.check_version(run)
    run_directory.verify(run)
    check_new(output)
    from nmt.runs import checkpoint

    with locks.locked(output, "nmt-average"):
        check_new(output)
        steps = checkpoint.write_average(run, output, args.steps, args.last)
    log.info("%s: mean of updates %s", output, ", ".join(map(str, steps)))


def check_new(output: Path) -> None:
    """ConfigError unless the folder is missing or empty."""
    if not locks.is_empty(output):
        raise ConfigError(f"{output}: exists already; choose another name")


if __name__ == "__main__":
    sys.exit(main())
