"""Weights and other tensors as files: written whole or not at all, read without running code from them; and
the mean of the weights of several checkpoints, as a run of its own."""

import logging
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import torch
from torch import Tensor

from nmt.errors import CheckpointError, DataError
from nmt.io import files, manifest
from nmt.runs import directory as run_directory

# ---- weights -----------------------------------------------------------------------------------------------


class Loadable(Protocol):
    """A model that takes weights."""

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> object: ...


def save_tensors(value: object, path: Path) -> None:
    """torch.save under a temporary name, then rename. CheckpointError when the disk is full."""
    beside = path.with_name(f"{path.name}.part{os.getpid()}")
    try:
        with open(beside, "wb") as stream:
            torch.save(value, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
    except (OSError, RuntimeError) as error:  # torch turns a full disk into a RuntimeError
        beside.unlink(missing_ok=True)
        raise CheckpointError(
            f"{path}: cannot write the checkpoint: {getattr(error, 'strerror', None) or 'is the disk full?'}"
        ) from error


def load_tensors(path: Path) -> Any:
    """CheckpointError for a file that is missing, damaged or not made by save_tensors. Never runs code from
    the file."""
    try:
        entries = manifest.read(path.parent)
        stream = manifest.opened(path.parent, path.name, entries)
    except DataError as error:
        raise CheckpointError(str(error)) from error
    with stream:
        try:
            if entries is None:
                check_sums(stream)
            return torch.load(stream, map_location="cpu", weights_only=True)
        except Exception as error:  # torch raises half a dozen kinds for a damaged file
            raise CheckpointError(
                f"{path}: damaged or not a checkpoint ({type(error).__name__}); copy it again, or name "
                "another step"
            ) from error


def check_sums(stream: BinaryIO) -> None:
    """torch writes a zip file but ignores its checksums; for a run without a manifest there are no others."""
    with zipfile.ZipFile(stream) as parts:
        if parts.testzip():
            raise zipfile.BadZipFile
    stream.seek(0)


def load_weights(model: Loadable, path: Path) -> None:
    """Weights from a file into a model. CheckpointError where they do not fit."""
    weights = load_tensors(path)
    try:
        model.load_state_dict(weights)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path}: the weights do not fit the model of config.yaml; was either replaced?"
        ) from error


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights of several checkpoints, summed in float64. CheckpointError when they are not of
    one model."""
    total: dict[str, Tensor] = {}
    for path in paths:
        weights = load_tensors(path)
        if not isinstance(weights, dict) or (
            total and {k: v.shape for k, v in weights.items()} != {k: v.shape for k, v in total.items()}
        ):
            raise CheckpointError(f"{path}: not of the same model as {paths[0]}")
        for name, value in weights.items():
            if not value.is_floating_point():  # the classes or the tree of an output layer
                if not torch.equal(value, total.setdefault(name, value)):
                    raise CheckpointError(
                        f"{path}: its {name} is not that of {paths[0]}: the tree of an output layer has "
                        "changed between them, so their weights have no mean"
                    )
                continue
            total[name] = value.double() + total[name] if name in total else value.double()
    return {
        name: (value / len(paths)).to(torch.float32) if value.is_floating_point() else value
        for name, value in total.items()
    }


# ---- averaging ---------------------------------------------------------------------------------------------
# The mean of the weights of several checkpoints of a run, as a run of its own; of one checkpoint, a run that
# has nothing but what the model needs.


log = logging.getLogger(__name__)


def write_average(run: Path, output: Path, steps_given: Sequence[int] | None, last: int = 1) -> list[int]:
    """Average the checkpoints of these updates, or the `last` newest ones, into a new run directory; returns
    their updates. CheckpointError when they are not there."""
    steps, mean = run_directory.read_consistent(run, lambda: average_checkpoints(run, steps_given, last))
    save_average(run, output, steps[-1], mean)
    return steps


def average_checkpoints(
    run: Path, requested: Sequence[int] | None, last: int
) -> tuple[list[int], dict[str, Tensor]]:
    """The checkpoints to average, and the mean of their weights."""
    steps = choose_checkpoints(run, requested, last)
    return steps, average_weights([run_directory.weights_path(run, step) for step in steps])


def save_average(run: Path, output: Path, step: int, mean: dict[str, Tensor]) -> None:
    """A run with these weights alone."""
    with run_directory.writing(output) as new:
        run_directory.copy_texts(run, new)
        save_tensors(mean, run_directory.weights_path(new, step))
        run_directory.write_index(new, step, step)
    back_ends = run_directory.back_ends_file(run)
    if back_ends and back_ends.exists():
        files.write_text(output / back_ends.name, files.read_lines(back_ends))


def choose_checkpoints(run: Path, steps: Sequence[int] | None, last: int) -> list[int]:
    """The checkpoints to average, oldest first. CheckpointError when they are not there."""
    saved = run_directory.steps(run)
    missing = sorted(set(steps or []) - set(saved))
    if missing or not saved:
        wanted = f"update {missing[0]}" if missing else "checkpoints"
        raise CheckpointError(
            f"{run}: {wanted} asked for, but it holds updates {', '.join(map(str, saved)) or 'none'}; train "
            "with a larger training.keep"
        )
    if not steps and len(saved) < last:
        log.warning(
            "%s: holds %d checkpoint%s, not %d; training.keep sets how many a run keeps",
            run,
            len(saved),
            "s" * (len(saved) > 1),
            last,
        )
    return sorted(set(steps)) if steps else saved[-last:]
