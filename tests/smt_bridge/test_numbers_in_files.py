"""Numbers in the files that smt_bridge reads are finite ASCII decimals of a sensible length; others give one
short error."""

import json
from collections.abc import Callable, Sized
from pathlib import Path

import pytest

from nmt.errors import DataError, UserError
from nmt.formats import pharaoh, phrase_table
from smt_bridge.moses import ini
from smt_bridge.tables import propose
from smt_bridge.tables.score import OldTable
from smt_bridge.tuning import tuner

READERS: dict[str, tuple[str, Callable[[Path], Sized]]] = {
    "weights": ("LM0= 0.5 {}\n", ini.read_weights),
    "ini": ("[weight]\nLM0= {}\n", ini.read_weights),
    "alignment": ("0-0 {}-1\n", lambda path: list(pharaoh.read(path))),
    "lexicon": ("chien dog {}\n", lambda path: propose.read_lexicon(str(path))),
    "init": ("1 2 {}\n", lambda path: tuner.read_start(str(path), ["A_0", "B_0", "C_0"])),
    "counts": (
        "a ||| b ||| 1 1 1 1 ||| 0-0 ||| 1 {} 1 ||| |||\n",
        lambda path: list(map(phrase_table.source_count, phrase_table.read(path))),
    ),
}


@pytest.mark.parametrize("number", ["nan", "inf", "²", "1_0", "１", "9" * 5000, "1e999", "x" * 5000])
@pytest.mark.parametrize("reader", READERS)
def test_no_number(reader: str, number: str, tmp_path: Path) -> None:
    text, read = READERS[reader]
    (tmp_path / "f").write_text(text.format(number), encoding="utf-8")
    with pytest.raises(UserError) as error:
        read(tmp_path / "f")
    assert len(str(error.value)) < 300 + len(str(tmp_path))


def test_good_numbers_pass(tmp_path: Path) -> None:
    for text, read in READERS.values():
        (tmp_path / "f").write_text(text.format("1"), encoding="utf-8")
        assert len(read(tmp_path / "f")) > 0


@pytest.mark.parametrize(
    "columns",
    [7, [7], [{"identity": "a"}], [{"identity": "a", "column": "²"}], [{"identity": "a", "column": -1}]],
)
def test_columns_of_an_old_table(columns: object, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("a ||| b ||| 1\n")
    (tmp_path / "old.scores.json").write_text(json.dumps({"columns": columns}))
    with pytest.raises(DataError, match=r"old\.scores\.json: damaged"):
        OldTable(str(tmp_path / "old"), ["a"])


def test_an_old_score_of_0(tmp_path: Path) -> None:
    """As in a table that was edited: its logarithm is floored, as Moses does."""
    (tmp_path / "old").write_text("a ||| b ||| 0\n")
    (tmp_path / "old.scores.json").write_text(json.dumps({"columns": [{"identity": "a", "column": 1}]}))
    found = OldTable(str(tmp_path / "old"), ["a"]).find([phrase_table.parse(b"a ||| b ||| 1", "t:1")])
    assert -100 < found[0, 0] < -80
