"""Word alignments as text."""

from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.formats import pharaoh


def test_points_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("0-0 1-2\n\n2-1 2-1\n")
    assert list(pharaoh.read(tmp_path / "a")) == [{(0, 0), (1, 2)}, set(), {(2, 1)}]
    for wrong in ("1?2", "1p2", "1-", "-1-2", "1-2-3", "1234567890-1"):
        with pytest.raises(DataError, match=r"^f:3: '.*' is not an alignment point"):
            pharaoh.parse(f"0-0 {wrong}", "f:3")


def test_points_outside_the_sentences() -> None:
    pharaoh.check_points(frozenset([(0, 0), (2, 1)]), 3, 2, "a:1")
    for wrong in ((3, 0), (0, 2)):
        with pytest.raises(DataError, match=r"^a:1: point \d-\d is outside"):
            pharaoh.check_points(frozenset([(0, 0), wrong]), 3, 2, "a:1")


def test_written_points_are_read_again() -> None:
    links = frozenset([(10, 2), (2, 10), (2, 1)])
    assert pharaoh.line_of(links) == "2-1 2-10 10-2"
    assert pharaoh.parse(pharaoh.line_of(links), "") == links and pharaoh.line_of(frozenset()) == ""


def test_gold_links() -> None:
    """A sure link is possible, too; some sets count from 1 and write p."""
    assert pharaoh.parse_gold("0-0 1?2", "f:1") == pharaoh.parse_gold("1-1 2p3 1-1", "f:1", first=1)
    assert pharaoh.parse_gold("0-0 1?2", "") == pharaoh.GoldLinks(
        frozenset([(0, 0)]), frozenset([(0, 0), (1, 2)])
    )
    for wrong, first in (("0-1", 1), ("1!2", 0), ("1-", 0), ("-1", 0)):
        with pytest.raises(DataError, match=r"^f:3: '.*' is not a point of a gold alignment"):
            pharaoh.parse_gold(f"1-1 {wrong}", "f:3", first)
