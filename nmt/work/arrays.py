"""Arrays of rows in the files of a job (nmt/work/stages.py): reading, sorting, and splitting into buckets."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.work import stages

UINT = NDArray[np.uint64]
Int64s = NDArray[np.int64]


def read_rows(path: Path, number: int, columns: int) -> UINT:
    """Read part `number` of a file of parts as an array (N, columns). Damaged as from `stages.read_part`."""
    return np.frombuffer(stages.read_part(path, number), np.uint64).reshape(-1, columns)


def sorted_order(rows: UINT, columns: int) -> Int64s:
    """Indices (N,) that sort rows by their first `columns` columns, the first one first."""
    return np.lexsort(tuple(rows[:, column] for column in range(columns - 1, -1, -1)))


def group_starts(rows: UINT, columns: int) -> Int64s:
    """Index of the first of all sorted rows with the same first `columns` columns: (groups,)"""
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:, :columns] != rows[:-1, :columns]).any(1)
    return np.flatnonzero(new)


def hash_buckets(keys: UINT, buckets: int) -> Int64s:
    """Assign rows to buckets, numbered from 0, by a hash of their columns: (N, C) -> (N,)"""
    value = np.zeros(len(keys), np.uint64)
    for column in range(keys.shape[1]):  # the finalizer of splitmix64, column by column
        value = (value ^ keys[:, column]) + np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ value >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ value >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        value ^= value >> np.uint64(31)
    return (value % np.uint64(buckets)).astype(np.int64)


def split_buckets(rows: UINT, buckets_of_rows: Int64s, buckets: int) -> list[UINT]:
    """Split rows into the rows of each bucket, in their order. `buckets_of_rows`: (N,)"""
    order = np.argsort(buckets_of_rows, kind="stable")
    return np.split(rows[order], np.cumsum(np.bincount(buckets_of_rows, minlength=buckets))[:-1])
