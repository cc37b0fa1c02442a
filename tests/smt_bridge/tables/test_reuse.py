"""Columns of an earlier table, by the identity of what made them."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.formats import phrase_table
from smt_bridge.tables.reuse import OldTable, read_columns, write_columns

COLUMNS: list[dict[str, object]] = [{"column": 2, "identity": "x"}, {"column": 3, "identity": "y"}]


def old(tmp_path: Path, identities: list[str]) -> OldTable:
    (tmp_path / "t").write_bytes(b"a ||| x ||| 1 0.5 0.25\nb ||| x ||| 1 0 0.125\n")
    write_columns(str(tmp_path / "t"), COLUMNS)
    return OldTable(str(tmp_path / "t"), identities)


def test_values_are_found_by_identity(tmp_path: Path) -> None:
    table = old(tmp_path, ["y", "new", "x"])
    pairs = [
        phrase_table.parse(line, "t:1") for line in (b"a ||| w ||| 1", b"a ||| x ||| 1", b"b ||| x ||| 1")
    ]
    found = np.concatenate([table.find(pairs[:1]), table.find(pairs[1:])])
    assert np.isnan(found[0]).all() and np.isnan(found[:, 1]).all()
    assert found[1, 0] == math.log(0.25) and found[1, 2] == math.log(0.5) and found[2, 0] == math.log(0.125)
    assert math.isfinite(found[2, 2]) and (table.found, table.asked) == (2, 3)


def test_a_table_of_other_runs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of its columns was made by these runs"):
        old(tmp_path, ["z"])


@pytest.mark.parametrize("text", ["{", "[]", '{"columns": 7}', json.dumps({"columns": [{"identity": "x"}]})])
def test_damaged_columns(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.scores.json").write_text(text)
    with pytest.raises(DataError, match=r"t\.scores\.json: damaged; score the table again"):
        read_columns(str(tmp_path / "t"))
    with pytest.raises(DataError, match="smt-score-table writes it beside its output"):
        read_columns(str(tmp_path / "other"))
