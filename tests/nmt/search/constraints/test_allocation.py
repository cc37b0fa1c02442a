"""How banks share a beam."""

import random

import pytest

from nmt.search.constraints.allocation import ALLOCATIONS


@pytest.mark.parametrize(
    ("width", "available", "sizes"),
    [
        (10, [5, 5, 5], [3, 3, 4]),  # alike; the highest has what remains
        (10, [9, 1, 0], [9, 1, 0]),  # what a bank cannot use goes below
        (10, [1, 1, 9], [1, 1, 8]),  # or above
        (3, [4, 4, 4, 4, 4], [1, 0, 0, 1, 1]),  # too many banks: the lowest goes on
        (1, [4, 4], [0, 1]),
        (4, [0, 0, 2], [0, 0, 2]),
        (4, [0, 0], [0, 0]),
        (3, [3], [3]),
    ],
)
def test_dynamic_by_hand(width: int, available: list[int], sizes: list[int]) -> None:
    assert ALLOCATIONS["dynamic"].sizes(width, available) == sizes


def test_no_slot_is_wasted() -> None:
    rng = random.Random(1)
    for _ in range(500):
        width, available = rng.randint(1, 12), [rng.choice((0, 0, 1, 2, 9)) for _ in range(rng.randint(1, 8))]
        sizes = ALLOCATIONS["dynamic"].sizes(width, available)
        assert sum(sizes) == min(width, sum(available))
        assert all(0 <= size <= count for size, count in zip(sizes, available, strict=True))


def test_each_row_of_a_grid_has_a_beam() -> None:
    grid = ALLOCATIONS["grid"]
    assert grid.sizes(3, [5, 0, 2]) == [3, 0, 2] and grid.each(3) == 3
