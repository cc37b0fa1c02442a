"""Arrays in files of parts."""

from pathlib import Path

import numpy as np

from nmt.work import arrays, stages


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    """Also where rows lie in another order in memory, and where there are none."""
    rows = np.arange(12, dtype=np.uint64).reshape(4, 3)
    path = tmp_path / "00000"
    stages.write_parts(path, [rows, np.asfortranarray(rows), rows[:0], rows[::2, 1]])
    assert (arrays.read_rows(path, 0, 3) == rows).all() and (arrays.read_rows(path, 1, 3) == rows).all()
    assert arrays.read_rows(path, 2, 3).shape == (0, 3)
    assert arrays.read_rows(path, 3, 1)[:, 0].tolist() == [1, 7]


def test_buckets_are_of_similar_size() -> None:
    """Of phrases in the numbers that follow each other, too."""
    keys = np.stack([np.arange(10_000, dtype=np.uint64), np.zeros(10_000, np.uint64)], 1)
    sizes = np.bincount(arrays.hash_buckets(keys, 10), minlength=10)
    assert sizes.min() > 850 and sizes.max() < 1150
    assert (arrays.hash_buckets(keys[:, ::-1], 10) != arrays.hash_buckets(keys, 10)).any()


def test_rows_keep_their_order_in_their_bucket() -> None:
    rows = np.arange(12, dtype=np.uint64).reshape(6, 2)
    found = arrays.split_buckets(rows, np.array([2, 0, 2, 0, 0, 2]), 4)
    assert [part[:, 0].tolist() for part in found] == [[2, 6, 8], [], [0, 4, 10], []]
    assert [len(part) for part in arrays.split_buckets(rows[:0], np.zeros(0, np.int64), 3)] == [0, 0, 0]


def test_sorted_rows_and_their_groups() -> None:
    found = np.array([[2, 1, 7], [1, 5, 8], [2, 1, 3], [1, 4, 9]], np.uint64)
    ordered = found[arrays.sorted_order(found, 2)]
    assert ordered.tolist() == [[1, 4, 9], [1, 5, 8], [2, 1, 7], [2, 1, 3]]
    assert arrays.group_starts(ordered, 2).tolist() == [0, 1, 2]
    assert arrays.group_starts(ordered, 1).tolist() == [0, 2]
