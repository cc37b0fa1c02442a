"""nmt-analyze computation of what has nothing to show; tests/commands/test_lm.py has a run that has."""

from pathlib import Path

import pytest

from nmt.cli import analyze
from tests.conftest import ROOT

LM = ROOT / "tests" / "models" / "lm"


@pytest.mark.ci
def test_what_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("u v w\n")
    for name, cause in (("text", "train with lm.cell vcrnn or vcgru"), ("no-file", "no-file: cannot read")):
        assert analyze.main(["computation", str(LM), str(tmp_path / name), "-q"]) == 2
        assert cause in capfd.readouterr().err
