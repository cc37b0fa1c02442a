"""Symmetrization by its rules."""

import random

from nmt.formats.pharaoh import Links
from smt_bridge.extraction.symmetrize import HEURISTICS


def random_links(rng: random.Random, source: int, target: int, count: int) -> Links:
    return frozenset((rng.randrange(source), rng.randrange(target)) for _ in range(count))


def test_heuristics_lie_between_intersection_and_union() -> None:
    rng = random.Random(1)
    for _ in range(300):
        forward, reverse = (random_links(rng, 6, 7, rng.randrange(10)) for _ in range(2))
        made = {name: combine(forward, reverse) for name, combine in HEURISTICS.items()}
        assert made["intersection"] == forward & reverse and made["union"] == forward | reverse
        assert all(
            made["intersection"] <= links <= made["union"]
            for name, links in made.items()
            if name not in ("forward", "reverse")
        )
        assert (
            made["grow-diag"] <= made["grow-diag-final-and"] and made["grow-diag"] <= made["grow-diag-final"]
        )
        joined = {a for a, _ in made["grow-diag"]}, {b for _, b in made["grow-diag"]}
        added = made["grow-diag-final-and"] - made["grow-diag"]
        assert all(a not in joined[0] and b not in joined[1] for a, b in added)
        assert (made["forward"], made["reverse"]) == (forward, reverse)


def test_grow_diag_final_and_by_hand() -> None:
    """Intersection 0-0; 1-1 is a diagonal neighbor with a free word; 3-3 is joined by no neighbor and has two
    free words; 0-3 has one only."""
    forward, reverse = frozenset({(0, 0), (1, 1), (3, 3)}), frozenset({(0, 0), (0, 3)})
    assert HEURISTICS["grow-diag"](forward, reverse) == {(0, 0), (1, 1)}
    assert HEURISTICS["grow"](forward, reverse) == {(0, 0)}
    assert HEURISTICS["grow-diag-final-and"](forward, reverse) == {(0, 0), (1, 1), (3, 3)}
    assert HEURISTICS["grow-diag-final"](forward, reverse) == {(0, 0), (1, 1), (3, 3)}
    # One free word is enough for a neighbor, none is not: 1-0 joins, then 1-1 has a free target, and 0-1
    # nothing new.
    forward, reverse = frozenset({(0, 0), (1, 0), (1, 1), (0, 1)}), frozenset({(0, 0)})
    assert HEURISTICS["grow"](forward, reverse) == {(0, 0), (0, 1), (1, 0)}
