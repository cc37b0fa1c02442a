import random
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from nmt.data.batches import Batch, BatchStream, make_batch, pack
from nmt.data.binarized import binarize, open_corpus
from nmt.data.corpus import Corpus
from nmt.data.shares import Share
from nmt.text.vocab import BOS, EOS, Vocab


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


def test_batches_by_tokens_are_full(corpus: Corpus) -> None:
    """Short sentences come many at a time, long ones few: batches hold about the same number of units."""
    batches = list(BatchStream(corpus, batch_size=1, pool=99, seed=1, tokens=60).batches(0))
    assert min(batch.tokens for batch in batches) > 40
    assert max(batch.sentences for batch in batches) >= 3 * min(batch.sentences for batch in batches)


def test_pools_bring_like_lengths_together(corpus: Corpus) -> None:
    def spread(pool: int) -> float:
        stream = BatchStream(corpus, batch_size=8, pool=pool, seed=1)
        return float(np.mean([np.ptp(corpus.lengths(rows)) for rows in stream.rows(0)]))

    assert spread(13) < spread(1) / 2


def test_to_moves_every_tensor() -> None:
    batch = make_batch([[5]], [[6]]).to("cpu")
    assert torch.equal(batch.target.ids, torch.tensor([6, EOS]))


def test_sentences_read_backwards() -> None:
    """`ab.`, `c.`, `def.`: whole sentences turned round, or all but their last token; twice is the
    identity."""
    packed = pack([[1, 2, 9], [3, 9], [4, 5, 6, 9]])
    assert [row.tolist() for row in packed.split(packed.ids[packed.turned()])] == [
        [9, 2, 1],
        [9, 3],
        [9, 6, 5, 4],
    ]
    assert [row.tolist() for row in packed.split(packed.ids[packed.turned(fixed=1)])] == [
        [2, 1, 9],
        [3, 9],
        [6, 5, 4, 9],
    ]
    for fixed in (0, 1):
        assert torch.equal(packed.turned(fixed)[packed.turned(fixed)], torch.arange(9))


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
