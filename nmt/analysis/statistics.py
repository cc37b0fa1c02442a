"""Statistics of scores: confidence intervals, paired bootstrap resampling, correlation."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from nmt.analysis.buckets import Bucket
from nmt.analysis.table import Table, fields_of
from nmt.errors import DataError
from nmt.io import files
from nmt.io.files import check_texts
from nmt.metrics import BleuStatistics, check_tokenizer

# ---- resampling --------------------------------------------------------------------------------------------
# BLEU of many groups of sentences at once, and confidence intervals by bootstrap resampling (Koehn 2004).


INTERVAL_SAMPLES = 1000  # resampled test sets
SEED = 1
LEVEL = 95  # per cent of the samples lie inside an interval
DRAWN_AT_ONCE = 1 << 22  # numbers drawn at a time

Floats = NDArray[np.float64]
Interval = tuple[float, float]  # lower and upper end


def bleu_of(sums: NDArray[np.generic], effective_order: bool = False) -> Floats:
    """sacreBLEU's BLEU, 0 to 100, with its smoothing `exp`, of sums of statistics (..., 10) as BleuStatistics
    keeps them. `effective_order`: as for single sentences, orders without n-grams do not count."""
    numbers = np.asarray(sums, np.float64)
    matches, totals, (length, reference) = (
        numbers[..., :4],
        numbers[..., 4:8],
        np.moveaxis(numbers[..., 8:], -1, 0),
    )
    there = totals > 0
    halved = np.cumsum((matches == 0) & there, -1)  # each order without matches counts half of the one before
    smoothed = np.where(matches > 0, matches, 0.5**halved) / np.maximum(totals, 1)
    logs = np.where(there, np.log(smoothed), 0.0 if effective_order else -np.inf).sum(-1)
    orders = np.maximum(there.sum(-1), 1) if effective_order else 4
    brevity = np.exp(np.minimum(0.0, 1 - reference / np.maximum(length, 1)))
    return np.where(matches.any(-1), 100 * brevity * np.exp(logs / orders), 0.0)


def resampled_sums(
    rows: NDArray[np.int64],
    groups: NDArray[np.int64],
    number: int,
    samples: int = INTERVAL_SAMPLES,
    seed: int = SEED,
) -> Floats:
    """Statistics (sentences, K) added up by group (numbers from 0 to `number` - 1) in test sets of as many
    sentences, drawn with replacement: (samples, number, K).

    The same seed draws the same sentences for every system.
    """
    size = len(rows)
    found = np.empty((samples, number, rows.shape[1]))
    rng, block = np.random.default_rng(seed), max(1, DRAWN_AT_ONCE // max(1, size))
    members = [np.flatnonzero(groups == group) for group in range(number)]
    for start in range(0, samples, block):
        stop = min(samples, start + block)
        drawn = rng.integers(0, size, (stop - start, size))
        places = (drawn + size * np.arange(stop - start)[:, None]).ravel()
        times = np.bincount(places, minlength=(stop - start) * size).reshape(-1, size).astype(np.float64)
        for group, inside in enumerate(members):
            found[start:stop, group] = times[:, inside] @ rows[inside]
    return found


def interval_of(values: Floats) -> list[Interval]:
    """The middle 95% of the samples (samples, points), for each point."""
    low, high = np.percentile(values, [50 - LEVEL / 2, 50 + LEVEL / 2], axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def bucket_intervals(
    statistics: BleuStatistics,
    keys: Sequence[int],
    buckets: Sequence[Bucket],
    samples: int = INTERVAL_SAMPLES,
) -> list[Interval]:
    """The 95% interval of each bucket's BLEU; `keys` has a number for each sentence."""
    if not buckets:
        return []
    present, groups = np.unique(np.asarray(keys), return_inverse=True)
    sums = resampled_sums(statistics.rows, groups, len(present), samples).cumsum(1)
    upto = np.concatenate([np.zeros_like(sums[:, :1]), sums], 1)
    first = np.searchsorted(present, [bucket.first for bucket in buckets], "left")
    last = np.searchsorted(present, [bucket.last for bucket in buckets], "right")
    return interval_of(bleu_of(upto[:, last] - upto[:, first]))


def intervals(
    rows: NDArray[np.int64], score: Callable[[Floats], Floats], samples: int = INTERVAL_SAMPLES
) -> list[Interval]:
    """The 95% interval of each score that `score` makes of sums of statistics: (samples, ...) in, (samples,
    points) out. `rows` (sentences, ...) has the statistics of each sentence."""
    size = len(rows)
    sums = resampled_sums(rows.reshape(size, -1), np.zeros(size, np.int64), 1, samples)
    return interval_of(score(sums.reshape(-1, *rows.shape[1:])))


# ---- significance ------------------------------------------------------------------------------------------
# Are two systems different? Paired bootstrap resampling (Koehn 2004) by sacreBLEU, which draws the same
# sentences for all systems.


SAMPLES = 1000


@dataclass
class BootstrapScores:
    """One system's scores, 0 to 100, and how they compare with the baseline's."""

    name: str
    bleu: float
    mean: float  # BLEU, averaged over the samples
    interval: float  # half the width of BLEU's 95% confidence interval around `mean`
    p: float | None  # chance of such a difference in BLEU if there were none; None for the baseline
    chrf: float
    chrf_p: float | None  # the same for chrF


def paired_bootstrap(
    names: Sequence[str],
    systems: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    tokenize: str = "13a",
    samples: int = SAMPLES,
    lowercase: bool = False,
) -> tuple[list[BootstrapScores], list[str]]:
    """Compare systems with the first one, the baseline; also returns the signatures of BLEU and chrF.

    `systems` and `references` are lists of lines; `lowercase` compares without regard to case. Every call
    draws the same samples (sacreBLEU's seed).
    ConfigError for an unknown tokenizer; DataError for a system whose output equals the baseline's, which
    sacreBLEU cannot test; TypeError for a str instead of a list.
    """
    check_texts(systems, "systems")
    check_texts(references, "references")
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it logs each step of its work
    for name, system in zip(names[1:], systems[1:], strict=True):
        if list(system) == list(systems[0]):
            raise DataError(f"{name}: the same output as {names[0]}; there is nothing to compare")
    check_tokenizer(tokenize)
    metrics = {
        "BLEU": BLEU(tokenize=tokenize, lowercase=lowercase),
        "chrF2": CHRF(lowercase=lowercase),
    }
    test = PairedTest(list(zip(names, systems, strict=True)), metrics, list(references), "bs", samples)
    signatures, scores = test()
    bleu, chrf = (
        [result for result in scores[name] if not isinstance(result, str)] for name in ("BLEU", "chrF2")
    )
    found = [
        BootstrapScores(
            name=name,
            bleu=b.score,
            mean=b.mean or 0.0,
            interval=b.ci or 0.0,
            p=b.p_value,
            chrf=c.score,
            chrf_p=c.p_value,
        )
        for name, b, c in zip(names, bleu, chrf, strict=True)
    ]
    return found, [f"{name}: {signatures[name].format()}" for name in ("BLEU", "chrF2")]


def bootstrap_table(found: Iterable[BootstrapScores]) -> Table:
    columns = {"system": "", "bleu": ".2f", "mean": ".2f", "interval": ".2f", "p": ".4f"}
    return Table(columns | {"chrf": ".2f", "chrf_p": ".4f"}, fields_of(found))


# ---- correlation -------------------------------------------------------------------------------------------
# How two scores of the same items correlate (Fig. 4.3).


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


def correlation_table(names: tuple[str, str], found: Correlation) -> Table:
    columns = {"first": "", "second": "", "pairs": "", "pearson": ".6f", "spearman": ".6f"}
    return Table(columns | {"mean_difference": ".6f"}, [[*names, *values] for values in fields_of([found])])
