"""How two scores of the same items correlate (Fig. 4.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt import files
from nmt.analysis.table import Table, fields_of
from nmt.errors import DataError


@dataclass
class Correlation:
    """Correlation coefficients of two lists of scores."""

    pairs: int
    pearson: float  # of the numbers
    spearman: float  # of their ranks
    mean_difference: float  # first minus second


def read_scores(path: str) -> list[float]:
    """The first number of each line, as nmt-score writes them.

    DataError for a line that begins with anything else.
    """
    scores = []
    for number, line in enumerate(files.read_lines(path), 1):
        try:
            scores.append(float(files.split_words(line)[0]))
        except (ValueError, IndexError) as error:
            raise DataError(f"{path}:{number}: expected a number first, found {line[:40]!r}") from error
    return scores


def correlate(first: Sequence[float], second: Sequence[float]) -> Correlation:
    """Pairs with an infinite score or nan are left out; DataError for fewer than two others.

    Constant scores have no correlation: nan.
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    if len(a) < 2:
        raise DataError("fewer than two pairs of finite scores; there is nothing to correlate")
    return Correlation(
        pairs=len(a),
        pearson=pearson(a, b),
        spearman=pearson(ranks(a), ranks(b)),
        mean_difference=float((a - b).mean()),
    )


def pearson(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Pearson's r; nan where one side is constant."""
    a, b = a - a.mean(), b - b.mean()
    spread = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / spread if spread else float("nan")


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """From 0; equal values share the mean of their ranks."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: NDArray[np.float64] = (ends - counts + ends - 1) / 2
    return means[index]


def table(names: tuple[str, str], found: Correlation) -> Table:
    columns = {"first": "", "second": "", "pairs": "", "pearson": ".6f", "spearman": ".6f"}
    return Table(columns | {"mean_difference": ".6f"}, [[*names, *values] for values in fields_of([found])])
