"""Learning curves from the tables that training writes."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from nmt import files
from nmt.errors import DataError

Curve = list[tuple[float, float]]  # update, value


def read(run: Path) -> dict[str, Curve]:
    """Training cost, dev cost and dev BLEU of a run by update; what was not measured is left out. DataError
    for other tables."""
    return {
        "train cost": column(run / "train.tsv", "cost"),
        "dev cost": column(run / "dev.tsv", "cost"),
        "dev BLEU": column(run / "dev.tsv", "bleu"),
    }


def column(path: Path, name: str) -> Curve:
    lines = files.read_lines(path)
    header = next(lines, "").split("\t")
    if not {"step", name} <= set(header):
        raise DataError(f"{path}:1: no columns 'step' and '{name}'; is this a log of nmt-train?")
    found = []
    for number, line in enumerate(lines, 2):
        fields = line.split("\t")
        try:
            step, value = float(fields[header.index("step")]), float(fields[header.index(name)])
        except (ValueError, IndexError) as error:
            raise DataError(
                f"{path}:{number}: expected {len(header)} columns of numbers, found {line[:40]!r}"
            ) from error
        if value == value:  # nan: no BLEU was asked for
            found.append((step, value))
    return found


def to_tsv(runs: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]) -> Iterator[str]:
    yield "\t".join(["run", "curve", "update", "value"])
    for name, curves in runs.items():
        for kind, points in curves.items():
            for step, value in points:
                yield "\t".join([name, kind, f"{step:.0f}", f"{value:.6f}"])
