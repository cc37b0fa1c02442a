"""The charts and tables of the report: their numbers, and the HTML that shows them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from nmt.analysis import differences
from nmt.analysis.buckets import WINDOW, Bucket, by_count, by_length, lengths
from nmt.analysis.curves import LearningCurve
from nmt.analysis.differences import NgramDifference
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
    """A point of a curve, or the end of a bar."""

    x: float
    y: float
    count: int | None = None  # sentences or words that y was computed from
    interval: Interval | None = None  # 95%
    at: str = ""  # the range of x, such as "15 to 24"; empty for a single value


@dataclass
class Chart:
    """A chart with a curve, or a series of bars, for each system."""

    title: str
    x: str  # label of the x axis
    y: str  # label of the y axis
    series: dict[str, list[ChartPoint]]  # by system
    counted: str = ""  # the unit of `ChartPoint.count`
    bars: bool = False
    labels: list[str] = field(default_factory=list)  # names of x = 0, 1 ... where x is an index
    note: str = ""


def all_charts(
    systems: Sequence[SystemOutput],
    hard: HardWordCounts,
    counts: Mapping[str, int] | None,
    curves: RunCurves,
    least: int,
) -> list[Chart]:
    """Compute the charts of the report. `hard`: the counts of hard words by kind, side and sentence;
    `counts`: how often the training text has each word of the target, None if it is unknown; `curves`: the
    learning curves of runs; `least`: fewest sentences of a point."""
    return [
        *length_charts(systems, WINDOW, least),
        *hard_charts(systems, hard, least),
        frequency_chart(systems, counts),
        *difference_charts(systems),
        *learning_charts(curves),
    ]


def length_charts(systems: Sequence[SystemOutput], window: int, least: int) -> Iterator[Chart]:
    """Compute the charts of BLEU by length of the source, of the reference, and of the longer one. A point
    has the sentences of `window` lengths, if these are at least `least`."""
    keys = lengths(systems[0].test)
    curves = by_length(systems, window, least)
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
    """Compute a chart of BLEU by the number of hard words in the source for each kind of hard words. Points
    of fewer than `least` sentences are left out."""
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
    """Turn buckets into points of BLEU with 95% confidence intervals. `keys`: the number of each sentence by
    which the buckets were made.

    With a `prefix`, the range of a point reads as the prefix and the bucket's last key.
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
    """Compute the chart of F1 by word frequency, in training or, if `counts` is None, in the reference."""
    frequencies = differences.reference_counts(systems[0].test) if counts is None else counts
    series, labels = {}, []
    for system in systems:
        statistics = differences.word_statistics(system, frequencies)
        rows = list(differences.group_accuracies(system.name, statistics))
        used = [differences.FREQUENCY_EDGES.index(row.first) for row in rows]
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
        note="each word counts as correct as often as it occurs in both translation and reference",
    )


def difference_charts(systems: Sequence[SystemOutput]) -> Iterator[Chart]:
    """Compute, for each further system, the histogram of its sentences' score differences from the first."""
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
    """Compute the charts of dev cost and dev BLEU by update, for the runs that measured them."""
    for kind in ("dev cost", "dev BLEU"):
        series = {
            name: [ChartPoint(x, y) for x, y in curves[kind] if np.isfinite(y)]
            for name, curves in run_curves.items()
            if curves[kind]
        }
        if series:
            yield Chart(title=f"Learning curves: {kind}", x="updates", y=kind, series=series)


# ---- HTML --------------------------------------------------------------------------------------------------
# What the page shows without its script, except the sentences. All texts and names are escaped.


EN_DASH = "\u2013"  # between the ends of an interval, and for a missing value
SECTION = re.compile(r'<section id="([a-z-]+)"\s*>\s*<h2>(.*?)</h2>')  # hidden sections do not match

Row = Mapping[str, object]


@dataclass(frozen=True)
class Column:
    """A column of a table, which shows the value of each row under `key`."""

    title: str
    key: str
    digits: int = 0  # decimals of numbers
    best: bool = False  # mark the highest value of each group
    group: str = ""  # rows with the same value under this key are compared; all rows by default


def format_value(value: object, digits: int) -> str:
    """Format a number with `digits` decimals; escape any other value."""
    if value is None:
        return EN_DASH
    return f"{value:,.{digits}f}" if isinstance(value, int | float) else escape(str(value))


def table_html(name: str, caption: str, columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """Render a table with the id `name`. The script sorts it by the values in `data-value`; only screen
    readers present the caption."""
    head = "".join(head_html(column, rows) for column in columns)
    lines = [
        [cell_html(column, row, rows, first=not number) for number, column in enumerate(columns)]
        for row in rows
    ]
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f'<table id="{name}" class="sortable"><caption class="heard">{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def head_html(column: Column, rows: Sequence[Row]) -> str:
    """Render the header of a column, aligned like its cells: text to the left, numbers to the right."""
    kind = ' class="text"' if any(isinstance(row.get(column.key), str) for row in rows) else ""
    return f'<th scope="col"{kind}>{escape(column.title)}</th>'


def cell_html(column: Column, row: Row, rows: Sequence[Row], first: bool) -> str:
    """Render the cell of a row in a column, as a header of its row if it is the `first` of the row."""
    value = row.get(column.key)
    text = isinstance(value, str)
    kind = "text" if text else "best" if column.best and is_best(column, row, rows) else ""
    attributes = f' class="{kind}"' if kind else ""
    attributes += "" if value is None else f' data-value="{escape(str(value))}"'
    content = f"<bdi>{escape(str(value))}</bdi>" if text else format_value(value, column.digits)
    tag = "th" if first else "td"
    return f"<{tag}{' scope=row' if first else ''}{attributes}>{content}</{tag}>"


def is_best(column: Column, row: Row, rows: Sequence[Row]) -> bool:
    """Whether the row has the highest value of its group. False in a group with fewer than two values."""
    group = [rival for rival in rows if rival.get(column.group) == row.get(column.group)]
    values = [value for rival in group if isinstance(value := rival.get(column.key), int | float)]
    return len(values) > 1 and row.get(column.key) == max(values)


def facts_html(rows: Iterable[tuple[str, str]]) -> str:
    """Render the list of names and values under the title of a page, leaving out empty values."""
    entries = "".join(
        f"<div><dt>{escape(name)}</dt><dd dir=auto>{escape(value)}</dd></div>"
        for name, value in rows
        if value
    )
    return f'<dl id="facts">{entries}</dl>'


def contents_html(sections: str) -> str:
    """Render the table of contents of the sections that have an id and are not hidden."""
    entries = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in SECTION.findall(sections))
    return f'<nav id="contents" aria-label="Contents"><ul>{entries}</ul></nav>'


def signature_list(signatures: Sequence[str]) -> str:
    """Render the list of sacreBLEU's signatures for the scores above it."""
    items = "".join(f"<li>{escape(signature)}</li>" for signature in signatures)
    return f'<ul class="note signatures">{items}</ul>'


def systems_table(systems: Sequence[Row]) -> str:
    """Render the table of the systems' scores. `systems`: see `ReportData.systems`."""
    columns = [
        Column("system", "name"),
        Column("BLEU", "bleu", 2, best=True),
        Column("\u00b1 (95%)", "interval", 2),
        Column("p against the first", "p", 4),
        Column("chrF", "chrf", 2, best=True),
        Column("length ratio", "ratio", 3),
    ]
    return table_html("systems", "Scores of the systems", columns, systems)


def subsets_table(subsets: Sequence[Row]) -> str:
    columns = [
        Column("subset", "subset"),
        Column("system", "system"),
        Column("sentences", "sentences"),
        Column("BLEU", "bleu", 2, best=True, group="subset"),
        Column("chrF", "chrf", 2, best=True, group="subset"),
        Column("length ratio", "ratio", 3),
    ]
    return table_html("subsets", "Scores on subsets", columns, subsets)


def ngram_tables(differences: Iterable[NgramDifference]) -> str:
    """Render two tables for each pair of systems, one in each direction."""
    pairs: dict[tuple[str, str], list[Row]] = {}
    for difference in differences:
        pairs.setdefault((difference.better, difference.worse), []).append(vars(difference))
    return "".join(
        f"<div><h3>right in <bdi>{escape(better)}</bdi>, not in <bdi>{escape(worse)}</bdi></h3>"
        + table_html(
            f"ngrams-{number}",
            f"N-grams right in {better}, not in {worse}",
            [
                Column("n-gram", "ngram"),
                Column("references", "reference"),
                Column(better, "matches"),
                Column(worse, "others"),
            ],
            rows,
        )
        + "</div>"
        for number, ((better, worse), rows) in enumerate(pairs.items())
    )


def figures_html(charts: Sequence[Chart], first: int = 0) -> str:
    """Render charts; `first` is the number of the first one on the page."""
    return "".join(figure_html(number, chart) for number, chart in enumerate(charts, first))


def figure_html(number: int, chart: Chart) -> str:
    """Render a chart: an empty element in which the script draws, and a table of its numbers."""
    drawn = any(chart.series.values())
    note = chart.note if drawn else f"no points to show: {chart.note}"
    table = chart_numbers(number, chart) if drawn else ""
    return (
        f'<figure><figcaption>{escape(chart.title)}</figcaption><p class="note">{escape(note)}</p>'
        f'<div class="plot" data-chart="{number}"></div>{table}</figure>'
    )


def chart_numbers(number: int, chart: Chart) -> str:
    """Render a chart's numbers: a row for each x, with what was counted there, a column for each system."""
    rows: dict[float, dict[str, ChartPoint]] = {}  # x -> system -> point
    for name, points in chart.series.items():
        for point in points:
            rows.setdefault(point.x, {})[name] = point
    heads = [escape(chart.x), *([escape(chart.counted)] if chart.counted else [])]
    heads += [f"<bdi>{escape(name)}</bdi>, {escape(chart.y)}" for name in chart.series]
    lines = []
    for _, row in sorted(rows.items()):
        first = next(iter(row.values()))
        cells = [format_value(first.count, 0)] if chart.counted else []
        cells += [value_cell(row.get(name)) for name in chart.series]
        label = escape(point_label(chart, first))
        lines.append(f"<tr><th scope=row>{label}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = "".join(f'<th scope="col">{title}</th>' for title in heads)
    title = escape(f"Numbers of the chart {number + 1}: {chart.title}")
    return (
        f'<details><summary>numbers</summary><div class="scroll" role="region" tabindex="0" '
        f'aria-label="{title}"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
        "</div></details>"
    )


def point_label(chart: Chart, point: ChartPoint) -> str:
    """The label of a point's x, with its range if it has one."""
    if chart.labels:
        return chart.labels[int(point.x)]
    return f"{point.x:g} ({point.at})" if point.at else f"{point.x:,.0f}"


def value_cell(point: ChartPoint | None) -> str:
    """Render the value of a point with its interval; a dash if there is no point."""
    if point is None:
        return EN_DASH
    value = f"{point.y:,.{0 if isinstance(point.y, int) else 2}f}"
    if point.interval is None:
        return value
    low, high = point.interval
    return f'{value} <span class="interval">({low:.2f}{EN_DASH}{high:.2f})</span>'
