"""The charts of the report, as numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nmt.analysis import differences
from nmt.analysis.buckets import Bucket, by_count, curves_of, lengths, sliding
from nmt.analysis.curves import LearningCurve
from nmt.analysis.statistics import Interval, bucket_intervals, intervals
from nmt.analysis.systems import System

HardWords = Mapping[str, Mapping[str, Sequence[int]]]  # kind -> source, reference, both -> by sentence
Learned = Mapping[str, Mapping[str, LearningCurve]]  # run -> kind of curve -> (update, value)

TITLES = {
    "source": "BLEU by source length",
    "reference": "BLEU by reference length",
    "both": "BLEU by length of the longer side",
}


@dataclass
class Point:
    """A point of a curve."""

    x: float
    y: float
    count: int | None = None  # sentences, or words, that it stands on
    interval: Interval | None = None  # 95%
    at: str = ""  # what it stands for, where x alone does not say it: 15 to 24


@dataclass
class Chart:
    """One curve per system."""

    title: str
    x: str  # what the axes are
    y: str
    series: dict[str, list[Point]]
    counted: str = ""  # what `count` counts
    bars: bool = False
    labels: list[str] = field(default_factory=list)  # of x = 0, 1 ... where x is no number
    note: str = ""


def all_charts(
    systems: Sequence[System],
    hard: HardWords,
    counts: Mapping[str, int] | None,
    learned: Learned,
    window: int,
    least: int,
) -> list[Chart]:
    """The charts of the report. `counts`: how often the training text has each word of the target."""
    return [
        *length_charts(systems, window, least),
        *hard_charts(systems, hard, least),
        frequency_chart(systems, counts),
        *difference_charts(systems),
        *learning_charts(learned),
    ]


def length_charts(systems: Sequence[System], window: int, least: int) -> Iterator[Chart]:
    """BLEU by the length of source, reference, and the longer of both."""
    keys = lengths(systems[0].test)
    curves = curves_of(systems, keys, lambda values, system: sliding(values, system, window, least))
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


def hard_charts(systems: Sequence[System], hard: HardWords, least: int) -> Iterator[Chart]:
    """BLEU by the number of hard words of the source, for each kind of them."""
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
    system: System, keys: Sequence[int], buckets: Sequence[Bucket], upto: str = ""
) -> list[Point]:
    found = bucket_intervals(system.bleu_statistics, keys, buckets)
    return [
        Point(
            x=bucket.key,
            y=round(bucket.bleu, 3),
            count=bucket.sentences,
            interval=rounded(interval),
            at=f"{upto}{bucket.last}" if upto else f"{max(0, bucket.first)} to {bucket.last}",
        )
        for bucket, interval in zip(buckets, found, strict=True)
    ]


def rounded(interval: Interval) -> Interval:
    return round(interval[0], 3), round(interval[1], 3)


def frequency_chart(systems: Sequence[System], counts: Mapping[str, int] | None) -> Chart:
    """F1 of words by their frequency in training, or else in the reference."""
    known = differences.reference_counts(systems[0].test) if counts is None else counts
    series, labels = {}, []
    for system in systems:
        statistics = differences.word_statistics(system, known)
        rows = list(differences.accuracies(system.name, statistics))
        used = [
            group
            for group, edge in enumerate(differences.FREQUENCY_EDGES)
            if edge in {row.first for row in rows}
        ]
        labels = [differences.frequency_label(row.first, row.last) for row in rows]
        found = intervals(statistics[:, used], differences.f1_of)
        series[system.name] = [
            Point(x=x, y=round(row.f1, 3), count=row.reference, interval=rounded(interval))
            for x, (row, interval) in enumerate(zip(rows, found, strict=True))
        ]
    where = "the reference" if counts is None else "training"
    return Chart(
        title=f"Accuracy of words by their frequency in {where}",
        x=f"times in {where}",
        y="F1",
        series=series,
        counted="words in the reference",
        labels=labels,
        note="a word is right as often as translation and reference have it",
    )


def difference_charts(systems: Sequence[System]) -> Iterator[Chart]:
    """How many sentences another system translates better or worse than the first one, and how much."""
    first, *others = systems
    for other in others:
        groups = differences.difference_histogram(first, other, "chrf")
        yield Chart(
            title=f"Sentences by difference in chrF: {other.name} minus {first.name}",
            x="chrF points",
            y="sentences",
            series={other.name: [Point(x, y) for x, y in enumerate(groups.values())]},
            bars=True,
            labels=list(groups),
        )


def learning_charts(learned: Learned) -> Iterator[Chart]:
    """Dev cost and dev BLEU by updates, of the runs that measured them."""
    for kind in ("dev cost", "dev BLEU"):
        series = {
            name: [Point(x, y) for x, y in curves[kind] if np.isfinite(y)]
            for name, curves in learned.items()
            if curves[kind]
        }
        if series:
            yield Chart(title=f"Learning curves: {kind}", x="updates", y=kind, series=series)
