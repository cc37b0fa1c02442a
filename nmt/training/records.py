"""What a training writes down beside its checkpoints: log tables, curves for TensorBoard, and the clock
behind both."""

import logging
import math
import os
import time
from pathlib import Path
from typing import Any

from nmt import files

log = logging.getLogger(__name__)

TRAIN_COLUMNS = ["step", "epoch", "sentences", "cost", "norm", "rate", "seconds", "words_per_second"]
DEV_COLUMNS = ["step", "epoch", "cost", "perplexity", "bleu", "best", "seconds"]


class Table:
    """A log as TSV that can be cut back to an earlier length."""

    def __init__(self, path: Path, columns: list[str], size: int | None) -> None:
        self.path = path
        try:
            self.file = open(path, "a", encoding="utf-8", newline="\n")
            if (there := os.fstat(self.file.fileno()).st_size) < (size or 0):
                log.warning(
                    "%s: %d bytes, but %d when it was saved; its lines before this start are not all there",
                    path,
                    there,
                    size,
                )
            self.file.truncate(min(there, size or 0))
        except OSError as error:
            raise files.cannot_write(path, error) from error
        if not size or not there:
            self.add(columns)

    def add(self, values: list[str]) -> None:
        try:
            self.file.write("\t".join(values) + "\n")
            self.file.flush()
        except OSError as error:
            raise files.cannot_write(self.path, error) from error

    def size(self) -> int:
        os.fsync(self.file.fileno())
        return os.fstat(self.file.fileno()).st_size


class NoTable(Table):
    """The log of a process that writes none."""

    def __init__(self) -> None:
        pass

    def add(self, values: list[str]) -> None:
        pass

    def size(self) -> int:
        return 0


class Clock:
    """Seconds of work over all starts of a run, and words a second since the last question, or since this
    start."""

    def __init__(self, before: float, words: int = 0) -> None:
        """`before`: seconds of earlier starts; `words`: those of them since the last question."""
        self.before = words
        self.start = time.monotonic() - before
        self.mark = time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self.start

    def rate(self, words: int) -> float:
        """`words` since the last question, those of an earlier start among them."""
        now = time.monotonic()
        rate = (words - self.before) / max(1e-9, now - self.mark)
        self.mark, self.before = now, 0
        return rate


class Board:
    """Curves for TensorBoard when it is installed; imported at the first value, so that it delays no first
    step."""

    def __init__(self, directory: Path, wanted: bool, step: int) -> None:
        """`step`: where the run goes on; what was written after it is dropped."""
        self.wanted = wanted
        self.directory = directory
        self.step = step
        self.writer: Any = None

    def add(self, kind: str, step: int, values: dict[str, float]) -> None:
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
        if self.writer is not None:
            self.writer.close()
