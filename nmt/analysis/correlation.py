"""Two scores of the same things (Fig. 4.3): how they go together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nmt import files
from nmt.errors import DataError


@dataclass
class Correlation:
    pairs: int
    pearson: float  # of the numbers
    spearman: float  # of their ranks
    mean_difference: float  # first minus second


def read_scores(path: str) -> list[float]:
    """The first number of each line, as nmt-score writes them. DataError for a line that begins with none."""
    scores = []
    for number, line in enumerate(files.read_lines(path), 1):
        try:
            scores.append(float(files.split_words(line)[0]))
        except (ValueError, IndexError) as error:
            raise DataError(f"{path}:{number}: expected a number first, found {line[:40]!r}") from error
    return scores


def correlate(first: Sequence[float], second: Sequence[float]) -> Correlation:
    """DataError for fewer than two finite pairs. Constant scores correlate with nothing: nan."""
    a, b = np.asarray(first, float), np.asarray(second, float)
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    if len(a) < 2:
        raise DataError("fewer than two pairs of finite scores; there is nothing to correlate")
    return Correlation(len(a), pearson(a, b), pearson(ranks(a), ranks(b)), float((a - b).mean()))


def pearson(a: np.ndarray, b: np.ndarray) -> float:  # type: ignore[type-arg]
    a, b = a - a.mean(), b - b.mean()
    spread = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / spread if spread else float("nan")


def ranks(values: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """From 0; equal values share the mean of their ranks."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + ends - 1) / 2)[index]  # type: ignore[no-any-return]


def to_tsv(names: tuple[str, str], found: Correlation) -> Iterator[str]:
    yield "\t".join(["first", "second", "pairs", "pearson", "spearman", "mean_difference"])
    yield "\t".join(
        [
            *names,
            str(found.pairs),
            f"{found.pearson:.6f}",
            f"{found.spearman:.6f}",
            f"{found.mean_difference:.6f}",
        ]
    )
