"""Statistics of scores: confidence intervals, paired bootstrap resampling, correlation."""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest, Result

from nmt.analysis import comet, plots
from nmt.analysis.actions import Findings, ResultTable, add_output, add_title, field_values
from nmt.analysis.buckets import Bucket
from nmt.analysis.systems import (
    SystemOutput,
    add_hypotheses,
    add_names,
    add_references,
    add_source,
    read_systems,
    unique_names,
)
from nmt.cli.arguments import InputPath, integer
from nmt.cli.options import Parser
from nmt.errors import ConfigError, DataError, check_texts
from nmt.io import files, numbers
from nmt.metrics import DEFAULT_TOKENIZER, BleuStatistics, check_lengths, check_tokenizer, ter_scores

# ---- resampling --------------------------------------------------------------------------------------------
# BLEU of many groups of sentences at once, and confidence intervals by bootstrap resampling (Koehn 2004).


INTERVAL_SAMPLES = 1000  # number of resampled test sets
SEED = 1
LEVEL = 95  # percent of the samples inside an interval
DRAWN_AT_ONCE = 1 << 22  # random numbers drawn at a time, which limits memory
Floats = NDArray[np.float64]
Interval = tuple[float, float]  # lower and upper end


def bleu_scores(sums: NDArray[np.generic], effective_order: bool = False) -> Floats:
    """Compute sacreBLEU's BLEU with smoothing `exp`, 0 to 100, from sums of statistics: (..., 10) -> (...)

    The statistics are the matches of n-grams of 1 to 4 words, the numbers of such n-grams in the hypothesis,
    and the lengths of hypothesis and reference in words.

    With `effective_order`, for single sentences, orders without n-grams are left out of the mean.
    """
    numbers = np.asarray(sums, np.float64)
    matches, totals, length, reference = numbers[..., :4], numbers[..., 4:8], numbers[..., 8], numbers[..., 9]
    present = totals > 0
    halved = np.cumsum((matches == 0) & present, -1)  # orders without matches so far, which halve the count
    smoothed = np.where(matches > 0, matches, 0.5**halved) / np.maximum(totals, 1)
    logs = np.where(present, np.log(smoothed), 0.0 if effective_order else -np.inf).sum(-1)
    orders = np.maximum(present.sum(-1), 1) if effective_order else 4
    brevity = np.exp(np.minimum(0.0, 1 - reference / np.maximum(length, 1)))
    return np.where(matches.any(-1), 100 * brevity * np.exp(logs / orders), 0.0)


def resampled_sums(
    rows: NDArray[np.int64] | Floats,
    groups: NDArray[np.int64],
    number: int,
    samples: int = INTERVAL_SAMPLES,
    seed: int = SEED,
) -> Floats:
    """Draw test sets of the same size with replacement, and sum the statistics of each by group.

    `rows` (sentences, K) has the statistics, `groups` (sentences,) the group of each sentence, from 0 to
    `number` - 1. Returns (samples, number, K). The same seed draws the same sentences for every system.
    """
    size = len(rows)
    sums = np.empty((samples, number, rows.shape[1]))
    rng, block = np.random.default_rng(seed), max(1, DRAWN_AT_ONCE // max(1, size))
    members = [np.flatnonzero(groups == group) for group in range(number)]
    for start in range(0, samples, block):
        stop = min(samples, start + block)
        drawn = rng.integers(0, size, (stop - start, size))
        flat = (drawn + size * np.arange(stop - start)[:, None]).ravel()
        counts = np.bincount(flat, minlength=(stop - start) * size).reshape(-1, size).astype(np.float64)
        for group, inside in enumerate(members):
            sums[start:stop, group] = counts[:, inside] @ rows[inside]
    return sums


def percentile_intervals(values: Floats) -> list[Interval]:
    """The interval of the middle 95% of the samples of each point: (samples, points) -> one per point."""
    low, high = np.percentile(values, [50 - LEVEL / 2, 50 + LEVEL / 2], axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def bucket_intervals(
    statistics: BleuStatistics,
    keys: Sequence[int],
    buckets: Sequence[Bucket],
    samples: int = INTERVAL_SAMPLES,
) -> list[Interval]:
    """Compute the 95% confidence interval of each bucket's BLEU by bootstrap resampling. `keys`: the number
    of each sentence by which the buckets were made."""
    if not buckets:
        return []
    present, groups = np.unique(np.asarray(keys), return_inverse=True)
    sums = resampled_sums(statistics.rows, groups, len(present), samples).cumsum(1)
    cumulative = np.concatenate([np.zeros_like(sums[:, :1]), sums], 1)
    first = np.searchsorted(present, [bucket.first for bucket in buckets], "left")
    last = np.searchsorted(present, [bucket.last for bucket in buckets], "right")
    return percentile_intervals(bleu_scores(cumulative[:, last] - cumulative[:, first]))


def bootstrap_intervals(
    rows: NDArray[np.int64], score: Callable[[Floats], Floats], samples: int = INTERVAL_SAMPLES
) -> list[Interval]:
    """The 95% confidence interval of each value that `score` computes from sums of statistics.

    `rows` (sentences, ...) has the statistics of each sentence; `score`: (samples, ...) -> (samples, points).
    """
    size = len(rows)
    sums = resampled_sums(rows.reshape(size, -1), np.zeros(size, np.int64), 1, samples)
    return percentile_intervals(score(sums.reshape(samples, *rows.shape[1:])))


# ---- significance ------------------------------------------------------------------------------------------
# Paired bootstrap resampling (Koehn 2004) by sacreBLEU, which draws the same test sets for all systems.


SAMPLES = 1000


@dataclass
class BootstrapScores:
    """One system's scores, 0 to 100, and how they compare with the baseline's."""

    name: str
    bleu: float
    mean: float  # BLEU, averaged over the samples
    interval: float  # half the width of BLEU's 95% confidence interval around `mean`
    p: float | None  # p-value of the difference in BLEU; None for the baseline
    chrf: float
    chrf_p: float | None  # p-value of the difference in chrF


def paired_bootstrap(
    names: Sequence[str],
    systems: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    tokenize: str = DEFAULT_TOKENIZER,
    samples: int = SAMPLES,
    lowercase: bool = False,
) -> tuple[list[BootstrapScores], list[str]]:
    """Test systems against the first one, the baseline; returns scores and the signatures of BLEU and chrF.

    `names`: of the systems; `systems` and `references` are lists of lines; `samples`: number of test sets
    drawn; `lowercase` compares without regard to case. Every call draws the same samples (sacreBLEU's seed),
    and silences sacreBLEU's log.
    ConfigError for an unknown tokenizer, and without samples; DataError if lengths differ, those of `names`
    and `systems`, too, and for a system whose output equals the baseline's, which sacreBLEU cannot test;
    TypeError for a str instead of a list."""
    check_texts(systems, "systems")
    if not len(names) == len(systems) > 0:
        each = numbers.counted(len(names), "name"), numbers.counted(len(systems), "system")
        raise DataError(f"{', '.join(each)}; give each system a name, the baseline first")
    for system in systems:
        check_lengths(system, references)
    for name, system in zip(names[1:], systems[1:], strict=True):
        if list(system) == list(systems[0]):
            raise DataError(f"{name}: the same output as {names[0]}; there is nothing to compare")
    check_tokenizer(tokenize)
    if samples < 1:
        raise ConfigError(f"samples={samples}: expected 1 or more")
    metrics = {
        "BLEU": BLEU(tokenize=tokenize, lowercase=lowercase),
        "chrF2": CHRF(lowercase=lowercase),
    }
    test = PairedTest(list(zip(names, systems, strict=True)), metrics, list(references), "bs", samples)
    signatures, scores = test()
    bleu, chrf = (
        [result for result in scores[name] if not isinstance(result, str)] for name in ("BLEU", "chrF2")
    )
    rows = [
        BootstrapScores(
            name=name,
            bleu=b.score,
            mean=b.mean or 0.0,
            interval=b.ci or 0.0,
            p=corrected_p(b, bleu[0]),
            chrf=c.score,
            chrf_p=corrected_p(c, chrf[0]),
        )
        for name, b, c in zip(names, bleu, chrf, strict=True)
    ]
    return rows, [f"{name}: {signatures[name].format()}" for name in ("BLEU", "chrF2")]


def compare_bleu(systems: Sequence[SystemOutput], samples: int) -> tuple[list[BootstrapScores], list[str]]:
    """Test systems against the first one, the baseline, as `paired_bootstrap` does. They share a test set."""
    test, outputs = systems[0].test, [system.hypotheses for system in systems]
    names = [system.name for system in systems]
    return paired_bootstrap(names, outputs, test.references, test.tokenize, samples, test.lowercase)


def corrected_p(result: Result, baseline: Result) -> float | None:
    """The p-value of a system's difference from the baseline, None for the baseline itself: sacreBLEU's, but
    1 if the scores are equal. Where no sample differs, sacreBLEU gives the smallest p there is."""
    return 1.0 if result.p_value is not None and result.score == baseline.score else result.p_value


# Metrics beside BLEU and chrF, whose score is one sum over the sentences divided by another.
FURTHER_METRICS = ("ter", "comet")
SACREBLEU_SEED = 12345


@dataclass
class FurtherMetric:
    """One system's score in a metric, and how it compares with the baseline's."""

    score: float  # TER in percent, less is better; COMET about 0 to 1
    p: float | None  # p-value of the difference; None for the baseline


def compare_further(
    systems: Sequence[SystemOutput], metric: str, samples: int = SAMPLES
) -> list[FurtherMetric]:
    """Test systems in TER or COMET against the first one, the baseline. `metric`: ter or comet, which every
    system must have been scored with; `samples`: number of test sets drawn, the same for all systems."""
    rows, score = further_statistics(systems, metric)
    return [
        FurtherMetric(
            score=float(score(row.sum(0))),
            p=None if number == 0 else paired_p_value(rows[0], row, score, samples),
        )
        for number, row in enumerate(rows)
    ]


def further_statistics(
    systems: Sequence[SystemOutput], metric: str
) -> tuple[list[Floats], Callable[[Floats], Floats]]:
    """Return each system's statistics, (sentences, 2), and a function that scores sums of them: (..., 2) ->
    (...). ConfigError for COMET that has not been computed."""
    if metric == "ter":
        return [system.ter_statistics.rows for system in systems], ter_scores
    scores = [system.comet_scores() for system in systems]
    rows = [np.stack([values, np.ones_like(values)], 1) for values in scores]
    return rows, lambda sums: sums[..., 0] / sums[..., 1]


def paired_p_value(
    first: Floats, second: Floats, score: Callable[[Floats], Floats], samples: int = SAMPLES
) -> float:
    """Compute the p-value of the difference between two systems by paired bootstrap resampling, as sacreBLEU
    does; see `corrected_p` for equal scores. `first`, `second`: statistics, (sentences, 2); `score`: of their
    sums, (..., 2) -> (...); `samples`: number of test sets drawn, which are the same in each call."""
    difference = np.abs(score(first.sum(0)) - score(second.sum(0)))
    if not difference:
        return 1.0
    rows = np.concatenate([first, second], 1)
    drawn = resampled_sums(rows, np.zeros(len(rows), np.int64), 1, samples, SACREBLEU_SEED)[:, 0]
    differences = np.abs(score(drawn[:, :2]) - score(drawn[:, 2:]))
    return float(((differences - differences.mean() > difference).sum() + 1) / (samples + 1))


# ---- correlation -------------------------------------------------------------------------------------------


@dataclass
class Correlation:
    """Correlation coefficients of two lists of scores."""

    pairs: int  # number of pairs compared
    pearson: float  # correlation of the scores
    spearman: float  # correlation of their ranks
    mean_difference: float  # first minus second


def read_scores(path: str) -> list[float]:
    """Read the first number of each line, such as those of nmt-score. DataError for a line without one."""
    scores = []
    for number, line in enumerate(files.read_lines(path), 1):
        try:
            word = files.split_words(line)[0]
            scores.append(float(word) if numbers.plain(word) else numbers.real(word))  # also inf and nan
        except (ValueError, IndexError) as error:
            raise DataError(
                f"{files.name_of(path)}:{number}: expected a number first, found {line[:40]!r}"
            ) from error
    return scores


def correlate(first: Sequence[float], second: Sequence[float]) -> Correlation:
    """Correlate two scores of the same items, in the same order, leaving out pairs with an infinite score or
    nan.

    Both coefficients are nan if one side is constant. DataError for different numbers of scores, and for
    fewer than two pairs.
    """
    if len(first) != len(second):
        raise DataError(f"scores to correlate: {len(first)} and {len(second)}; give two for each item")
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
    """Pearson's r; nan if one side is constant."""
    if not (np.ptp(a) and np.ptp(b)):  # the variance of equal numbers need not be exactly 0
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank values from 0; equal values get the mean of their ranks."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: NDArray[np.float64] = (ends - counts + ends - 1) / 2
    return means[index]


# ---- actions -----------------------------------------------------------------------------------------------


class CompareAnalysis:
    help = "Paired bootstrap: confidence intervals, and p-values of the differences from a baseline."

    def add_options(self, parser: Parser) -> None:
        add_references(parser)
        parser.add_argument(
            "--baseline",
            type=InputPath,
            required=True,
            metavar="FILE",
            help="output of the system to compare with: text, or an n-best list",
        )
        add_hypotheses(parser, "outputs of the other systems")
        add_names(parser, "names of the systems, the baseline first; default: paths")
        parser.add_argument(
            "--samples",
            type=integer(1, 100_000),
            default=SAMPLES,
            help="samples drawn from the test set",
        )
        parser.add_argument(
            "--metric",
            nargs="+",
            choices=FURTHER_METRICS,
            default=[],
            help="more scores beside BLEU and chrF: TER by sacreBLEU, of which less is better; COMET, which "
            "needs --source and --comet-model",
        )
        add_source(parser, required=False)
        comet.add_model(parser)
        add_output(parser)
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        paths = [args.baseline, *args.hypothesis]
        comet.check(args)
        systems = read_systems(
            args.source, args.reference, paths, args.names or paths, args.bleu_tokenize, args.lowercase
        )
        rows, signatures = compare_bleu(systems, args.samples)
        comet.add_scores(systems, args)
        further = {metric: compare_further(systems, metric, args.samples) for metric in args.metric}
        for metric in further:
            setting = systems[0].ter_statistics.signature if metric == "ter" else args.comet_model
            signatures.append(f"{metric.upper()}: {setting}")

        def draw(figures: Sequence[Path]) -> None:
            short_names = args.names or unique_names(paths)
            labels = [
                name + ("" if row.p is None else f"\np = {row.p:.3f}")
                for name, row in zip(short_names, rows, strict=True)
            ]
            series, errors = {"BLEU": [row.bleu for row in rows]}, {"BLEU": [row.interval for row in rows]}
            title = args.title or f"against {short_names[0]}"
            plots.bars(labels, series, errors, "BLEU, 95% interval", title, figures)

        columns = {"system": "", "bleu": ".2f", "mean": ".2f", "interval": ".2f", "p": ".4f"}
        columns |= {"chrf": ".2f", "chrf_p": ".4f"}
        lines = field_values(rows)
        for metric, results in further.items():
            columns |= {metric: ".2f" if metric == "ter" else ".4f", f"{metric}_p": ".4f"}
            lines = [[*line, result.score, result.p] for line, result in zip(lines, results, strict=True)]
        return Findings(ResultTable(columns, lines), signatures, draw)


class ScoresAnalysis:
    help = "How two scores of the same lines correlate, with a scatter plot."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument(
            "--first",
            type=InputPath,
            required=True,
            metavar="FILE",
            help="one number a line, as nmt-score writes them",
        )
        parser.add_argument(
            "--second", type=InputPath, required=True, metavar="FILE", help="another score of the same lines"
        )
        parser.add_argument("--names", nargs=2, metavar="NAME", help="names of both; default: file names")
        add_output(parser)
        add_title(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        first, second = read_scores(args.first), read_scores(args.second)
        if len(first) != len(second):
            raise files.unequal([args.first, args.second], [len(first), len(second)])
        if not first:
            raise DataError(f"{files.name_of(args.first)}: empty file, expected one number a line")
        x_name, y_name = args.names or (Path(args.first).name, Path(args.second).name)
        result = correlate(first, second)
        title = args.title or f"r = {result.pearson:.3f}"
        columns = {"first": "", "second": "", "pairs": "", "pearson": ".6f", "spearman": ".6f"}
        values = [x_name, y_name, *vars(result).values()]
        return Findings(
            table=ResultTable(columns | {"mean_difference": ".6f"}, [values]),
            summary=[f"Pearson {result.pearson:.4f}, Spearman {result.spearman:.4f}, {result.pairs:,} pairs"],
            draw=lambda paths: plots.scatter(paths, first, second, x_name, y_name, title),
        )
