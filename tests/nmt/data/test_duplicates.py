"""Repeated lines, found as a set finds them, whatever fits into memory."""

import random

import pytest

from nmt.data.duplicates import Digests


@pytest.mark.parametrize("bucket", [1, 7, 100, 1000])
def test_as_a_set_finds_them(bucket: int) -> None:
    rng = random.Random(bucket)
    lines = [f"line {rng.randrange(60)}" for _ in range(200)]
    digests, seen, naive = Digests(), set[str](), []
    for number, line in enumerate(lines):
        digests.add(line)
        if line in seen:
            naive.append(number)
        seen.add(line)
    assert sorted(row for rows in digests.repeated(bucket) for row in rows.tolist()) == naive


def test_of_nothing_nothing() -> None:
    assert not list(Digests().repeated())
