"""nmt-average: average the weights of several checkpoints of a run; the result is a new run."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import arguments, options
from nmt.cli.arguments import InputPath
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
        metavar="STEP",
        help="average the checkpoints of these updates",
    )
    options.add_required_output(parser, "DIR", "the run directory to create")
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv)
    run, output = Path(args.run), Path(args.output)
    run_directory.check_version(run)
    run_directory.verify(run)
    with arguments.new_folder(output, "nmt-average"):
        from nmt.runs import checkpoint

        steps = checkpoint.write_average(run, output, args.steps, args.last)
    log.info("%s: mean of updates %s", output, ", ".join(map(str, steps)))


if __name__ == "__main__":
    sys.exit(main())
