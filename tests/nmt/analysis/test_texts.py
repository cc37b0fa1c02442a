"""nmt-analyze ngram-counts and alignment-error."""

from pathlib import Path

from tests.conftest import Command
from tests.nmt.analysis.conftest import Analyze

# ---- test texts --------------------------------------------------------------------------------------------


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


# ---- test alignment error ----------------------------------------------------------------------------------
# nmt-analyze alignment-error.


def test_alignment_error(rows: Analyze, small: Path, command: Command) -> None:
    (small / "gold").write_text("1-1 2-2 2?3\n\n")
    (small / "a").write_text("0-0 1-2 2-2\n\n")
    (small / "b").write_text("0-0 1-1\n\n")
    found = rows("alignment-error", "--gold", "gold", "--gold-from", 1, "--hypothesis", "a", "b", "-q")
    assert [list(row.values()) for row in found] == [
        ["a", "2", "3", "0.6667", "0.5000", "0.4000"],
        ["b", "2", "2", "1.0000", "1.0000", "0.0000"],
    ]
    (small / "c").write_text("0-0 1-1\n")
    for given, message in (
        (["--gold", "gold", "--hypothesis", "c"], "c: 1 lines, but gold has 2"),
        (["--gold", "a", "--hypothesis", "a", "--gold-from", 1], "a:1: '0-0' is no point of a gold"),
        (["--gold", "gold", "--hypothesis", "gold"], "gold:1: '2?3' is no alignment point"),
    ):
        done = command("nmt-analyze", "alignment-error", *given, cwd=small)
        assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1
