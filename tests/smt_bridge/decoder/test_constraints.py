"""Walls and zones: the compiled rules are those of the plain search and of a naive reading; derivations keep
to them."""

import random

import numpy as np
import pytest

from smt_bridge.decoder import plain
from smt_bridge.decoder.constraints import constraints, none, permits


def coverage(translated: set[int], words: int) -> tuple[int, np.uint64]:
    """The first untranslated word, and a bit for each from there on."""
    gap = next(word for word in range(words + 1) if word not in translated)
    return gap, np.uint64(sum(1 << (word - gap) for word in translated if word > gap))


def test_compiled_is_plain() -> None:
    rng = random.Random(4)
    refused = 0
    for _ in range(4000):
        words = rng.randint(2, 12)
        ends = [(rng.randrange(words), rng.randrange(words)) for _ in range(rng.randint(0, 3))]
        zones = [(min(pair), max(pair)) for pair in ends]
        held = constraints(words, rng.sample(range(words), rng.randint(0, 2)), zones)
        begin = rng.randrange(words)
        last = rng.randint(begin, min(words - 1, begin + 3))
        translated = {word for word in range(words) if rng.random() < 0.4 and not begin <= word <= last}
        limit = rng.choice([-1, 0, 2, 6])
        node = plain.SearchNode(frozenset(translated), 0, 0, (), (), 0.0, 0.0)
        if not held.active:
            continue
        expected = plain.permitted(node, begin, last, limit, held)
        assert bool(permits(held, *coverage(translated, words), begin, last, limit)) == expected
        refused += not expected
    assert 500 < refused < 3500


def orders(words: int, walls: list[int], zones: list[tuple[int, int]]) -> set[tuple[int, ...]]:
    """All orders of single words that the rules let through."""
    held = constraints(words, walls, zones)
    found: set[tuple[int, ...]] = {()}
    for _ in range(words):
        found = {
            (*path, word)
            for path in found
            for word in range(words)
            if word not in path
            and (not held.active or permits(held, *coverage(set(path), words), word, word, -1))
        }
    return found


def test_walls_and_zones() -> None:
    """No word behind a wall before all words in front of it; a zone's words side by side; a wall in a zone is
    its own matter."""
    every = orders(5, [], [])
    assert len(every) == 120 and not none().active
    assert orders(5, [1], []) == {path for path in every if {*path[:2]} == {0, 1}}
    assert orders(5, [], [(1, 3)]) == {
        path for path in every if max(map(path.index, (1, 2, 3))) - min(map(path.index, (1, 2, 3))) == 2
    }
    inside = {path for path in orders(5, [], [(1, 3)]) if path.index(1) < min(path.index(2), path.index(3))}
    assert orders(5, [1], [(1, 3)]) == inside


@pytest.mark.parametrize(
    ("walls", "zones", "local"),
    [
        ([1], [(0, 3)], [-1, 0, -1, -1]),
        ([3], [(0, 3)], [-1, -1, -1, -1]),  # behind the zone: of the whole line
        ([1], [(0, 3), (1, 2)], [-1, 1, -1, -1]),  # of the inner zone, whichever is named first
        ([1], [(1, 2), (0, 3)], [-1, 0, -1, -1]),
    ],
)
def test_walls_inside_zones(walls: list[int], zones: list[tuple[int, int]], local: list[int]) -> None:
    held = constraints(4, walls, zones)
    assert held.local.tolist() == local and held.wall.any() == (max(local) < 0)
