"""The page of nmt-analyze report."""

from nmt.analysis import report


def test_what_the_page_shows_is_not_expanded() -> None:
    """A title or a sentence may look like a mark of the template."""
    row: dict[str, object] = {"source": "a {{script}} {{data}} </script>", "hypotheses": ["{{title}}"]}
    page = report.html(report.ReportData("{{data}} <b>", [], [], 1, rows=[row]))
    assert "<title>{{data}} &lt;b&gt;</title>" in page
    assert page.count("{{script}} {{data}}") == 1 and page.count('"{{title}}"') == 1
    assert (
        page.count("</script>") == 2 and "\\u003c/script>" in page
    )  # the template's own, and one that ends nothing
