"""The HTML of the report's tables and charts: all that the page shows without its script, but the sentences.
Whatever comes from texts or names is escaped."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from nmt.analysis.charts import Chart, Point
from nmt.analysis.differences import NgramDifference
from nmt.analysis.statistics import Interval

NONE = "\u2013"  # where there is no value
SECTION = re.compile(r'<section id="([a-z-]+)"\s*>\s*<h2>(.*?)</h2>')  # one that is shown

Row = Mapping[str, object]


@dataclass(frozen=True)
class Column:
    """A column of a table: the value under `key` of each row."""

    title: str
    key: str
    digits: int = 0  # of numbers
    best: bool = False  # the highest value of each group is marked
    group: str = ""  # the key that says which rows are compared; all unless given


def shown(value: object, digits: int) -> str:
    """A value as text."""
    if value is None:
        return NONE
    return f"{value:,.{digits}f}" if isinstance(value, int | float) else escape(str(value))


def table(name: str, caption: str, columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """A table whose columns the script lets readers sort; values are in `data-value`. The caption is for
    those who hear the page."""
    head = "".join(column_head(column, rows) for column in columns)
    lines = [
        [cell(column, row, rows, first=not number) for number, column in enumerate(columns)] for row in rows
    ]
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f'<table id="{name}" class="sortable"><caption class="heard">{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def column_head(column: Column, rows: Sequence[Row]) -> str:
    """The head of a column; it stands where its texts begin or its numbers end."""
    kind = ' class="text"' if any(isinstance(row.get(column.key), str) for row in rows) else ""
    return f'<th scope="col"{kind}>{escape(column.title)}</th>'


def cell(column: Column, row: Row, rows: Sequence[Row], first: bool) -> str:
    value = row.get(column.key)
    text = isinstance(value, str)
    kind = "text" if text else "best" if column.best and is_best(column, row, rows) else ""
    attributes = f' class="{kind}"' if kind else ""
    attributes += "" if value is None else f' data-value="{escape(str(value))}"'
    content = f"<bdi>{escape(str(value))}</bdi>" if text else shown(value, column.digits)
    tag = "th" if first else "td"
    return f"<{tag}{' scope=row' if first else ''}{attributes}>{content}</{tag}>"


def is_best(column: Column, row: Row, rows: Sequence[Row]) -> bool:
    """Has the row the highest value of its group? A group of one row has no best; nor has one without
    values."""
    group = [other for other in rows if other.get(column.group) == row.get(column.group)]
    values = [value for other in group if isinstance(value := other.get(column.key), int | float)]
    return len(values) > 1 and row.get(column.key) == max(values)


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """The list under the title of a page: names with their values. Rows without a value are left out."""
    entries = "".join(
        f"<div><dt>{escape(name)}</dt><dd dir=auto>{escape(value)}</dd></div>"
        for name, value in rows
        if value
    )
    return f'<dl id="facts">{entries}</dl>'


def contents(sections: str) -> str:
    """A table of contents of sections, made by us: those with an id that are shown."""
    entries = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in SECTION.findall(sections))
    return f'<nav id="contents" aria-label="Contents"><ul>{entries}</ul></nav>'


def signature_list(signatures: Sequence[str]) -> str:
    """What the scores above it are, by sacreBLEU."""
    return f'<ul class="note signatures">{"".join(f"<li>{escape(one)}</li>" for one in signatures)}</ul>'


def systems_table(
    systems: Sequence[Row], name: str = "systems", caption: str = "Scores of the systems"
) -> str:
    """The scores of each system. `name` and `caption` are the table's own on the page."""
    columns = [
        Column("system", "name"),
        Column("BLEU", "bleu", 2, best=True),
        Column("\u00b1 (95%)", "interval", 2),
        Column("p against the first", "p", 4),
        Column("chrF", "chrf", 2, best=True),
        Column("length ratio", "ratio", 3),
    ]
    return table(name, caption, columns, systems)


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
    return table("subsets", "Scores on subsets", columns, subsets)


def ngram_tables(found: Iterable[NgramDifference]) -> str:
    """For each pair of systems a table in each direction."""
    pairs: dict[tuple[str, str], list[Row]] = {}
    for one in found:
        pairs.setdefault((one.better, one.worse), []).append(vars(one))
    return "".join(
        f"<div><h3>right in <bdi>{escape(better)}</bdi>, not in <bdi>{escape(worse)}</bdi></h3>"
        + table(
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


def figures(charts: Sequence[Chart], first: int = 0) -> str:
    """Charts one beside the other; `first` is the number of the first one on the page."""
    return "".join(figure(number, chart) for number, chart in enumerate(charts, first))


def figure(number: int, chart: Chart) -> str:
    """A chart: a place for the script to draw in, and its numbers as a table."""
    points = any(chart.series.values())
    note = chart.note if points else f"no point is left: {chart.note}"
    return (
        f'<figure><figcaption>{escape(chart.title)}</figcaption><p class="note">{escape(note)}</p>'
        f'<div class="plot" data-chart="{number}"></div>{numbers(number, chart) if points else ""}</figure>'
    )


def numbers(number: int, chart: Chart) -> str:
    """The table under a chart: a row for each x, a column for each system."""
    rows: dict[float, dict[str, object]] = {}
    for name, points in chart.series.items():
        for point in points:
            row = rows.setdefault(point.x, {"at": place(chart, point), "count": point.count})
            row[f"of {name}"] = point
    columns: list[tuple[str, Callable[[dict[str, object]], str]]] = [
        (chart.x, lambda row: escape(str(row["at"])))
    ]
    if chart.counted:
        columns.append((chart.counted, lambda row: shown(row["count"], 0)))
    heads = [escape(title) for title, _ in columns]
    heads += [f"<bdi>{escape(name)}</bdi>, {escape(chart.y)}" for name in chart.series]
    lines = []
    for x in sorted(rows):
        row = rows[x]
        cells = [make(row) for _, make in columns]
        cells += [value_cell(row.get(f"of {name}")) for name in chart.series]
        first, *others = cells
        lines.append(f"<tr><th scope=row>{first}</th>{''.join(f'<td>{one}</td>' for one in others)}</tr>")
    head = "".join(f'<th scope="col">{title}</th>' for title in heads)
    label = escape(f"Numbers of the chart {number + 1}: {chart.title}")
    return (
        f'<details><summary>numbers</summary><div class="scroll" role="region" tabindex="0" '
        f'aria-label="{label}"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
        "</div></details>"
    )


def place(chart: Chart, point: Point) -> str:
    """What a point stands for."""
    if chart.labels:
        return chart.labels[int(point.x)]
    return f"{point.x:g} ({point.at})" if point.at else f"{point.x:,.0f}"


def value_cell(point: object) -> str:
    """A value with its interval."""
    if not isinstance(point, Point):
        return NONE
    digits = 0 if isinstance(point.y, int) else 2
    return f"{point.y:,.{digits}f}{shown_interval(point.interval)}"


def shown_interval(interval: Interval | None) -> str:
    return f' <span class="interval">({interval[0]:.2f}{NONE}{interval[1]:.2f})</span>' if interval else ""
