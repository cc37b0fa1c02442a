"""The charts of the report."""

from nmt.analysis.charts import all_charts, frequency_chart, hard_charts, learning_charts, length_charts
from nmt.analysis.systems import System, TestSet

LINES = [" ".join("abcdefgh"[: number % 8 + 1]) for number in range(40)] + [" ".join("a" * 30)]
TEST = TestSet(LINES, [LINES], tokenize="none")
FIRST = System("first", LINES, TEST)
SECOND = System("second", [line[:-2] for line in LINES], TEST)


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
    titles = [chart.title for chart in all_charts([FIRST, SECOND], {}, None, {}, 10, 5)]
    assert titles[-1] == "Sentences by difference in chrF: second minus first" and len(titles) == 5
    assert len(all_charts([FIRST], {}, None, {}, 10, 5)) == 4
