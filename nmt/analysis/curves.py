"""Learning curves, from the tables that training writes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from nmt.analysis.table import Table
from nmt.errors import DataError
from nmt.io import files

LearningCurve = list[tuple[float, float]]  # (update, value)


def read_curves(run: Path) -> dict[str, LearningCurve]:
    """Training cost, dev cost and dev BLEU of a run by update, and dev chrF where it was measured; single
    values that were not are left out.

    DataError for other tables.
    """
    curves = {
        "train cost": read_column(run / "train.tsv", "cost"),
        "dev cost": read_column(run / "dev.tsv", "cost"),
        "dev BLEU": read_column(run / "dev.tsv", "bleu"),
    }
    chrf = read_column(run / "dev.tsv", "chrf", required=False)
    return {**curves, "dev chrF": chrf} if chrf else curves


def read_column(path: Path, name: str, required: bool = True) -> LearningCurve:
    """One column of a training log against its column `step`, without nan. Logs of earlier versions lack some
    that are not `required`."""
    lines = files.read_lines(path)
    header = next(lines, "").split("\t")
    if name not in header and not required:
        return []
    if not {"step", name} <= set(header):
        raise DataError(f"{path}:1: no columns 'step' and '{name}'; is this a log of nmt-train?")
    found = []
    for number, line in enumerate(lines, 2):
        fields = line.split("\t")
        try:
            step, value = float(fields[header.index("step")]), float(fields[header.index(name)])
        except (ValueError, IndexError) as error:
            raise DataError(
                f"{path}:{number}: expected {len(header)} columns of numbers; was the log changed by hand?"
            ) from error
        if value == value:  # nan: BLEU was not measured
            found.append((step, value))
    return found


def table(runs: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]) -> Table:
    return Table(
        {"run": "", "curve": "", "update": ".0f", "value": ".6f"},
        [
            [name, kind, step, value]
            for name, curves in runs.items()
            for kind, points in curves.items()
            for step, value in points
        ],
    )
