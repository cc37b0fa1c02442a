"""Batches of at most so many units: as few as there can be, and alike."""

import numpy as np
import pytest

from nmt.data.corpus import Corpus
from nmt.data.token_batches import ends, full_ends, mean_pairs


def parts(sizes: np.ndarray[tuple[int, int], np.dtype[np.int64]], found: list[int]) -> list[tuple[int, int]]:
    """The units of each batch, source and target."""
    return [tuple(part.sum(1).tolist()) for part in np.split(sizes, found[:-1], axis=1)]


def naive(sizes: np.ndarray[tuple[int, int], np.dtype[np.int64]], tokens: int) -> list[int]:
    """Pair by pair: a batch ends before the pair that does not fit."""
    found, batch = list[int](), np.zeros(2)
    for place, pair in enumerate(sizes.T):
        if batch.any() and (batch + pair > tokens).any():
            found.append(place)
            batch = np.zeros(2)
        batch = batch + pair
    return [*found, sizes.shape[1]]


@pytest.mark.parametrize("tokens", [1, 7, 40, 300, 10**6])
@pytest.mark.parametrize("count", [1, 2, 57])
def test_as_few_as_pair_by_pair(tokens: int, count: int) -> None:
    rng = np.random.default_rng(count)
    sizes = np.sort(rng.integers(1, 40, (2, count)), axis=1)
    expected = naive(sizes, tokens)
    assert full_ends(sizes.cumsum(1), tokens) == expected
    found = ends(sizes, tokens)
    assert len(found) == len(expected) and found[-1] == count and found == sorted(set(found))
    for end, units in zip(found, parts(sizes, found), strict=True):
        assert max(units) <= tokens or sizes[:, end - 1].max() == max(units), "longer ones are alone"


def test_batches_are_alike() -> None:
    """Full batches would leave a rest of 10 of 1,000 units; no batch is far from the mean."""
    sizes = np.full((2, 101), 10)
    assert [units[1] for units in parts(sizes, full_ends(sizes.cumsum(1), 500))] == [500, 500, 10]
    assert [units[1] for units in parts(sizes, ends(sizes, 500))] == [340, 340, 330]


def test_either_side_may_fill_a_batch() -> None:
    assert ends(np.array([[5, 5, 1, 1], [1, 1, 5, 5]]), 6) == [1, 3, 4]
    assert ends(np.array([[1, 1, 1, 1], [5, 5, 5, 5]]), 10) == [2, 4]


def test_pairs_of_an_average_batch() -> None:
    """The side of more units decides; end symbols count."""
    offsets = np.array([0, 4, 8, 12]), np.array([0, 1, 2, 3])
    corpus = Corpus(np.zeros(12, np.int64), offsets[0], np.zeros(3, np.int64), offsets[1])
    assert [mean_pairs(corpus, tokens) for tokens in (1, 5, 10, 14)] == [1, 1, 2, 2]
