"""The numbers of the report's charts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nmt.analysis import differences
from nmt.analysis.buckets import Bucket, by_count, group_systems, lengths, sliding_buckets
from nmt.analysis.curves import LearningCurve
from nmt.analysis.statistics import Interval, bootstrap_intervals, bucket_intervals
from nmt.analysis.systems import SystemOutput

HardWordCounts = Mapping[str, Mapping[str, Sequence[int]]]  # kind -> source, reference, both -> by sentence
RunCurves = Mapping[str, Mapping[str, LearningCurve]]  # run -> kind of curve -> (update, value)

TITLES = {
    "source": "BLEU by source length",
    "reference": "BLEU by reference length",
    "both": "BLEU by length of the longer side",
}


@dataclass
class ChartPoint:
    x: float
    y: float
    count: int | None = None  # sentences or words that y was computed from
    interval: Interval | None = None  # 95%
    at: str = ""  # range of x, unless it is a single value: 15 to 24


@dataclass
class Chart:
    """A curve or a row of bars for each system."""

    title: str
    x: str  # label of the axis
    y: str
    series: dict[str, list[ChartPoint]]  # by system
    counted: str = ""  # the unit of `ChartPoint.count`
    bars: bool = False
    labels: list[str] = field(default_factory=list)  # of x = 0, 1 ... if x is an index
    note: str = ""


def all_charts(
    systems: Sequence[SystemOutput],
    hard: HardWordCounts,
    counts: Mapping[str, int] | None,
    curves: RunCurves,
    window: int,
    least: int,
) -> list[Chart]:
    """Compute the charts of the report. `counts`: how often the training text has each word of the target."""
    return [
        *length_charts(systems, window, least),
        *hard_charts(systems, hard, least),
        frequency_chart(systems, counts),
        *difference_charts(systems),
        *learning_charts(curves),
    ]


def length_charts(systems: Sequence[SystemOutput], window: int, least: int) -> Iterator[Chart]:
    """Compute BLEU by the length of source, of reference, and of the longer one."""
    keys = lengths(systems[0].test)
    curves = group_systems(
        systems, keys, lambda values, system: sliding_buckets(values, system, window, least)
    )
    for side, title in TITLES.items():
        yield Chart(
            title=title,
            x="words",
            y="BLEU",
            series={
                system.name: bucket_points(system, keys[side], curves[system.name][side])
                for system in systems
            },
            counted="sentences",
            note=f"each point: {window} neighboring lengths, at least {least} sentences",
        )


def hard_charts(systems: Sequence[SystemOutput], hard: HardWordCounts, least: int) -> Iterator[Chart]:
    """Compute BLEU by the number of hard words of the source, for each kind of them."""
    for kind, counts in hard.items():
        curves = by_count(systems, {"source": counts["source"]}, least)
        yield Chart(
            title=f"BLEU by {kind} words of the source",
            x="at most this many",
            y="BLEU",
            series={
                system.name: bucket_points(system, counts["source"], curves[system.name]["source"], "0 to ")
                for system in systems
            },
            counted="sentences",
            note=f"each point: all sentences with at most that many, at least {least} sentences",
        )


def bucket_points(
    system: SystemOutput, keys: Sequence[int], buckets: Sequence[Bucket], prefix: str = ""
) -> list[ChartPoint]:
    """The points of buckets with their intervals.

    With a `prefix`, the range of a point is the prefix and the bucket's last key.
    """
    bounds = bucket_intervals(system.bleu_statistics, keys, buckets)
    return [
        ChartPoint(
            x=bucket.key,
            y=round(bucket.bleu, 3),
            count=bucket.sentences,
            interval=round_interval(interval),
            at=f"{prefix}{bucket.last}" if prefix else f"{max(0, bucket.first)} to {bucket.last}",
        )
        for bucket, interval in zip(buckets, bounds, strict=True)
    ]


def round_interval(interval: Interval) -> Interval:
    return round(interval[0], 3), round(interval[1], 3)


def frequency_chart(systems: Sequence[SystemOutput], counts: Mapping[str, int] | None) -> Chart:
    """Compute F1 of words by their frequency in training, or in the reference if `counts` is None."""
    frequencies = differences.reference_counts(systems[0].test) if counts is None else counts
    series, labels = {}, []
    for system in systems:
        statistics = differences.word_statistics(system, frequencies)
        rows = list(differences.group_accuracies(system.name, statistics))
        used = [
            group
            for group, edge in enumerate(differences.FREQUENCY_EDGES)
            if edge in {row.first for row in rows}
        ]
        labels = [differences.frequency_label(row.first, row.last) for row in rows]
        bounds = bootstrap_intervals(statistics[:, used], differences.f1_scores)
        series[system.name] = [
            ChartPoint(x=x, y=round(row.f1, 3), count=row.reference, interval=round_interval(interval))
            for x, (row, interval) in enumerate(zip(rows, bounds, strict=True))
        ]
    text = "the reference" if counts is None else "training"
    return Chart(
        title=f"Accuracy of words by their frequency in {text}",
        x=f"times in {text}",
        y="F1",
        series=series,
        counted="words in the reference",
        labels=labels,
        note="a word is right as often as translation and reference have it",
    )


def difference_charts(systems: Sequence[SystemOutput]) -> Iterator[Chart]:
    """Count the sentences that each further system translates better or worse than the first, by how much."""
    first, *others = systems
    for system in others:
        groups = differences.difference_histogram(first, system, "chrf")
        yield Chart(
            title=f"Sentences by difference in chrF: {system.name} minus {first.name}",
            x="chrF points",
            y="sentences",
            series={system.name: [ChartPoint(x, y) for x, y in enumerate(groups.values())]},
            bars=True,
            labels=list(groups),
        )


def learning_charts(run_curves: RunCurves) -> Iterator[Chart]:
    """Dev cost and dev BLEU by update, of the runs that measured them."""
    for kind in ("dev cost", "dev BLEU"):
        series = {
            name: [ChartPoint(x, y) for x, y in curves[kind] if np.isfinite(y)]
            for name, curves in run_curves.items()
            if curves[kind]
        }
        if series:
            yield Chart(title=f"Learning curves: {kind}", x="updates", y=kind, series=series)
