"""The pairs that a text can use: none too few, none too many."""

import random

import pytest

from smt_bridge.tables import filter as filter_table
from smt_bridge.tables.filter import Occurring


@pytest.mark.parametrize("longest", [1, 3, 8])
def test_equal_to_looking_for_each_phrase(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_table, "LONGEST", longest)
    rng = random.Random(1)
    words = ["a", "aa", "ab", "b"]  # one inside another
    lines = [[rng.choice(words) for _ in range(rng.randrange(12))] for _ in range(20)]
    wanted = Occurring(b" ".join(word.encode() for word in line) for line in lines)
    for _ in range(3000):
        phrase = [rng.choice(words) for _ in range(rng.randrange(1, 7))]
        occurs = any(line[at : at + len(phrase)] == phrase for line in lines for at in range(len(line)))
        assert (" ".join(phrase).encode() in wanted) == occurs
