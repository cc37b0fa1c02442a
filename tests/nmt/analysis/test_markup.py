"""The HTML of tables and charts."""

import re

from nmt.analysis.charts import Chart, Point
from nmt.analysis.markup import figure, ngram_tables, subsets_table, systems_table
from nmt.analysis.ngrams import NgramDifference

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
    chart = Chart(NASTY, NASTY, NASTY, {NASTY: [Point(0, 1)]}, labels=[NASTY], note=NASTY, counted=NASTY)
    found = NgramDifference(NASTY, NASTY, NASTY, 1, 1, 1, 0, 0.7)
    for html in (figure(0, chart), ngram_tables([found])):
        assert "<b" not in html.replace("<bdi>", "") and 'onclick="' not in html and "</script" not in html


def test_a_chart_has_its_numbers_below() -> None:
    points = [Point(7, 50.123, 20, (40.0, 60.0), "2 to 11"), Point(8, 51.0, 30, (41.0, 61.0), "3 to 12")]
    chart = Chart("BLEU", "words", "BLEU", {"one": points, "two": points[1:]}, counted="sentences")
    assert cells(figure(3, chart)) == [
        "words", "sentences", "one, BLEU", "two, BLEU",
        "7 (2 to 11)", "20", "50.12 (40.00\u201360.00)", "\u2013",
        "8 (3 to 12)", "30", "51.00 (41.00\u201361.00)", "51.00 (41.00\u201361.00)",
    ]  # fmt: skip
    assert 'data-chart="3"' in figure(3, chart)
    assert "no point is left" in figure(0, Chart("BLEU", "words", "BLEU", {"one": []}, note="at least 20"))
