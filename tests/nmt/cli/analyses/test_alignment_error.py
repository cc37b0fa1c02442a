"""nmt-analyze alignment-error."""

from pathlib import Path

from tests.conftest import Command
from tests.nmt.cli.analyses.conftest import Analyze


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
