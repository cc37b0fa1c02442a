"""nmt-analyze ngram-counts."""

from pathlib import Path

from tests.nmt.cli.analyses.conftest import Analyze


def test_ngram_counts(rows: Analyze, small: Path) -> None:
    (small / "train").write_text("a b a b\n\na b c\n")
    (small / "dev").write_text("a b d\n")
    found = rows("ngram-counts", "-i", "train", "--dev", "dev", "--order", 2, "-q")
    assert [list(row.values()) for row in found] == [
        ["1", "10", "4", "0.2500", "0.2500"],
        ["2", "10", "7", "0.7143", "0.5000"],
    ]
    assert rows("ngram-counts", "-i", "train", "--order", 3, "-q", "-o", "out")
    svg = (small / "out" / "ngram-counts.svg").read_text()
    assert "once, of the distinct" in svg and "new in the other text" not in svg
