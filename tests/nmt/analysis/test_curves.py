"""Learning curves from the logs of training."""

from pathlib import Path

import pytest

from nmt.analysis.curves import curves_table, read_column, read_curves
from nmt.errors import DataError


def test_values_by_update_without_those_that_were_not_measured(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("step\tcost\n10\t2.5\n20\t2\n")
    (tmp_path / "dev.tsv").write_text("step\tepoch\tcost\tbleu\tchrf\n20\t1\t3\tnan\tnan\n")
    found = read_curves(tmp_path)
    assert found == {"train cost": [(10, 2.5), (20, 2)], "dev cost": [(20, 3)], "dev BLEU": []}
    assert list(curves_table({"run": found}).lines())[1:] == [
        "run\ttrain cost\t10\t2.500000",
        "run\ttrain cost\t20\t2.000000",
        "run\tdev cost\t20\t3.000000",
    ]


def test_chrf_where_it_was_measured(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("step\tcost\n")
    for values, expected in ("nan", []), ("30.5", [(20, 30.5)]):
        (tmp_path / "dev.tsv").write_text(f"step\tcost\tbleu\tchrf\tsignature\n20\t3\t1\t{values}\tBLEU|x\n")
        assert read_curves(tmp_path).get("dev chrF", []) == expected


def test_a_damaged_log_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("step\tcost\n10\t2.5\n20\n")
    with pytest.raises(DataError, match="log:3: expected 2 columns"):
        read_column(tmp_path / "log", "cost")
    with pytest.raises(DataError, match="no columns 'step' and 'bleu'"):
        read_column(tmp_path / "log", "bleu")
