"""Records of a training beside its checkpoints: log tables, curves for TensorBoard, and the clock of both."""

import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.io import files
from nmt.runs.directory import DEV_LOG, TRAIN_LOG

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

log = logging.getLogger(__name__)

TRAIN_COLUMNS = ["step", "epoch", "sentences", "cost", "norm", "rate", "seconds", "words_per_second"]
DEV_COLUMNS = ["step", "epoch", "cost", "perplexity", "bleu", "best", "seconds", "chrf", "signature"]

RECENT = 100  # updates


class LogTable:
    """A log as TSV that can be cut back to an earlier length."""

    def __init__(self, path: Path, columns: list[str], size: int | None) -> None:
        self.path, self.columns = path, columns
        try:
            # a link would have another file cut back
            self.file = open(path, "a", encoding="utf-8", newline="\n", opener=without_links)
            if (size_on_disk := os.fstat(self.file.fileno()).st_size) < (size or 0):
                log.warning(
                    "%s: %d bytes, but %d when it was saved; some lines of earlier starts are missing",
                    path, size_on_disk, size,
                )  # fmt: skip
            self.file.truncate(min(size_on_disk, size or 0))
        except OSError as error:
            raise files.cannot_write(path, error) from error
        if not size or not size_on_disk:
            self.write(columns)

    def add(self, values: Mapping[str, str]) -> None:
        """Write a line: the value of each column."""
        self.write([values[column] for column in self.columns])

    def write(self, fields: Sequence[str]) -> None:
        """Write the fields of a line."""
        try:
            self.file.write("\t".join(fields) + "\n")
            self.file.flush()
        except OSError as error:
            raise files.cannot_write(self.path, error) from error

    def size(self) -> int:
        """Bytes so far, all of them on the disk."""
        os.fsync(self.file.fileno())
        return os.fstat(self.file.fileno()).st_size

    def close(self) -> None:
        self.file.close()


def without_links(path: str, flags: int) -> int:
    """How `open` opens a file that is not to be a link."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


class NullLogTable(LogTable):
    """A log that is not written: that of all processes but the first."""

    def __init__(self) -> None:
        pass

    def add(self, values: Mapping[str, str]) -> None:
        pass

    def size(self) -> int:
        return 0

    def close(self) -> None:
        pass


def open_tables(directory: Path, sizes: tuple[int, int] | None) -> tuple[LogTable, LogTable]:
    """train.tsv and dev.tsv of a run, cut back to their sizes at the last save. `sizes` None: a new run."""
    train_size, dev_size = sizes or (None, None)
    return (
        LogTable(directory / TRAIN_LOG, TRAIN_COLUMNS, train_size),
        LogTable(directory / DEV_LOG, DEV_COLUMNS, dev_size),
    )


class Clock:
    """Seconds of work over all starts of a run, and words per second since it was last asked, or since this
    start."""

    def __init__(self, before: float, words: int = 0) -> None:
        """`before`: seconds of earlier starts; `words`: words that they read since the rate was last
        asked."""
        self.before = words
        self.mark = self.last = time.monotonic()
        self.start = self.mark - before
        self.pace = 0.0  # seconds of an update: the mean of this start's, weighted towards the last RECENT
        self.updates = 0

    def seconds(self) -> float:
        """Seconds of work over all starts."""
        return time.monotonic() - self.start

    def tick(self) -> None:
        """Note that an update is done."""
        now = time.monotonic()
        self.updates += 1
        self.pace += (now - self.last - self.pace) / min(self.updates, RECENT)
        self.last = now

    def leave_out(self, seconds: float) -> None:
        """Take seconds that have just passed for no time of training: words a second and the pace of updates
        are of training alone."""
        self.mark += seconds
        self.last += seconds

    def rate(self, words: int) -> float:
        """Words per second; `words`: read since the last call, those of an earlier start included."""
        now = time.monotonic()
        rate = (words - self.before) / max(1e-9, now - self.mark)
        self.mark, self.before = now, 0
        return rate


class Board:
    """Curves for TensorBoard where it is installed; imported at the first value, so that it does not delay
    the first update."""

    def __init__(self, directory: Path, wanted: bool, step: int) -> None:
        """`step`: where the run is resumed; what was written after it is dropped."""
        self.wanted = wanted
        self.directory = directory
        self.step = step
        self.writer: SummaryWriter | None = None

    def add(self, kind: str, step: int, values: dict[str, float]) -> None:
        """Values of one kind of curve (train, dev) at an update; those that are not finite are left out."""
        if not self.wanted:
            return
        if self.writer is None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                self.wanted = False
                return
            self.writer = SummaryWriter(str(self.directory), purge_step=self.step + 1 if self.step else None)
        for name, value in values.items():
            if math.isfinite(value):
                self.writer.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Write pending values and close."""
        if self.writer is not None:
            self.writer.close()
