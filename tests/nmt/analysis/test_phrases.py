"""Targets of phrases, by the table and by a model."""

import math
from pathlib import Path

import pytest

from nmt.analysis.phrase_choice import PhrasesConfig
from nmt.analysis.phrases import phrases, table
from nmt.runs.run import Run
from tests.conftest import ROOT


def test_targets_by_the_table_by_the_model_and_drawn(tmp_path: Path) -> None:
    lines = [
        f"the man ||| {target} ||| 1 1 {p} 1 ||| ||| 1 7 1"
        for target, p in (("le chat", 0.25), ("l' homme", 0.5))
    ]
    (tmp_path / "table").write_text("\n".join(lines) + "\n")
    run = Run.of(ROOT / "tests" / "golden" / "0.5.0" / "translator")
    config = PhrasesConfig(sources=1, min_words=2, min_targets=2, samples=6)
    rows = [row for row in phrases(run, str(tmp_path / "table"), config) if row.kind == "rare"]
    by_table = [row for row in rows if row.by == "table"]
    assert [row.target for row in by_table] == ["l' homme", "le chat"]
    assert by_table[0].ln_table == pytest.approx(math.log(0.5)) and by_table[0].drawn is None
    by_model = [row for row in rows if row.by == "model"]
    assert by_model == sorted(by_model, key=lambda row: -row.ln_model) and len(by_model) == 2
    drawn = [row.drawn or 0 for row in rows if row.by == "samples"]
    assert drawn and 0 < sum(drawn) <= 6
    assert len(list(table(rows).lines())) == 1 + len(rows)
