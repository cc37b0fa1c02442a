"""The sort on disk: sorted files one after the other are the sorted whole, whatever the keys; no file is
larger than asked, if keys can be told apart."""

from pathlib import Path

import numpy as np
import pytest

from smt_bridge.extraction.buckets import Buckets, quantiles


def rows_of(kind: str) -> np.ndarray:
    """Three columns: two keys and a number."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 50, (3000, 3)).astype(np.uint64)
    if kind == "one frequent value":
        rows[200:, 0] = 7
    elif kind == "first column equal":
        rows[:, 0] = 7
    elif kind == "one key":
        rows[:, :2] = 7
    elif kind == "largest numbers":
        rows[::2, 0] = np.uint64(2**64 - 1)
    return rows


@pytest.mark.parametrize(
    "kind", ["even", "one frequent value", "first column equal", "one key", "largest numbers"]
)
def test_sorted_pieces_are_the_sorted_whole(kind: str, tmp_path: Path) -> None:
    rows = rows_of(kind)
    made = Buckets(tmp_path / "b", 3, quantiles(rows[:500, 0], 4))
    for start in range(0, len(rows), 700):
        made.add(rows[start : start + 700])
    pieces = list(made.walk(100, 2))
    for piece in pieces:
        assert len(piece) <= 100 or len(np.unique(piece[:, :2], axis=0)) == 1
    found = np.concatenate([piece[np.lexsort(piece.T[::-1])] for piece in pieces])
    # Equal keys are in one piece, since only then is a piece a whole group.
    np.testing.assert_array_equal(found, rows[np.lexsort(rows.T[::-1])])
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
