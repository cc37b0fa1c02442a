"""nmt-average: the mean of the weights of several checkpoints of a run, as a run of its own."""

import logging
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.cli import options
from nmt.errors import CheckpointError, ConfigError

log = logging.getLogger("nmt.average")

TEXT_FILES = ("config.yaml", "source.vocab", "target.vocab", "source.codes", "target.codes", "source.truecase", "target.truecase", "matmul.tsv")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("nmt-average", "Average the weights of checkpoints of one run; the result is a run directory that translates and scores.")
    parser.add_argument("run", metavar="RUN_DIR", help="a run trained with training.keep above 1")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--last", type=options.positive, default=5, metavar="N", help="the N newest checkpoints")
    which.add_argument("--steps", type=options.positive, nargs="+", default=None, metavar="STEP", help="these checkpoints")
    parser.add_argument("--output", "-o", required=True, metavar="DIR", help="the run directory to make")
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("nmt-average", args.quiet)
    options.before_torch()
    run, output = Path(args.run), Path(args.output)
    from nmt import checkpoint, files

    checkpoint.check_version(run)
    steps = choose(run, args.steps, args.last)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(f"{output}: exists already; choose another name")
    mean = checkpoint.average([checkpoint.weights_path(run, step) for step in steps])
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name in TEXT_FILES:
            if (run / name).exists():
                shutil.copyfile(run / name, output / name)
    except OSError as error:
        raise files.cannot_write(output, error) from error
    checkpoint.save_tensors(mean, checkpoint.weights_path(output, steps[-1]))
    checkpoint.save_index(output, steps[-1], steps[-1])
    files.write_text(output / "version", [checkpoint.VERSION])  # last: only a whole run has it
    log.info("%s: mean of updates %s", output, ", ".join(map(str, steps)))


def choose(run: Path, steps: Sequence[int] | None, last: int) -> list[int]:
    """The checkpoints to average, oldest first. CheckpointError when they are not there."""
    there = sorted(int(path.stem.removeprefix("step-")) for path in run.glob("step-*.pt") if path.stem.removeprefix("step-").isdigit())
    missing = sorted(set(steps or []) - set(there))
    if missing or len(there) < (1 if steps else last):
        wanted = f"update {missing[0]}" if missing else f"{last} checkpoints"
        raise CheckpointError(f"{run}: {wanted} asked for, but it holds updates {', '.join(map(str, there)) or 'none'}; train with a larger training.keep")
    return sorted(set(steps)) if steps else there[-last:]


if __name__ == "__main__":
    sys.exit(main())
