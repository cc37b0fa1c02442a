"""nmt-average: the mean of the weights of several checkpoints of a run, as a run of its own."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt import files, locks
from nmt.cli import arguments, options
from nmt.cli.arguments import Input, Output
from nmt.errors import CheckpointError, ConfigError
from nmt.runs import directory as run_directory

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """The command's exit status."""
    return options.run(command, argv)


def parser() -> options.Parser:
    """The options of nmt-average."""
    parser = options.Parser(
        "nmt-average",
        "Average the weights of checkpoints of one run; the result is a run directory that translates and "
        "scores.",
    )
    parser.add_argument("run", type=Input, metavar="RUN_DIR", help="a run trained with training.keep above 1")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--last",
        type=arguments.positive,
        default=5,
        metavar="N",
        help="the N newest checkpoints, or as many as there are",
    )
    which.add_argument(
        "--steps", type=arguments.positive, nargs="+", default=None, metavar="STEP", help="these checkpoints"
    )
    parser.add_argument(
        "--output", "-o", type=Output, required=True, metavar="DIR", help="the run directory to make"
    )
    options.add_quiet(parser)
    return parser


def command(argv: Sequence[str] | None) -> None:
    """Parse, average, log."""
    args = parser().parse_args(argv)
    options.start_log("nmt-average", args)
    run, output = Path(args.run), Path(args.output)
    run_directory.check_version(run)
    run_directory.verify(run)
    check_new(output)
    with locks.locked(output, "nmt-average"):
        check_new(output)
        steps, mean = run_directory.settled(run, lambda: average(run, args.steps, args.last))
        write(run, output, steps[-1], mean)
    log.info("%s: mean of updates %s", output, ", ".join(map(str, steps)))


def check_new(output: Path) -> None:
    """ConfigError unless a folder is missing or empty."""
    if not locks.is_empty(output):
        raise ConfigError(f"{output}: exists already; choose another name")


def average(run: Path, given: Sequence[int] | None, last: int) -> "tuple[list[int], dict[str, Tensor]]":
    """The checkpoints to average, and the mean of their weights."""
    from nmt.runs import weights

    steps = choose(run, given, last)
    return steps, weights.average([run_directory.weights_path(run, step) for step in steps])


def write(run: Path, output: Path, step: int, mean: "dict[str, Tensor]") -> None:
    """A run with these weights alone."""
    from nmt.runs import weights

    if (run / run_directory.BACK_ENDS).exists():
        files.write_text(output / run_directory.BACK_ENDS, files.read_lines(run / run_directory.BACK_ENDS))
    with run_directory.writing(output) as new:
        run_directory.copy_texts(run, new)
        weights.save_tensors(mean, run_directory.weights_path(new, step))
        run_directory.write_index(new, step, step)


def choose(run: Path, steps: Sequence[int] | None, last: int) -> list[int]:
    """The checkpoints to average, oldest first. CheckpointError when they are not there."""
    there = run_directory.steps(run)
    missing = sorted(set(steps or []) - set(there))
    if missing or not there:
        wanted = f"update {missing[0]}" if missing else "checkpoints"
        raise CheckpointError(
            f"{run}: {wanted} asked for, but it holds updates {', '.join(map(str, there)) or 'none'}; train "
            "with a larger training.keep"
        )
    if not steps and len(there) < last:
        log.warning(
            "%s: holds %d checkpoint%s, not %d; training.keep sets how many a run keeps",
            run,
            len(there),
            "s" * (len(there) > 1),
            last,
        )
    return sorted(set(steps)) if steps else there[-last:]


if __name__ == "__main__":
    sys.exit(main())
