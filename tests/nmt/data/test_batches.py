"""Packed batches, the pairs of epochs, and links that guide attention."""

import random
from collections import Counter
from fractions import Fraction
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from nmt.data import prefix_tree
from nmt.data.batches import (
    Batch,
    BatchStream,
    EpochPairs,
    GuidedStream,
    Share,
    batch_ends,
    full_batch_ends,
    guidance,
    make_batch,
    mean_pairs,
    pack,
    row_links,
    shuffled_pairs,
    unit_links,
)
from nmt.data.binarized import Corpus, binarize, open_corpus
from nmt.text.vocab import BOS, EOS, Vocab

# ---- test batches ------------------------------------------------------------------------------------------


def test_the_picture_of_the_docstring() -> None:
    a, b, c, d, e, f, end = range(3, 10)
    packed = pack([[a, b, end], [c, end], [d, e, f, end]])
    assert packed.ids.tolist() == [d, a, c, e, b, end, f, end, end]
    assert packed.sizes == [3, 3, 2, 1]
    assert packed.order.tolist() == [2, 0, 1]
    assert packed.rows.tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 0]
    assert packed.ids[packed.last].tolist() == [end] * 3


def test_split_undoes_pack() -> None:
    rng = random.Random(1)
    sentences = [[rng.randint(3, 99) for _ in range(rng.randint(1, 9))] for _ in range(20)]
    packed = pack(sentences)
    assert [part.tolist() for part in packed.split(packed.ids)] == sentences
    assert sum(packed.sizes) == len(packed.ids)


def test_target_ends_and_previous_starts() -> None:
    batch = make_batch([[5], []], [[7, 8], [9]])
    assert [part.tolist() for part in batch.target.split(batch.target.ids)] == [[7, 8, EOS], [9, EOS]]
    assert [part.tolist() for part in batch.target.split(batch.previous)] == [[BOS, 7, 8], [BOS, 9]]
    assert [part.tolist() for part in batch.source.split(batch.source.ids)] == [[5, EOS], [EOS]]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    words = Vocab({"a": 1}, 1)
    rng = random.Random(2)
    binarize(
        [(["a"] * rng.randint(1, 9), ["a"] * rng.randint(1, 9)) for _ in range(103)],
        words,
        words,
        tmp_path,
        9,
        "s",
    )
    return open_corpus(tmp_path)


class Watched(Corpus):
    """A corpus that notes which pairs are read."""

    seen: list[int]

    def pair(self, index: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        self.seen.append(index)
        return super().pair(index)


@pytest.mark.parametrize("tokens", [0, 60])
def test_a_process_reads_the_pairs_of_its_own_batches_alone(corpus: Corpus, tokens: int) -> None:
    """Three processes, updates of 4 batches from batch 2 on: together they have the batches of one, and no
    pair is read twice."""
    whole = list(BatchStream(corpus, 8, 4, 1, tokens=tokens).batches(0, 2))
    found: dict[int, Batch] = {}
    seen: list[int] = []
    for rank in range(3):
        share = Share(2, 4, rank, 3)
        watched = Watched(corpus.source, corpus.source_offsets, corpus.target, corpus.target_offsets)
        watched.seen = []
        stream = BatchStream(watched, 8, 4, 1, tokens=tokens)
        numbers = filter(share.has, range(2, stream.count(0)))
        found.update(zip(numbers, stream.batches(0, 2, share), strict=True))
        assert len(watched.seen) < 0.6 * 103
        seen += watched.seen
    assert len(set(seen)) == len(seen)
    for number, batch in enumerate(whole, 2):
        assert torch.equal(found[number].source.ids, batch.source.ids)
        assert torch.equal(found[number].target.ids, batch.target.ids)
    assert len(found) == len(whole)


def test_an_epoch_shows_each_pair_once_and_differs_from_the_next(corpus: Corpus) -> None:
    stream = BatchStream(corpus, batch_size=8, pool=4, seed=1)
    epochs = [[row for rows in stream.rows(epoch) for row in rows.tolist()] for epoch in (0, 1)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(103))
    assert epochs[0] != epochs[1]
    assert len(list(stream.rows(0))) == stream.count(0) == 13


@pytest.mark.parametrize("start", [0, 1, 5, 12, 13])
def test_an_epoch_goes_on_from_any_batch(corpus: Corpus, start: int) -> None:
    stream = BatchStream(corpus, batch_size=8, pool=4, seed=1)
    whole = [rows.tolist() for rows in stream.rows(3)]
    assert [rows.tolist() for rows in stream.rows(3, start)] == whole[start:]


@pytest.mark.parametrize("tokens", [1, 25, 60, 10_000])
def test_batches_by_tokens(corpus: Corpus, tokens: int) -> None:
    """Each pair once an epoch; no side of a batch has more units, end symbols included, unless it is a pair
    alone; an epoch has as many batches as it says, and goes on from any of them."""
    stream = BatchStream(corpus, batch_size=1, pool=4, seed=1, tokens=tokens)
    epochs = [[rows.tolist() for rows in stream.rows(epoch)] for epoch in (0, 1, 2)]
    for epoch, batches in enumerate(epochs):
        assert sorted(row for rows in batches for row in rows) == list(range(103))
        assert len(batches) == stream.count(epoch)
        for start in {0, 1, len(batches) // 2, len(batches)}:
            assert [rows.tolist() for rows in stream.rows(epoch, start)] == batches[start:]
    assert tokens in (1, 10_000) or epochs[0] != epochs[1]
    assert all(batch.tokens <= tokens or batch.sentences == 1 for batch in stream.batches(0))


def test_pools_bring_like_lengths_together(corpus: Corpus) -> None:
    def spread(pool: int) -> float:
        stream = BatchStream(corpus, batch_size=8, pool=pool, seed=1)
        return float(np.mean([np.ptp(corpus.sizes(rows).max(0)) for rows in stream.rows(0)]))

    assert spread(13) < spread(1) / 2


def test_sentences_read_backwards() -> None:
    """`ab.`, `c.`, `def.`: whole sentences turned round, or all but their last token; twice is the
    identity."""
    packed = pack([[1, 2, 9], [3, 9], [4, 5, 6, 9]])
    assert [row.tolist() for row in packed.split(packed.ids[packed.reversed_order()])] == [
        [9, 2, 1],
        [9, 3],
        [9, 6, 5, 4],
    ]
    assert [row.tolist() for row in packed.split(packed.ids[packed.reversed_order(fixed=1)])] == [
        [2, 1, 9],
        [3, 9],
        [6, 5, 4, 9],
    ]
    for fixed in (0, 1):
        assert torch.equal(packed.reversed_order(fixed)[packed.reversed_order(fixed)], torch.arange(9))


def test_grid_lays_sentences_side_by_side() -> None:
    packed = pack([[1, 2, 9], [3, 9], [4, 5, 6, 9]])
    values = packed.ids[:, None].double()
    assert packed.grid(values)[:, :, 0].tolist() == [[1, 2, 9, 0], [3, 9, 0, 0], [4, 5, 6, 9]]
    assert packed.grid(values, torch.tensor([2, 0, 1]))[:, :, 0].tolist() == [
        [3, 9, 0, 0],
        [4, 5, 6, 9],
        [1, 2, 9, 0],
    ]
    assert packed.lengths.tolist() == [4, 3, 2] and packed.steps.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3]


# ---- test epochs -------------------------------------------------------------------------------------------
# Pairs that an epoch has more often, or less often, than once.


def corpus_of_parts(*parts: int) -> Corpus:
    """Pairs of one word; that of pair i is i."""
    total = sum(parts)
    ids, offsets = np.arange(total), np.arange(total + 1, dtype=np.int64)
    return Corpus(ids, offsets, ids, offsets, parts=parts)


def epoch_pairs(stream: BatchStream, number: int) -> list[int]:
    return list(chain.from_iterable(rows.tolist() for rows in stream.rows(number)))


SIZES, COUNTS = (10, 4, 7), (5, 11, 7)


def test_each_pair_comes_as_often_as_whole_repeats_and_one_draw() -> None:
    stream = BatchStream(corpus_of_parts(*SIZES), 4, 2, 1, counts=COUNTS)
    assert stream.count(0) == 6
    starts = np.cumsum([0, *SIZES])
    for number in range(5):
        found = Counter(epoch_pairs(stream, number))
        for place, (size, count) in enumerate(zip(SIZES, COUNTS, strict=True)):
            times = [found[row] for row in range(starts[place], starts[place + 1])]
            assert sum(times) == count and set(times) <= {count // size, -(-count // size)}


def test_what_is_drawn_changes_with_epoch_and_seed_and_nothing_else() -> None:
    def drawn(seed: int, number: int) -> list[int]:
        return sorted(epoch_pairs(BatchStream(corpus_of_parts(*SIZES), 4, 2, seed, counts=COUNTS), number))

    assert drawn(1, 0) == drawn(1, 0)
    assert len({tuple(drawn(seed, number)) for seed in (1, 2) for number in range(6)}) > 6
    often = Counter(
        chain.from_iterable(
            epoch_pairs(BatchStream(corpus_of_parts(4, 1), 5, 1, s, counts=(1, 4)), 0) for s in range(400)
        )
    )
    assert all(60 < often[row] < 140 for row in range(4)) and often[4] == 1600


@pytest.mark.parametrize("start", [1, 2, 5, 6])
@pytest.mark.parametrize("tokens", [0, 8])  # four pairs of a word and an end symbol
def test_an_epoch_of_drawn_pairs_goes_on_from_any_batch(start: int, tokens: int) -> None:
    stream = BatchStream(corpus_of_parts(*SIZES), 4, 2, 3, counts=COUNTS, tokens=tokens)
    assert len(epoch_pairs(stream, 2)) == sum(COUNTS) and stream.count(2) == 6
    whole = [rows.tolist() for rows in stream.rows(2)]
    assert [rows.tolist() for rows in stream.rows(2, start)] == whole[start:]


def test_corpora_as_they_are_give_the_batches_of_one_file() -> None:
    plain = BatchStream(corpus_of_parts(21), 4, 2, 1)
    stream = BatchStream(corpus_of_parts(*SIZES), 4, 2, 1, counts=SIZES)
    for number in range(3):
        assert epoch_pairs(stream, number) == epoch_pairs(plain, number)
    assert sorted(epoch_pairs(plain, 0)) == list(range(21))


def test_a_pair_that_comes_twice_is_cut_twice() -> None:
    """The keys of its cuts differ."""
    keys: list[str] = []

    def cut(source: object, target: object, key: str) -> tuple[list[int], list[int]]:
        keys.append(key)
        return [3], [3]

    list(BatchStream(corpus_of_parts(*SIZES), 4, 2, 1, cut, COUNTS).batches(0))
    assert len(keys) == len(set(keys)) == sum(COUNTS)


def test_places_in_any_order_have_their_rows() -> None:
    pairs = EpochPairs(SIZES, COUNTS, 5, 1)
    places = np.arange(sum(COUNTS))
    order = np.random.default_rng(1).permutation(places)
    assert (pairs.rows(places)[order] == pairs.rows(order)).all()


def test_shuffled_is_a_permutation_in_four_bytes() -> None:
    found = shuffled_pairs(100, np.random.default_rng([3, 2]))
    assert found.dtype == np.int32 and sorted(found) == list(range(100))
    # as before there were lists of corpora
    assert (found == np.random.default_rng([3, 2]).permutation(np.arange(100, dtype=np.int32))).all()


# ---- test token batches ------------------------------------------------------------------------------------
# Batches of at most so many units: as few as there can be, and alike.


def batch_parts(
    sizes: np.ndarray[tuple[int, int], np.dtype[np.int64]], found: list[int]
) -> list[tuple[int, int]]:
    """The units of each batch, source and target."""
    return [tuple(part.sum(1).tolist()) for part in np.split(sizes, found[:-1], axis=1)]


def naive_ends(sizes: np.ndarray[tuple[int, int], np.dtype[np.int64]], tokens: int) -> list[int]:
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
    expected = naive_ends(sizes, tokens)
    assert full_batch_ends(sizes.cumsum(1), tokens) == expected
    found = batch_ends(sizes, tokens)
    assert len(found) == len(expected) and found[-1] == count and found == sorted(set(found))
    for end, units in zip(found, batch_parts(sizes, found), strict=True):
        assert max(units) <= tokens or sizes[:, end - 1].max() == max(units), "longer ones are alone"


def test_batches_are_alike() -> None:
    """Full batches would leave a rest of 10 of 1,000 units; no batch is far from the mean."""
    sizes = np.full((2, 101), 10)
    assert [units[1] for units in batch_parts(sizes, full_batch_ends(sizes.cumsum(1), 500))] == [500, 500, 10]
    assert [units[1] for units in batch_parts(sizes, batch_ends(sizes, 500))] == [340, 340, 330]


def test_either_side_may_fill_a_batch() -> None:
    assert batch_ends(np.array([[5, 5, 1, 1], [1, 1, 5, 5]]), 6) == [1, 3, 4]
    assert batch_ends(np.array([[1, 1, 1, 1], [5, 5, 5, 5]]), 10) == [2, 4]


def test_pairs_of_an_average_batch() -> None:
    """The side of more units decides; end symbols count."""
    offsets = np.array([0, 4, 8, 12]), np.array([0, 1, 2, 3])
    corpus = Corpus(np.zeros(12, np.int64), offsets[0], np.zeros(3, np.int64), offsets[1])
    assert [mean_pairs(corpus, tokens) for tokens in (1, 5, 10, 14)] == [1, 1, 2, 2]


# ---- test guided -------------------------------------------------------------------------------------------
# A guided stream has the batches of its stream, each with the links of its own pairs.


def linked_corpus(texts: list[list[int]], others: list[list[int]]) -> Corpus:
    (source, starts), (target, ends) = (
        (
            np.array([word for line in lines for word in line], np.int64),
            np.cumsum([0, *map(len, lines)]).astype(np.int64),
        )
        for lines in (texts, others)
    )
    return Corpus(source, starts, target, ends)


def test_links_stay_with_their_pairs_through_shuffling_and_packing() -> None:
    """Every word is linked to the source word of the same id, which stands elsewhere in its sentence."""
    rng = random.Random(1)
    sources = [rng.sample(range(3, 40), rng.randint(1, 8)) for _ in range(50)]
    targets = [rng.sample(source, len(source)) for source in sources]
    links = [
        unit_links(frozenset((s.index(word), t.index(word)) for word in s), range(len(s)), range(len(t)))
        for s, t in zip(sources, targets, strict=True)
    ]
    kept = linked_corpus([[]] * 50, [pair.flatten().tolist() for pair in links])
    assert all(np.array_equal(row_links(kept, row), pair) for row, pair in enumerate(links))
    stream = BatchStream(linked_corpus(sources, targets), 8, 2, 1)
    guided = GuidedStream(stream, kept, 0.5)
    assert guided.count(0) == stream.count(0)
    for epoch, start in ((0, 0), (1, 0), (1, 3)):
        plain, found = list(stream.batches(epoch, start)), list(guided.batches(epoch, start))
        assert len(plain) == len(found)
        for before, batch in zip(plain, found, strict=True):
            assert torch.equal(before.target.ids, batch.target.ids) and batch.guidance is not None
            tokens, places = batch.guidance.tokens, batch.guidance.positions
            source = batch.source.grid(batch.source.ids[:, None])[:, :, 0]
            sentence = batch.target.order[batch.target.rows[tokens]]
            assert torch.equal(source[sentence, places], batch.target.ids[tokens])
            assert len(tokens) == batch.target_tokens - batch.sentences  # all but the end symbols
            assert (batch.guidance.shares == 0.5).all()


# ---- test guidance -----------------------------------------------------------------------------------------
# Links between words as shares of attention between units, and where they are in a packed batch.


def shares(
    links: set[tuple[int, int]], source: list[int], target: list[int]
) -> dict[int, dict[int, Fraction]]:
    """What each target unit should look at, and how much."""
    found: dict[int, dict[int, Fraction]] = {}
    for unit, place, parts in unit_links(frozenset(links), source, target).tolist():
        found.setdefault(unit, {})[place] = Fraction(1, parts)
    return found


def test_all_units_of_a_linked_word_share_its_mass() -> None:
    third, half, quarter = Fraction(1, 3), Fraction(1, 2), Fraction(1, 4)
    # le chi@@ en - the do@@ g
    assert shares({(0, 0), (1, 1)}, [0, 1, 1], [0, 1, 1]) == {
        0: {0: 1},
        1: {1: half, 2: half},
        2: {1: half, 2: half},
    }
    # A word of two linked words: half each, whatever their units.
    assert shares({(0, 0), (1, 0)}, [0, 1, 1], [0]) == {0: {0: half, 1: quarter, 2: quarter}}
    assert shares({(0, 0)}, [0, 0, 0], [0, 1]) == {0: {0: third, 1: third, 2: third}}
    assert shares(set(), [0, 1], [0, 1]) == {}


def test_shares_of_a_unit_sum_to_one() -> None:
    rng = random.Random(3)
    for _ in range(50):
        source = [word for word in range(5) for _ in range(rng.randint(1, 3))]
        target = [word for word in range(4) for _ in range(rng.randint(1, 3))]
        links = {(rng.randrange(5), rng.randrange(4)) for _ in range(rng.randint(0, 6))}
        found = shares(links, source, target)
        assert all(sum(row.values()) == 1 for row in found.values())
        assert {target[unit] for unit in found} == {other for _, other in links}


def test_links_find_their_tokens_in_a_packed_batch() -> None:
    """The token of a link has the id that stands at its place in the sentence."""
    sources, targets = [[3], [4, 5, 6], [7, 8]], [[10, 11], [12], [13, 14, 15, 16]]
    links = [
        unit_links(frozenset({(0, 1)}), [0], [0, 1]),
        unit_links(frozenset(), [0, 1, 2], [0]),
        unit_links(frozenset({(1, 3), (0, 0), (1, 0)}), [0, 1], [0, 1, 2, 3]),
    ]
    batch = make_batch(sources, targets)
    found = guidance(links, batch.target.sizes, batch.target.order.tolist(), 0.5)
    rows = batch.target.ids[found.tokens].tolist(), found.positions.tolist(), found.shares.tolist()
    assert sorted(zip(*rows, strict=True)) == [(11, 0, 0.5), (13, 0, 0.25), (13, 1, 0.25), (16, 1, 0.5)]
    nothing = guidance([links[1]], [2], [0], 1.0)
    assert nothing.tokens.shape == nothing.shares.shape == (0,)
    assert torch.equal(found.to("cpu").tokens, found.tokens)


# ---- prefix trees ------------------------------------------------------------------------------------------


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
