"""The logs and the state that training writes into a run. Resuming is exact: the updates after update N
depend only on the files saved at update N."""

import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, TypedDict, cast

import torch
from torch import Tensor

from nmt.compute import device
from nmt.errors import CheckpointError, UserError
from nmt.io import files
from nmt.lm.base import Carried
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.directory import CURVES, DEV_LOG, INDEX, STATE, TRAIN_LOG, weights_path
from nmt.training.job import TrainingJob, TrainingProgress
from nmt.training.protocols import TrainingObserver

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

log = logging.getLogger(__name__)


# ---- logs --------------------------------------------------------------------------------------------------
# Log tables, curves for TensorBoard, and the clock that times them.


TRAIN_COLUMNS = ["step", "epoch", "sentences", "cost", "norm", "rate", "seconds", "words_per_second"]
DEV_COLUMNS = ["step", "epoch", "cost", "perplexity", "bleu", "best", "seconds", "chrf", "signature"]

RECENT = 100  # updates over which the pace is averaged


class LogTable:
    """A TSV log that can be truncated to an earlier length."""

    def __init__(self, path: Path, columns: list[str], size: int | None) -> None:
        """`size`: bytes to which an existing log is truncated; None for a new one, which begins with a line
        of the column names. UserError if it cannot be written."""
        self.path, self.columns = path, columns
        with files.naming_unwritten(path):
            # through a symbolic link, another file would be truncated
            self.file = open(path, "a", encoding="utf-8", newline="\n", opener=without_links)
            size_on_disk = os.fstat(self.file.fileno()).st_size
            self.file.truncate(min(size_on_disk, size or 0))
        if size_on_disk < (size or 0):
            log.warning(
                "%s: %d bytes, but %d when it was saved; some lines of earlier starts are missing",
                path, size_on_disk, size,
            )  # fmt: skip
        if not size or not size_on_disk:
            self.write(columns)

    def add(self, values: Mapping[str, str]) -> None:
        """Write a line: the value of each column. UserError if that fails."""
        self.write([values[column] for column in self.columns])

    def write(self, fields: Sequence[str]) -> None:
        """Write the fields of a line at once. UserError if that fails."""
        with files.naming_unwritten(self.path):
            self.file.write("\t".join(fields) + "\n")
            self.file.flush()

    def size(self) -> int:
        """Size of the log in bytes, after all of it has been written to the disk. UserError if that fails."""
        with files.naming_unwritten(self.path):
            os.fsync(self.file.fileno())
            return os.fstat(self.file.fileno()).st_size

    def close(self) -> None:
        with suppress(OSError):  # `write` has reported a full disk already
            self.file.close()


def without_links(path: str, flags: int) -> int:
    """Opener for `open` that refuses symbolic links."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def open_tables(directory: Path, sizes: tuple[int, int] | None) -> tuple[LogTable, LogTable]:
    """Open train.tsv and dev.tsv of a run, truncated to their sizes (bytes) at the last save. `sizes`: None
    for a new run. UserError if they cannot be written."""
    train_size, dev_size = sizes or (None, None)
    return (
        LogTable(directory / TRAIN_LOG, TRAIN_COLUMNS, train_size),
        LogTable(directory / DEV_LOG, DEV_COLUMNS, dev_size),
    )


class Clock:
    """Measures seconds of training over all starts of a run, and words per second since the last call of
    `rate` or since this start."""

    def __init__(self, earlier_seconds: float, words: int = 0) -> None:
        """`earlier_seconds`: of earlier starts; `words`: read in them after their last call of `rate`."""
        self.words_before = words
        self.mark = self.last = time.monotonic()
        self.start = self.mark - earlier_seconds
        self.pace = 0.0  # seconds of an update: mean since this start, mostly of the last RECENT updates
        self.updates = 0

    def seconds(self) -> float:
        """Seconds of all starts, validations and saves included."""
        return time.monotonic() - self.start

    def tick(self) -> None:
        """Record that an update is finished."""
        now = time.monotonic()
        self.updates += 1
        self.pace += (now - self.last - self.pace) / min(self.updates, RECENT)
        self.last = now

    def leave_out(self, seconds: float) -> None:
        """Leave seconds that have just passed out of the words per second and the pace of updates, which
        describe training alone; `seconds` still counts them."""
        self.mark += seconds
        self.last += seconds

    def rate(self, words: int) -> float:
        """Words per second; `words`: read since the last call, those of an earlier start included."""
        now = time.monotonic()
        rate = (words - self.words_before) / max(1e-9, now - self.mark)
        self.mark, self.words_before = now, 0
        return rate


class Board:
    """Curves for TensorBoard, if it is installed (imported with the first value, so as not to delay the first
    update), and for the observers of the training. UserError if they cannot be written."""

    def __init__(
        self, directory: Path, wanted: bool, step: int, observers: Sequence[TrainingObserver] = ()
    ) -> None:
        """`wanted`: whether to write curves for TensorBoard; `step`: the update at which the run is resumed:
        values of later updates, which an earlier start wrote, are dropped; `observers`: get all values."""
        self.wanted = wanted
        self.directory = directory
        self.step, self.observers = step, observers
        self.writer: SummaryWriter | None = None

    def add(self, kind: str, step: int, values: dict[str, float]) -> None:
        """Add a point to the curve of each value, by name. `kind`: group of curves, train or dev; `step`:
        number of the update. Values that are not finite are left out."""
        values = {name: value for name, value in values.items() if math.isfinite(value)}
        for observer in self.observers:
            observer(kind, step, values)
        if not self.wanted:
            return
        if self.writer is None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                self.wanted = False
                return
            with files.naming_unwritten(self.directory):
                self.writer = SummaryWriter(
                    str(self.directory), purge_step=self.step + 1 if self.step else None
                )
        with files.naming_unwritten(self.directory):
            for name, value in values.items():
                self.writer.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Write pending values and close."""
        if self.writer is not None:
            with files.naming_unwritten(self.directory):
                self.writer.close()


@dataclass
class TrainingLogs:
    """Logs, curves and clock of a training job."""

    tables: tuple[LogTable, ...]  # train.tsv, dev.tsv; none in processes other than the first
    board: Board
    clock: Clock
    signature: str = ""  # of the development scores that the log showed last

    def close(self) -> None:
        for table in self.tables:
            table.close()
        self.board.close()


def open_logs(job: TrainingJob) -> TrainingLogs:
    """Open train.tsv, dev.tsv and the curves, truncated to the last save, and start the clock. Processes
    other than the first get no tables, and curves that discard everything. UserError if the logs cannot be
    written."""
    progress, first = job.progress, job.team.first
    observers = job.observers if first else ()
    board = Board(job.directory / CURVES, job.training.tensorboard and first, progress.step, observers)
    tables = open_tables(job.directory, job.log_sizes) if first else ()
    return TrainingLogs(tables, board, Clock(progress.seconds, progress.log_words))


# ---- state -------------------------------------------------------------------------------------------------


class TrainingState(TypedDict):
    """The content of training.pt, with which training is resumed."""

    progress: dict[str, object]  # fields of TrainingProgress
    optimizer: dict[str, object]  # its state_dict
    random: Tensor  # state of torch's random numbers
    random_cuda: list[Tensor]  # the same for each GPU
    sizes: list[int]  # bytes of train.tsv and dev.tsv
    extra: dict[str, str]  # `matmul`: the matrix back end
    carried: Carried  # see TrainingJob
    # with training.ema: the weights themselves; step-N.pt has their average
    raw: NotRequired[dict[str, Tensor]]


def save(job: TrainingJob, tables: Sequence[LogTable]) -> None:
    """Save a job, in the first process alone: weights, training.pt that names them, and the index, in this
    order. Then remove weights other than the best and the `training.keep` newest. UserError for weights that
    are not finite and for a full disk."""
    progress = job.progress
    if not job.team.first:
        return
    check_finite(job)
    keep = job.training.keep
    recent = [step for step in progress.saved if step != progress.step][-(keep - 1) :] if keep > 1 else []
    steps = sorted({*recent, progress.step, *([progress.best_step] if progress.best_step else [])})
    old = tuple(weights_path(job.directory, step).name for step in progress.saved if step not in steps)
    state: TrainingState = {
        "progress": {**asdict(progress), "saved": steps},
        "optimizer": job.optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "random_cuda": torch.cuda.get_rng_state_all() if job.model.device.type == "cuda" else [],
        "sizes": [table.size() for table in tables],
        "extra": {"matmul": device.back_end_in_use()},
        "carried": job.carried,
    }
    if job.average:
        state["raw"] = dict(job.model.state_dict())
    with run_directory.writing(job.directory, drop=old) as new:
        with job.use_average():
            checkpoint.save_tensors(job.model.state_dict(), weights_path(new, progress.step))
        checkpoint.save_tensors(state, new / STATE)
        run_directory.write_index(new, progress.best_step or progress.step, progress.step)
    progress.saved = steps


def check_finite(job: TrainingJob) -> None:
    """UserError for weights that are not finite, never saved; too high a learning rate can cause them."""
    for name, parameter in job.model.named_parameters():
        if not math.isfinite(float(parameter.detach().sum())) and not bool(parameter.isfinite().all()):
            raise UserError(
                f"{job.directory}: weights are not finite numbers at step {job.progress.step} ({name}); they "
                "are not saved. Lower training.learning_rate and start a new run with it"
            )


def load_state(directory: Path) -> TrainingState | None:
    """Load the last saved training state; None before the first. CheckpointError if it is damaged."""
    if not (directory / STATE).exists():
        return None
    run_directory.verify(directory, INDEX)
    state = checkpoint.load_tensors(directory / STATE)
    if not isinstance(state, dict) or not {"progress", "optimizer", "random", "sizes", "extra"} <= set(state):
        raise CheckpointError(
            f"{directory / STATE}: not a training state of this toolkit; copy the run again"
        )
    return cast(TrainingState, state)


def saved_position(directory: Path, state: TrainingState) -> tuple[TrainingProgress, tuple[int, int]]:
    """The progress in a state, and bytes of train.tsv and dev.tsv. CheckpointError if it is damaged."""
    try:
        train_size, dev_size = map(int, state["sizes"])
        return TrainingProgress(**state["progress"]), (train_size, dev_size)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{directory / STATE}: does not fit this configuration ({error})") from error


def restore(job: TrainingJob, state: TrainingState) -> None:
    """Restore progress, sizes of the logs, optimizer, carried state, weights and random numbers of a job from
    a saved state; the first process then cleans up the run, see `tidy`. CheckpointError if the state does not
    fit the model and its settings, UserError if the run cannot be written."""
    job.progress, job.log_sizes = saved_position(job.directory, state)
    try:
        job.optimizer.load_state_dict(state["optimizer"])
        job.carried = move(state["carried"], job.model.device)
        random, random_cuda = state["random"], state["random_cuda"]
        torch.set_rng_state(random)  # for its errors; set again below, after the weights are loaded
    except (TypeError, ValueError, KeyError, RuntimeError) as error:
        raise CheckpointError(
            f"{job.directory / STATE}: does not fit this configuration ({error})"
        ) from error
    load_weights(job, state)
    torch.set_rng_state(random)
    gpus = min(len(random_cuda), torch.cuda.device_count())  # this machine may have fewer
    for gpu in range(gpus):
        torch.cuda.set_rng_state(random_cuda[gpu], gpu)
    if job.team.first:
        tidy(job.directory, job.progress)


def load_weights(job: TrainingJob, state: TrainingState) -> None:
    """Load the last weights, and their moving average if there is one. CheckpointError unless they fit."""
    checkpoint.load_weights(job.model, weights_path(job.directory, job.progress.step))
    if "raw" in state:
        if job.average:
            job.average.set()
        try:
            job.model.load_state_dict(state["raw"])
        except (RuntimeError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{job.directory / STATE}: does not fit this configuration") from error


def tidy(directory: Path, progress: TrainingProgress) -> None:
    """Clean up after a kill: write the index of the saved progress, remove weights that it does not name."""
    stale = tuple(
        weights_path(directory, step).name
        for step in run_directory.steps(directory)
        if step not in progress.saved
    )
    with run_directory.writing(directory, drop=stale) as new:
        run_directory.write_index(new, progress.best_step or progress.step, progress.step)


def move(carried: Carried, device: torch.device) -> Carried:
    """Move a carried state (a tensor, a tuple of tensors, or None) to a device."""
    if isinstance(carried, tuple):
        return tuple(part.to(device) for part in carried)
    return None if carried is None else carried.to(device)
