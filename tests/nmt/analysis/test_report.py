"""The report, its charts and its HTML; figures."""

import json
import os
import re
from argparse import Namespace
from io import BytesIO, TextIOWrapper
from pathlib import Path
from xml.etree import ElementTree

import pytest

from nmt.analysis import plots, report
from nmt.analysis.buckets import Bucket, plot_buckets
from nmt.analysis.charts import (
    Chart,
    ChartPoint,
    all_charts,
    figure_html,
    frequency_chart,
    hard_charts,
    learning_charts,
    length_charts,
    ngram_tables,
    subsets_table,
    systems_table,
)
from nmt.analysis.differences import NgramDifference
from nmt.analysis.systems import SystemOutput, TestSet
from nmt.errors import UserError

# ---- report ------------------------------------------------------------------------------------------------


def test_what_the_page_shows_is_not_expanded() -> None:
    """A title or a sentence may look like a mark of the template."""
    row: dict[str, object] = {"source": "a {{script}} {{data}} </script>", "hypotheses": ["{{title}}"]}
    page = report.report_html(report.ReportData("{{data}} <b>", [], [], 1, rows=[row]))
    assert "<title>{{data}} &lt;b&gt;</title>" in page
    assert page.count("{{script}} {{data}}") == 1 and page.count('"{{title}}"') == 1
    assert (
        page.count("</script>") == 2 and "\\u003c/script>" in page
    )  # the template's own, and one that ends nothing


def test_what_the_script_reads() -> None:
    """Case and tokenization of the words that it compares are those of the scores."""
    test = TestSet(["a b", "c"], [["A b", "c"]], tokenize="none", lowercase=True)
    systems = [SystemOutput("one", ["a b", "c"], test), SystemOutput("two", ["x", "c"], test)]
    hard = {"unseen": {"source": [1, 0], "reference": [2, 0], "both": [2, 0]}}
    data = report.collect_report(systems, hard, {"a": 1}, {}, report.ReportConfig(samples=5, least=1))
    read = json.loads(report.report_html(data).split('id="data">')[1].split("</script>")[0])
    assert (read["systems"], read["kinds"]) == (["one", "two"], ["unseen"])
    assert read["lowercase"] is read["tokenized"] is True
    assert [(row["line"], row["hard"], row["chrf"], row["bleu"][0]) for row in read["rows"]] == [
        (1, [2], [100, 0], 100), (2, [0], [100, 100], 100),
    ]  # fmt: skip
    titles = [chart["title"] for chart in read["charts"]]
    assert "BLEU by unseen words of the source" in titles
    assert read["charts"][0]["series"][0]["points"][0][2:] == [2, 0, 0, "0 to 5"]


def test_the_date_is_that_of_the_newest_file(tmp_path: Path) -> None:
    """So the same files give the same report on any day."""
    for name, seconds in (("old", 86400), ("new", 3 * 86400 + 5)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (seconds, seconds))
    assert (
        report.newest_date([tmp_path / "new", tmp_path / "old", "-"]) == "1970-01-04"
        and report.newest_date(["-"]) == ""
    )


def test_without_outputs_a_reference_can_be_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was read as an output, too."""
    (tmp_path / "s").write_text("a\n")
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"b\n")))
    args = Namespace(source=f"{tmp_path}/s", reference=["-"], bleu_tokenize="none", lowercase=False)
    test, outputs = report.read_outputs(args, {})
    assert (test.sources, test.references, outputs) == (["a"], [["b"]], {})


def test_the_head_leaves_out_what_is_not_known() -> None:
    about = [("beam", "<5>"), ("date", "")]
    page = report.report_html(report.ReportData("it", [], [], 1, about=about))
    assert "<dt>beam</dt>" in page and "&lt;5&gt;" in page and "<dt>date</dt>" not in page


def test_one_system_has_an_interval_and_no_ngrams() -> None:
    lines = ["a b c d", "a b c x"] * 4
    test = TestSet(lines, [["a b c d"] * 8])
    data = report.collect_report(
        [SystemOutput("it", lines, test)], {}, None, {}, report.ReportConfig(samples=50)
    )
    (row,) = data.systems
    assert isinstance(row["interval"], float) and row["interval"] > 1 and data.ngrams == []
    page = report.report_html(data)
    assert 'id="ngram-section" hidden' in page and 'id="subset-section" hidden' in page


# ---- charts ------------------------------------------------------------------------------------------------
# The charts of the report.


LINES = [" ".join("abcdefgh"[: number % 8 + 1]) for number in range(40)] + [" ".join("a" * 30)]
TEST = TestSet(LINES, [LINES], tokenize="none")
FIRST = SystemOutput("first", LINES, TEST)
SECOND = SystemOutput("second", [line[:-2] for line in LINES], TEST)


def test_points_stand_on_enough_sentences() -> None:
    """The one long sentence makes no point at the end of the curve."""
    (chart, *_) = length_charts([FIRST, SECOND], window=4, least=5)
    points = chart.series["first"]
    assert all(point.count is not None and point.count >= 5 for point in points)
    assert max(point.x for point in points) < 12 and points[-1].at.endswith(" to 11")
    for point in chart.series["second"]:
        assert point.interval and point.interval[0] <= point.y <= point.interval[1]


def test_one_chart_for_each_kind_of_hard_words() -> None:
    counts = {"source": [n % 3 for n in range(41)], "reference": [0] * 41, "both": [0] * 41}
    (chart,) = hard_charts([FIRST], {"unseen": counts}, least=1)
    assert chart.title == "BLEU by unseen words of the source"
    assert [(point.x, point.count, point.at) for point in chart.series["first"]] == [
        (0, 14, "0 to 0"), (1, 28, "0 to 1"), (2, 41, "0 to 2"),
    ]  # fmt: skip


def test_words_by_frequency() -> None:
    chart = frequency_chart([FIRST, SECOND], {"a": 2000, "b": 7})
    assert chart.labels == ["0", "5-9", "1000+"] and "training" in chart.title
    assert {point.y for point in chart.series["first"]} == {100}
    assert all(point.interval == (100, 100) for point in chart.series["first"])
    assert "the reference" in frequency_chart([FIRST], None).title


def test_learning_curves_have_no_gaps() -> None:
    curves = {"run": {"train cost": [], "dev cost": [(1.0, 2.0), (2.0, float("nan"))], "dev BLEU": []}}
    (chart,) = learning_charts(curves)
    assert chart.title == "Learning curves: dev cost" and len(chart.series["run"]) == 1


def test_one_histogram_for_each_other_system() -> None:
    titles = [chart.title for chart in all_charts([FIRST, SECOND], {}, None, {}, 5)]
    assert titles[-1] == "Sentences by difference in chrF: second minus first" and len(titles) == 5
    assert len(all_charts([FIRST], {}, None, {}, 5)) == 4


# ---- markup ------------------------------------------------------------------------------------------------
# The HTML of tables and charts.


NASTY = '<b onclick="x">&</script>'


def cells(html: str) -> list[str]:
    return [re.sub("<.*?>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", html)]


def test_an_empty_subset_is_never_the_best() -> None:
    rows = [
        {"subset": name, "system": system, "sentences": n, "bleu": bleu, "chrf": bleu, "ratio": bleu}
        for name, n, values in (("all", 9, (3.0, 4.0)), ("none", 0, (None, None)))
        for system, bleu in zip(("one", "two"), values, strict=True)
    ]
    html = subsets_table(rows)
    assert cells(html)[-6:] == ["none", "two", "0", "\u2013", "\u2013", "\u2013"]
    assert re.findall(r'class="best"[^>]*>([^<]*)', html) == ["4.00", "4.00"]


def test_one_system_has_no_best() -> None:
    row = {"name": NASTY, "bleu": 5.0, "chrf": 6.0, "ratio": 1.0}
    assert "best" not in systems_table([row]) and NASTY not in systems_table([row])
    assert systems_table([row, {**row, "bleu": 4.0}]).count('class="best"') == 3  # equal chrF: both


def test_texts_and_names_are_escaped() -> None:
    chart = Chart(NASTY, NASTY, NASTY, {NASTY: [ChartPoint(0, 1)]}, labels=[NASTY], note=NASTY, counted=NASTY)
    found = NgramDifference(NASTY, NASTY, NASTY, 1, 1, 1, 0, 0.7)
    for html in (figure_html(0, chart), ngram_tables([found])):
        assert "<b" not in html.replace("<bdi>", "") and 'onclick="' not in html and "</script" not in html


def test_a_chart_has_its_numbers_below() -> None:
    points = [
        ChartPoint(7, 50.123, 20, (40.0, 60.0), "2 to 11"),
        ChartPoint(8, 51.0, 30, (41.0, 61.0), "3 to 12"),
    ]
    chart = Chart("BLEU", "words", "BLEU", {"one": points, "two": points[1:]}, counted="sentences")
    assert cells(figure_html(3, chart)) == [
        "words", "sentences", "one, BLEU", "two, BLEU",
        "7 (2 to 11)", "20", "50.12 (40.00\u201360.00)", "\u2013",
        "8 (3 to 12)", "30", "51.00 (41.00\u201361.00)", "51.00 (41.00\u201361.00)",
    ]  # fmt: skip
    assert 'data-chart="3"' in figure_html(3, chart)
    assert "no points to show" in figure_html(
        0, Chart("BLEU", "words", "BLEU", {"one": []}, note="at least 20")
    )


# ---- plots -------------------------------------------------------------------------------------------------
# Figures: the same data give the same file, and their texts are what they were.


BUCKETS = [Bucket(key=n, first=n, last=n, sentences=n, bleu=10.0 * n, ratio=1, chrf=1) for n in (1, 2)]


@pytest.mark.ci
def test_a_figure_keeps_its_texts_and_is_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        paths = [folder / "x.svg", folder / "x.png"]
        curves = {"source": BUCKETS, "both": BUCKETS}
        plot_buckets(curves, {"both": "the longer side"}, "x", "title & <odd> $5", paths)
    assert (tmp_path / "a" / "x.svg").read_bytes() == (tmp_path / "b" / "x.svg").read_bytes()
    text = " ".join(ElementTree.parse(tmp_path / "a" / "x.svg").getroot().itertext())
    assert "title & <odd> $5" in text and "source" in text and "the longer side" in text
    assert (tmp_path / "a" / "x.png").read_bytes().startswith(b"\x89PNG")


def test_references_without_words() -> None:
    """No group of words by frequency has any: that chart is empty."""
    system = SystemOutput("one", ["a"], TestSet(["x"], [[""]]))
    assert frequency_chart([system], None).series == {"one": []}
    page = report.report_html(report.collect_report([system], {}, None, {}, report.ReportConfig(samples=1)))
    assert "no points to show: each word counts" in page


def test_a_figure_is_png_or_svg(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure, _ = plots.pyplot().subplots()
    for name in ("curves", "curves.xyz"):
        with pytest.raises(UserError, match=r"end in \.png or \.svg"):
            plots.save_figure(figure, [tmp_path / name])
    assert not list(tmp_path.iterdir())
    plots.save_figure(figure, [])


def test_labels_are_printable_and_short() -> None:
    assert plots.printable("a\tb\x07") == r"a\tb\x07"
    assert plots.printable("x" * 999) == "x" * plots.MAX_LABEL + "..."
    assert plots.label_text("$5") == r"\$5"


def test_points_are_split_into_coordinates() -> None:
    assert plots.split_points([(1, 2), (3, 4)]) == ([1, 3], [2, 4])
