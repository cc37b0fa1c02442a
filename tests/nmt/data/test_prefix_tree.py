import random

import numpy as np
import pytest

from nmt.data import prefix_tree


def sequences(count: int, seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randrange(3) for _ in range(rng.randrange(5))] for _ in range(count)]


@pytest.mark.parametrize("groups", [None, 4])
def test_every_sequence_is_the_way_to_its_node(groups: int | None) -> None:
    given = sequences(200, 1)
    roots = None if groups is None else [row % groups for row in range(len(given))]
    levels = prefix_tree.levels(given, roots)
    seen = {}
    for depth, level in enumerate(levels):
        for sequence, node in zip(level.ended, level.nodes, strict=True):
            words = []
            for upper in reversed(levels[1 : depth + 1]):
                words.append(int(upper.token_ids[node]))
                node = upper.parents[node]
            seen[int(sequence)] = (int(node), words[::-1])
    assert seen == {row: (0 if roots is None else roots[row], words) for row, words in enumerate(given)}


def test_what_begins_alike_is_one_node() -> None:
    given = sequences(200, 2)
    levels = prefix_tree.levels(given)
    for depth, level in enumerate(levels[1:], 1):
        assert len(level.token_ids) == len({tuple(words[:depth]) for words in given if len(words) >= depth})
        assert (np.diff(level.parents) >= 0).all() and (np.diff(level.nodes) >= 0).all()


def test_picture_of_the_docstring() -> None:
    a, b, c, d = range(4)
    levels = prefix_tree.levels([[a, b], [a, c], [a, c, d]])
    assert [level.token_ids.tolist() for level in levels[1:]] == [[a], [b, c], [d]]
    assert [level.parents.tolist() for level in levels[1:]] == [[0], [0, 0], [1]]
    assert levels[2].ended.tolist() == [0, 1] and levels[2].nodes.tolist() == [0, 1]
    assert levels[3].ended.tolist() == [2] and levels[3].nodes.tolist() == [0]


def test_blocks_cover_all() -> None:
    assert [row for cut in prefix_tree.blocks(1300) for row in range(1300)[cut]] == list(range(1300))
    assert not list(prefix_tree.blocks(0))
