"""The page of nmt-analyze report."""

import json
import os
from pathlib import Path

from nmt.analysis import report
from nmt.analysis.systems import System, TestSet


def test_what_the_page_shows_is_not_expanded() -> None:
    """A title or a sentence may look like a mark of the template."""
    row: dict[str, object] = {"source": "a {{script}} {{data}} </script>", "hypotheses": ["{{title}}"]}
    page = report.html(report.ReportData("{{data}} <b>", [], [], 1, rows=[row]))
    assert "<title>{{data}} &lt;b&gt;</title>" in page
    assert page.count("{{script}} {{data}}") == 1 and page.count('"{{title}}"') == 1
    assert (
        page.count("</script>") == 2 and "\\u003c/script>" in page
    )  # the template's own, and one that ends nothing


def test_what_the_script_reads() -> None:
    """Case and tokenization of the words that it compares are those of the scores."""
    test = TestSet(["a b", "c"], [["A b", "c"]], tokenize="none", lowercase=True)
    systems = [System("one", ["a b", "c"], test), System("two", ["x", "c"], test)]
    hard = {"unseen": {"source": [1, 0], "reference": [2, 0], "both": [2, 0]}}
    data = report.gather(systems, hard, {"a": 1}, {}, report.ReportConfig(samples=5, least=1))
    read = json.loads(report.html(data).split('id="data">')[1].split("</script>")[0])
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
    assert report.day([tmp_path / "new", tmp_path / "old", "-"]) == "1970-01-04" and report.day(["-"]) == ""


def test_the_head_leaves_out_what_is_not_known() -> None:
    about = [("beam", "<5>"), ("date", "")]
    page = report.html(report.ReportData("it", [], [], 1, about=about))
    assert "<dt>beam</dt>" in page and "&lt;5&gt;" in page and "<dt>date</dt>" not in page


def test_one_system_has_an_interval_and_no_ngrams() -> None:
    lines = ["a b c d", "a b c x"] * 4
    test = TestSet(lines, [["a b c d"] * 8])
    data = report.gather([System("it", lines, test)], {}, None, {}, report.ReportConfig(samples=50))
    (row,) = data.systems
    assert isinstance(row["interval"], float) and row["interval"] > 1 and data.ngrams == []
    page = report.html(data)
    assert 'id="ngram-section" hidden' in page and 'id="subset-section" hidden' in page
