"""Word alignments as text."""

from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.formats import pharaoh


def test_points_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("0-0 1-2\n\n2-1 2-1\n")
    assert list(pharaoh.read(tmp_path / "a")) == [{(0, 0), (1, 2)}, set(), {(2, 1)}]
    for wrong in ("1?2", "1p2", "1-", "-1-2", "1-2-3", "1234567890-1"):
        with pytest.raises(DataError, match=r"^f:3: '.*' is no alignment point"):
            pharaoh.parse(f"0-0 {wrong}", "f:3")


def test_points_outside_the_sentences() -> None:
    pharaoh.check_points(frozenset([(0, 0), (2, 1)]), 3, 2, "a:1")
    for wrong in ((3, 0), (0, 2)):
        with pytest.raises(DataError, match=r"^a:1: point \d-\d is outside"):
            pharaoh.check_points(frozenset([(0, 0), wrong]), 3, 2, "a:1")
