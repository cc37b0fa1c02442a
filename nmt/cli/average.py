"""nmt-average: the mean of the weights of several checkpoints of a run, as a run of its own."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt import locks
from nmt.cli import options
from nmt.cli.arguments import Input, Output
from nmt.errors import CheckpointError, ConfigError
from nmt.run_directory import steps as all_steps

log = logging.getLogger("nmt.average")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "nmt-average",
        (
            "Average the weights of checkpoints of one run; the result is a run directory that translates "
            "and "
            "scores."
        ),
    )
    parser.add_argument("run", type=Input, metavar="RUN_DIR", help="a run trained with training.keep above 1")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--last", type=options.positive, default=5, metavar="N", help="the N newest checkpoints"
    )
    which.add_argument(
        "--steps", type=options.positive, nargs="+", default=None, metavar="STEP", help="these checkpoints"
    )
    parser.add_argument(
        "--output", "-o", type=Output, required=True, metavar="DIR", help="the run directory to make"
    )
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("nmt-average", args.quiet)
    options.before_torch()
    run, output = Path(args.run), Path(args.output)
    from nmt import checkpoint, files, run_directory

    run_directory.check_version(run)
    run_directory.verify(run)
    if not locks.is_empty(output):
        raise ConfigError(f"{output}: exists already; choose another name")

    def average() -> tuple[list[int], Any]:
        steps = choose(run, args.steps, args.last)
        return steps, checkpoint.average([run_directory.weights_path(run, step) for step in steps])

    steps, mean = run_directory.settled(run, average)
    with locks.locked(output, "nmt-average"):
        if not locks.is_empty(output):
            raise ConfigError(f"{output}: exists already; choose another name")
        if (run / run_directory.BACK_ENDS).exists():
            files.write_text(
                output / run_directory.BACK_ENDS, files.read_lines(run / run_directory.BACK_ENDS)
            )
        with run_directory.writing(output) as new:
            run_directory.copy_texts(run, new)
            checkpoint.save_tensors(mean, run_directory.weights_path(new, steps[-1]))
            run_directory.write_index(new, steps[-1], steps[-1])
            run_directory.write_version(new)
    log.info("%s: mean of updates %s", output, ", ".join(map(str, steps)))


def choose(run: Path, steps: Sequence[int] | None, last: int) -> list[int]:
    """The checkpoints to average, oldest first. CheckpointError when they are not there."""
    there = all_steps(run)
    missing = sorted(set(steps or []) - set(there))
    if missing or len(there) < (1 if steps else last):
        wanted = f"update {missing[0]}" if missing else f"{last} checkpoints"
        raise CheckpointError(
            f"{run}: {wanted} asked for, but it holds updates {', '.join(map(str, there)) or 'none'}; train "
            "with a larger training.keep"
        )
    return sorted(set(steps)) if steps else there[-last:]


if __name__ == "__main__":
    sys.exit(main())
