"""Files of lines; test_tables.py has the lines themselves."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.extraction.lines import phrases, points_of, write_tables


def test_both_tables_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    table, reordering = str(tmp_path / "table"), str(tmp_path / "reordering")

    def failing() -> Iterator[tuple[list[str], list[str]]]:
        yield ["a"], ["b"]
        raise ValueError

    with pytest.raises(ValueError):
        write_tables(table, reordering, failing())
    assert not list(tmp_path.iterdir())
    write_tables(table, reordering, [(["1", "2"], ["x", "y"]), (["3"], ["z"])])
    assert (tmp_path / "table").read_text() == "1\n2\n3\n"
    assert (tmp_path / "reordering").read_text() == "x\ny\nz\n"
    write_tables(str(tmp_path / "only"), None, [(["1"], ["x"])])
    assert (tmp_path / "only").read_text() == "1\n"


def test_phrases_end_at_the_first_zero() -> None:
    assert phrases(np.array([[2, 1, 0], [1, 0, 0]], np.int32), [b"", b"a", "é".encode()]) == ["é a", "a"]


def test_points_are_by_target_word() -> None:
    assert points_of(1 << 8 | 1 << 1) == "1-0 0-1"
