"""What would repeat an n-gram is forbidden, and nothing else."""

import random

import pytest

from nmt.search.constraints.repeats import NoRepeat


@pytest.mark.parametrize("order", [1, 2, 3])
def test_against_all_n_grams(order: int) -> None:
    rng, constraint = random.Random(order), NoRepeat(order)
    for _ in range(200):
        text = [rng.randint(3, 5) for _ in range(rng.randint(0, 9))]
        mark = constraint.begin()
        for unit in text:
            mark = constraint.follow(mark, unit)
        seen = {tuple(text[at : at + order]) for at in range(len(text) - order + 1)}
        expected = {unit for unit in range(8) if tuple([*text, unit][-order:]) in seen and len(text) >= order}
        assert set(constraint.forbidden(mark, 9)) == expected
