"""The HTML of the report's tables and charts: all that the page shows without its script, except sentences.

Whatever comes from texts or names is escaped.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from nmt.analysis.charts import Chart, ChartPoint
from nmt.analysis.differences import NgramDifference
from nmt.analysis.statistics import Interval

NONE = "\u2013"  # stands for a missing value
SECTION = re.compile(r'<section id="([a-z-]+)"\s*>\s*<h2>(.*?)</h2>')  # not a hidden one

Row = Mapping[str, object]


@dataclass(frozen=True)
class Column:
    """A column of a table, with the value under `key` of each row."""

    title: str
    key: str
    digits: int = 0  # of numbers
    best: bool = False  # mark the highest value of each group
    group: str = ""  # rows with the same value under this key are compared; all rows by default


def format_value(value: object, digits: int) -> str:
    """Format a value with so many decimals, and escape it."""
    if value is None:
        return NONE
    return f"{value:,.{digits}f}" if isinstance(value, int | float) else escape(str(value))


def table_html(name: str, caption: str, columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """A table that the script sorts by the values in `data-value`; screen readers get the caption."""
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
    """The head of a column, aligned like its cells: texts left, numbers right."""
    kind = ' class="text"' if any(isinstance(row.get(column.key), str) for row in rows) else ""
    return f'<th scope="col"{kind}>{escape(column.title)}</th>'


def cell_html(column: Column, row: Row, rows: Sequence[Row], first: bool) -> str:
    value = row.get(column.key)
    text = isinstance(value, str)
    kind = "text" if text else "best" if column.best and is_best(column, row, rows) else ""
    attributes = f' class="{kind}"' if kind else ""
    attributes += "" if value is None else f' data-value="{escape(str(value))}"'
    content = f"<bdi>{escape(str(value))}</bdi>" if text else format_value(value, column.digits)
    tag = "th" if first else "td"
    return f"<{tag}{' scope=row' if first else ''}{attributes}>{content}</{tag}>"


def is_best(column: Column, row: Row, rows: Sequence[Row]) -> bool:
    """Does the row have the highest value of its group? No, in a group with fewer than two values."""
    group = [rival for rival in rows if rival.get(column.group) == row.get(column.group)]
    values = [value for rival in group if isinstance(value := rival.get(column.key), int | float)]
    return len(values) > 1 and row.get(column.key) == max(values)


def facts_html(rows: Iterable[tuple[str, str]]) -> str:
    """The list of names and values under the title of a page, without the rows of empty values."""
    entries = "".join(
        f"<div><dt>{escape(name)}</dt><dd dir=auto>{escape(value)}</dd></div>"
        for name, value in rows
        if value
    )
    return f'<dl id="facts">{entries}</dl>'


def contents_html(sections: str) -> str:
    """The table of contents of a page's own sections: those with an id that are not hidden."""
    entries = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in SECTION.findall(sections))
    return f'<nav id="contents" aria-label="Contents"><ul>{entries}</ul></nav>'


def signature_list(signatures: Sequence[str]) -> str:
    """List sacreBLEU's signatures of the scores above."""
    items = "".join(f"<li>{escape(signature)}</li>" for signature in signatures)
    return f'<ul class="note signatures">{items}</ul>'


def systems_table(
    systems: Sequence[Row], name: str = "systems", caption: str = "Scores of the systems"
) -> str:
    """The scores of each system. `name` is the table's id on the page."""
    columns = [
        Column("system", "name"),
        Column("BLEU", "bleu", 2, best=True),
        Column("\u00b1 (95%)", "interval", 2),
        Column("p against the first", "p", 4),
        Column("chrF", "chrf", 2, best=True),
        Column("length ratio", "ratio", 3),
    ]
    return table_html(name, caption, columns, systems)


def subsets_table(subsets: Sequence[Row]) -> str:
    """The scores of each system on each subset."""
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
    """Two tables for each pair of systems, one in each direction."""
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


# ---- charts ------------------------------------------------------------------------------------------------


def figures_html(charts: Sequence[Chart], first: int = 0) -> str:
    """Charts side by side; `first` is the number of the first one on the page."""
    return "".join(figure_html(number, chart) for number, chart in enumerate(charts, first))


def figure_html(number: int, chart: Chart) -> str:
    """A chart: an empty element for the script to draw in, and a table of its numbers."""
    drawn = any(chart.series.values())
    note = chart.note if drawn else f"no point is left: {chart.note}"
    table = chart_numbers(number, chart) if drawn else ""
    return (
        f'<figure><figcaption>{escape(chart.title)}</figcaption><p class="note">{escape(note)}</p>'
        f'<div class="plot" data-chart="{number}"></div>{table}</figure>'
    )


def chart_numbers(number: int, chart: Chart) -> str:
    """The table of a chart's numbers: a row for each x, a column for each system."""
    rows: dict[float, dict[str, object]] = {}
    for name, points in chart.series.items():
        for point in points:
            row = rows.setdefault(point.x, {"at": point_label(chart, point), "count": point.count})
            row[f"of {name}"] = point
    columns: list[tuple[str, Callable[[dict[str, object]], str]]] = [
        (chart.x, lambda row: escape(str(row["at"])))
    ]
    if chart.counted:
        columns.append((chart.counted, lambda row: format_value(row["count"], 0)))
    heads = [escape(title) for title, _ in columns]
    heads += [f"<bdi>{escape(name)}</bdi>, {escape(chart.y)}" for name in chart.series]
    lines = []
    for x in sorted(rows):
        row = rows[x]
        cells = [render(row) for _, render in columns]
        cells += [value_cell(row.get(f"of {name}")) for name in chart.series]
        first, *others = cells
        lines.append(f"<tr><th scope=row>{first}</th>{''.join(f'<td>{cell}</td>' for cell in others)}</tr>")
    head = "".join(f'<th scope="col">{title}</th>' for title in heads)
    label = escape(f"Numbers of the chart {number + 1}: {chart.title}")
    return (
        f'<details><summary>numbers</summary><div class="scroll" role="region" tabindex="0" '
        f'aria-label="{label}"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
        "</div></details>"
    )


def point_label(chart: Chart, point: ChartPoint) -> str:
    """The label of a point's x, with its range if it has one."""
    if chart.labels:
        return chart.labels[int(point.x)]
    return f"{point.x:g} ({point.at})" if point.at else f"{point.x:,.0f}"


def value_cell(point: object) -> str:
    """A value with its interval, or a dash."""
    if not isinstance(point, ChartPoint):
        return NONE
    digits = 0 if isinstance(point.y, int) else 2
    return f"{point.y:,.{digits}f}{interval_html(point.interval)}"


def interval_html(interval: Interval | None) -> str:
    return f' <span class="interval">({interval[0]:.2f}{NONE}{interval[1]:.2f})</span>' if interval else ""
