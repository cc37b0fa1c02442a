"""The mean of the weights of several checkpoints of a run, as a run of its own; of one checkpoint, a run that
has nothing but what the model needs."""

import logging
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from nmt import files
from nmt.errors import CheckpointError
from nmt.runs import directory as run_directory
from nmt.runs import weights

log = logging.getLogger(__name__)


def write(run: Path, output: Path, given: Sequence[int] | None, last: int = 1) -> list[int]:
    """Average the checkpoints of these updates, or the `last` newest ones, into a new run directory; returns
    their updates. CheckpointError when they are not there."""
    steps, mean = run_directory.settled(run, lambda: average(run, given, last))
    save(run, output, steps[-1], mean)
    return steps


def average(run: Path, given: Sequence[int] | None, last: int) -> tuple[list[int], dict[str, Tensor]]:
    """The checkpoints to average, and the mean of their weights."""
    steps = choose(run, given, last)
    return steps, weights.average([run_directory.weights_path(run, step) for step in steps])


def save(run: Path, output: Path, step: int, mean: dict[str, Tensor]) -> None:
    """A run with these weights alone."""
    with run_directory.writing(output) as new:
        run_directory.copy_texts(run, new)
        weights.save_tensors(mean, run_directory.weights_path(new, step))
        run_directory.write_index(new, step, step)
    back_ends = run_directory.back_ends_file(run)
    if back_ends and back_ends.exists():
        files.write_text(output / back_ends.name, files.read_lines(back_ends))


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
