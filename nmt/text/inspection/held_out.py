"""A development set for a text that has none: pairs that are taken out of the training text, always the same
ones."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.errors import DataError
from nmt.io import files
from nmt.text.inspection.texts import PairReport

MOST, SHARE = 1000, 20  # pairs; at most one of so many


def held_out(report: PairReport) -> NDArray[np.int64]:
    """The places of the pairs: as if at random, sound ones of which neither side occurs again. DataError
    where there are too few."""
    digests = (report.digests, report.source.digests, report.target.digests)
    free = np.frombuffer(report.sound, np.bool_).copy()
    for digest in digests:
        free &= digest.unique()[: len(free)]
    candidates = np.flatnonzero(free)
    count = min(MOST, len(candidates) // SHARE)
    if not count:
        raise DataError(
            f"{report.source.path}: {len(candidates)} pairs without faults that occur once are too few to "
            "hold out a development set; give one with --dev-source and --dev-target"
        )
    order = np.argsort(report.digests.values()[candidates], kind="stable")
    return np.sort(candidates[order[:count]])


def split(texts: Sequence[str], train: Sequence[Path], dev: Sequence[Path], rows: NDArray[np.int64]) -> None:
    """Write the pairs of these places to the files of a development set, all others to those of a training
    text, in their order."""
    dev_rows = iter([*rows.tolist(), -1])
    due = next(dev_rows)
    with ExitStack() as stack:
        train_files, taken = (
            [stack.enter_context(files.Writing(path)) for path in paths] for paths in (train, dev)
        )
        for row, pair in enumerate(files.parallel(*texts)):
            for out, line in zip(taken if row == due else train_files, pair, strict=True):
                out.write(line + "\n")
            if row == due:
                due = next(dev_rows)
