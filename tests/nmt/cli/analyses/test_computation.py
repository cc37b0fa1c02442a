"""nmt-analyze computation of what has nothing to show; tests/commands/test_lm.py has a run that has."""

from pathlib import Path

from tests.nmt.cli.analyses.conftest import Refuses

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "0.5.0"


def test_what_is_refused(refuses: Refuses, small: Path) -> None:
    found = refuses("computation", GOLDEN / "lm", small / "r", "-q")
    assert "computes all of its state at each step; train with lm.cell vcrnn or vcgru" in found
    assert "no-file: cannot read" in refuses("computation", GOLDEN / "lm", "no-file", "-q")
