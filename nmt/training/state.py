"""Saving and restoring a training. Resume is exact: what happens after update N depends on nothing but the
files saved at update N."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import torch
from torch import Tensor

from nmt.errors import CheckpointError, UserError
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.directory import INDEX, STATE, weights_path
from nmt.training.job import Carried, TrainingJob, TrainingProgress
from nmt.training.records import LogTable


class TrainingState(TypedDict):
    """Content of training.pt, from which a training is resumed."""

    progress: dict[str, object]
    optimizer: dict[str, object]
    random: Tensor
    random_cuda: list[Tensor]
    sizes: list[int]
    extra: dict[str, str]
    carried: Carried
    raw: NotRequired[dict[str, Tensor]]  # with training.ema: the weights whose average step-N.pt has


def save(job: TrainingJob, tables: tuple[LogTable, LogTable]) -> None:
    """Write weights, training.pt that names them, and the index, in this order; then remove older weights."""
    progress = job.progress
    if not job.team.first:
        return
    check_finite(job)
    keep = job.config.keep
    recent = [step for step in progress.saved if step != progress.step][-(keep - 1) :] if keep > 1 else []
    steps = sorted({*recent, progress.step, *([progress.best_step] if progress.best_step else [])})
    old = tuple(weights_path(job.directory, step).name for step in progress.saved if step not in steps)
    state: TrainingState = {
        "progress": {**asdict(progress), "saved": steps},
        "optimizer": job.optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "random_cuda": torch.cuda.get_rng_state_all() if job.model.device.type == "cuda" else [],
        "sizes": [table.size() for table in tables],
        "extra": job.extra,
        "carried": job.carried,
    }
    if job.average:
        state["raw"] = dict(job.model.state_dict())
    with run_directory.writing(job.directory, drop=old) as new:
        with job.averaged():
            checkpoint.save_tensors(job.model.state_dict(), weights_path(new, progress.step))
        checkpoint.save_tensors(state, new / STATE)
        run_directory.write_index(new, progress.best_step or progress.step, progress.step)
    progress.saved = steps


def check_finite(job: TrainingJob) -> None:
    """UserError for weights that are not finite numbers: they are never saved. One update with too high a
    learning rate can cause them."""
    for name, parameter in job.model.named_parameters():
        if not math.isfinite(float(parameter.detach().sum())) and not bool(parameter.isfinite().all()):
            raise UserError(
                f"{job.directory}: weights are not finite numbers at step {job.progress.step} ({name}); they "
                "are not saved. Lower training.learning_rate and start a new run with it"
            )


def load_state(directory: Path) -> TrainingState | None:
    """The last saved training state, or None when nothing was saved yet."""
    if not (directory / STATE).exists():
        return None
    run_directory.verify(directory, INDEX)
    state = checkpoint.load_tensors(directory / STATE)
    if not isinstance(state, dict) or not {"progress", "optimizer", "random", "sizes", "extra"} <= set(state):
        raise CheckpointError(f"{directory / STATE}: not a training state of this toolkit")
    return cast(TrainingState, state)


def saved_position(directory: Path, state: TrainingState) -> tuple[TrainingProgress, tuple[int, int]]:
    """Where a saved training stood, and the sizes of its logs. CheckpointError for a damaged state."""
    try:
        train_size, dev_size = map(int, state["sizes"])
        return TrainingProgress(**state["progress"]), (train_size, dev_size)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{directory / STATE}: does not fit this configuration ({error})") from error


def restore(job: TrainingJob, state: TrainingState) -> None:
    """Bring model, optimizer and random numbers to where they were saved."""
    job.progress, job.log_sizes = saved_position(job.directory, state)
    try:
        job.optimizer.load_state_dict(state["optimizer"])
        job.carried = on_device(state["carried"], job.model.device)
        random, random_cuda = state["random"], state["random_cuda"]
        torch.set_rng_state(random)
    except (TypeError, ValueError, KeyError, RuntimeError) as error:
        raise CheckpointError(
            f"{job.directory / STATE}: does not fit this configuration ({error})"
        ) from error
    load_weights(job, state)
    torch.set_rng_state(random)
    if random_cuda and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(random_cuda)
    if job.team.first:
        tidy(job.directory, job.progress)


def load_weights(job: TrainingJob, state: TrainingState) -> None:
    """The weights of the last save, and their average where the training keeps one."""
    checkpoint.load_weights(job.model, weights_path(job.directory, job.progress.step))
    if "raw" in state:
        if job.average:
            job.average.set()
        try:
            job.model.load_state_dict(state["raw"])
        except (RuntimeError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{job.directory / STATE}: does not fit this configuration") from error


def tidy(directory: Path, progress: TrainingProgress) -> None:
    """After a kill: write the index that training.pt implies, and remove weights that it does not name."""
    stale = tuple(
        weights_path(directory, step).name
        for step in run_directory.steps(directory)
        if step not in progress.saved
    )
    with run_directory.writing(directory, drop=stale) as new:
        run_directory.write_index(new, progress.best_step or progress.step, progress.step)


def on_device(carried: Carried, device: torch.device) -> Carried:
    """A tensor, or a tuple of tensors, or nothing."""
    if isinstance(carried, tuple):
        return tuple(part.to(device) for part in carried)
    return None if carried is None else carried.to(device)
