"""Arrays in files of parts."""

from pathlib import Path

import numpy as np

from nmt.jobs import arrays, parts


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    """Also where rows lie in another order in memory, and where there are none."""
    rows = np.arange(12, dtype=np.uint64).reshape(4, 3)
    path = tmp_path / "00000"
    parts.write(path, [rows, np.asfortranarray(rows), rows[:0], rows[::2, 1]])
    assert (arrays.rows(path, 0, 3) == rows).all() and (arrays.rows(path, 1, 3) == rows).all()
    assert arrays.rows(path, 2, 3).shape == (0, 3)
    assert arrays.rows(path, 3, 1)[:, 0].tolist() == [1, 7]
