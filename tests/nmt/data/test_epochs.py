"""Pairs that an epoch has more often, or less often, than once."""

from collections import Counter
from itertools import chain

import numpy as np
import pytest

from nmt.data.batches import BatchStream
from nmt.data.corpus import Corpus
from nmt.data.epochs import EpochPairs, shuffled


def corpus(*parts: int) -> Corpus:
    """Pairs of one word; that of pair i is i."""
    total = sum(parts)
    ids, offsets = np.arange(total), np.arange(total + 1, dtype=np.int64)
    return Corpus(ids, offsets, ids, offsets, parts=parts)


def epoch(stream: BatchStream, number: int) -> list[int]:
    return list(chain.from_iterable(rows.tolist() for rows in stream.rows(number)))


SIZES, COUNTS = (10, 4, 7), (5, 11, 7)


def test_each_pair_comes_as_often_as_whole_repeats_and_one_draw() -> None:
    stream = BatchStream(corpus(*SIZES), 4, 2, 1, counts=COUNTS)
    assert stream.count(0) == 6
    starts = np.cumsum([0, *SIZES])
    for number in range(5):
        found = Counter(epoch(stream, number))
        for place, (size, count) in enumerate(zip(SIZES, COUNTS, strict=True)):
            times = [found[row] for row in range(starts[place], starts[place + 1])]
            assert sum(times) == count and set(times) <= {count // size, -(-count // size)}


def test_what_is_drawn_changes_with_epoch_and_seed_and_nothing_else() -> None:
    def drawn(seed: int, number: int) -> list[int]:
        return sorted(epoch(BatchStream(corpus(*SIZES), 4, 2, seed, counts=COUNTS), number))

    assert drawn(1, 0) == drawn(1, 0)
    assert len({tuple(drawn(seed, number)) for seed in (1, 2) for number in range(6)}) > 6
    often = Counter(
        chain.from_iterable(epoch(BatchStream(corpus(4, 1), 5, 1, s, counts=(1, 4)), 0) for s in range(400))
    )
    assert all(60 < often[row] < 140 for row in range(4)) and often[4] == 1600


@pytest.mark.parametrize("start", [1, 2, 5, 6])
@pytest.mark.parametrize("tokens", [0, 8])  # four pairs of a word and an end symbol
def test_an_epoch_goes_on_from_any_batch(start: int, tokens: int) -> None:
    stream = BatchStream(corpus(*SIZES), 4, 2, 3, counts=COUNTS, tokens=tokens)
    assert len(epoch(stream, 2)) == sum(COUNTS) and stream.count(2) == 6
    whole = [rows.tolist() for rows in stream.rows(2)]
    assert [rows.tolist() for rows in stream.rows(2, start)] == whole[start:]


def test_corpora_as_they_are_give_the_batches_of_one_file() -> None:
    plain = BatchStream(corpus(21), 4, 2, 1)
    stream = BatchStream(corpus(*SIZES), 4, 2, 1, counts=SIZES)
    for number in range(3):
        assert epoch(stream, number) == epoch(plain, number)
    assert sorted(epoch(plain, 0)) == list(range(21))


def test_a_pair_that_comes_twice_is_cut_twice() -> None:
    """The keys of its cuts differ."""
    keys: list[str] = []

    def cut(source: object, target: object, key: str) -> tuple[list[int], list[int]]:
        keys.append(key)
        return [3], [3]

    list(BatchStream(corpus(*SIZES), 4, 2, 1, cut, COUNTS).batches(0))
    assert len(keys) == len(set(keys)) == sum(COUNTS)


def test_the_picture_of_the_docstring() -> None:
    rows = EpochPairs((3, 4), (5, 2), 1, 0).rows(np.arange(7)).tolist()
    assert rows[:3] == [0, 1, 2] and len({*rows[3:5]}) == len({*rows[5:]}) == 2
    assert all(row < 3 for row in rows[:5]) and all(3 <= row < 7 for row in rows[5:])


def test_places_in_any_order_have_their_rows() -> None:
    pairs = EpochPairs(SIZES, COUNTS, 5, 1)
    places = np.arange(sum(COUNTS))
    order = np.random.default_rng(1).permutation(places)
    assert (pairs.rows(places)[order] == pairs.rows(order)).all()


def test_shuffled_is_a_permutation_in_four_bytes() -> None:
    found = shuffled(100, np.random.default_rng([3, 2]))
    assert found.dtype == np.int32 and sorted(found) == list(range(100))
    # as before there were lists of corpora
    assert (found == np.random.default_rng([3, 2]).permutation(np.arange(100, dtype=np.int32))).all()
