"""Huffman trees are optimal; trees of equal depth have a leaf for each word."""

import itertools
import math

import numpy as np
import pytest

from nmt.layers.output.tree import complete, huffman, levels_of, spread, wide_enough


def depths(tree_paths: np.ndarray) -> np.ndarray:
    return np.asarray((tree_paths >= 0).sum(1))


def least_cost(counts: list[int], arity: int) -> int:
    """Σ count x depth of the best tree, by trying what is merged first: any `arity` words or fewer."""
    if len(counts) == 1:
        return 0
    best = math.inf
    for size in range(2, arity + 1):
        for chosen in itertools.combinations(range(len(counts)), size):
            total = sum(counts[i] for i in chosen)
            rest = [count for i, count in enumerate(counts) if i not in chosen]
            best = min(best, total + least_cost([*rest, total], arity))
    return int(best)


@pytest.mark.parametrize("arity", [2, 3, 4])
@pytest.mark.parametrize(
    "counts", [[5], [3, 1], [1, 1, 1], [9, 4, 2, 1], [8, 1, 1, 5, 3], [0, 0, 7, 2, 2, 0]]
)
def test_no_tree_is_better(counts: list[int], arity: int) -> None:
    tree = huffman(np.array(counts), arity)
    cost = int((depths(tree.paths()) * counts).sum())
    assert cost == (least_cost(counts, arity) if len(counts) > 1 else counts[0])


@pytest.mark.parametrize("arity", [2, 3, 5, 20])
@pytest.mark.parametrize("words", [1, 2, 3, 4, 5, 6, 7, 21, 50])
def test_every_word_has_a_leaf_of_its_own_and_kraft_holds(words: int, arity: int) -> None:
    """Σ M^-depth <= 1; and the number of nodes does not depend on the counts."""
    rng = np.random.default_rng(words)
    tree = huffman(rng.integers(0, 30, words), arity)
    paths = tree.paths()
    assert len(set(tree.leaf.tolist())) == words
    assert not set(tree.leaf.tolist()) & set(tree.above.tolist())
    assert (float(arity) ** -depths(paths)).sum() <= 1 + 1e-12
    assert len(tree.above) == max(1, -(-(words - 1) // (arity - 1)))
    assert (np.diff(tree.above) > 0).all()  # nodes are numbered level by level


def test_frequent_words_are_near_the_root() -> None:
    counts = 10000 // np.arange(1, 201)
    found = depths(huffman(counts, 2).paths())
    assert (np.diff(found) >= 0).all() and found[0] < 4 < found[-1]
    entropy = -(counts / counts.sum() * np.log2(counts / counts.sum())).sum()
    assert entropy <= (found * counts).sum() / counts.sum() <= entropy + 1


@pytest.mark.parametrize("words, arity", [(1, 2), (7, 2), (8, 2), (9, 2), (60, 4), (1000, 11)])
def test_leaves_of_equal_depth(words: int, arity: int) -> None:
    codes = spread(np.random.default_rng(0).permutation(words), arity)
    tree = complete(codes, arity)
    paths = tree.paths()
    depth = levels_of(words, arity)
    assert (depths(paths) == depth).all() and arity**depth >= words
    assert depth == 1 or arity ** (depth - 1) < words
    assert len(set(tree.leaf.tolist())) == words
    root = np.bincount(paths[:, -1], minlength=arity)
    assert root.max() - root.min() <= 1 or depth == 1  # spread evenly
    digits = [(codes // arity**level) % arity for level in range(depth)]  # from the leaf up
    assert all(np.array_equal(paths[:, level] % arity, digits[level]) for level in range(depth))


def test_three_levels_have_room_to_spare() -> None:
    for words in (2, 10, 1000, 30_000, 250_000):
        assert wide_enough(words) ** 3 >= 1.05 * words
    assert wide_enough(250_000) == 65  # that of 000, section 3.5
