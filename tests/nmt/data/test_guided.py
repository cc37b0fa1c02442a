"""A guided stream has the batches of its stream, each with the links of its own pairs."""

import random

import numpy as np
import torch

from nmt.data.batches import BatchStream
from nmt.data.corpus import Corpus
from nmt.data.guidance import unit_links
from nmt.data.guided import GuidedStream, links_of


def corpus(texts: list[list[int]], others: list[list[int]]) -> Corpus:
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
    kept = corpus([[]] * 50, [pair.flatten().tolist() for pair in links])
    assert all(np.array_equal(links_of(kept, row), pair) for row, pair in enumerate(links))
    stream = BatchStream(corpus(sources, targets), 8, 2, 1)
    guided = GuidedStream(stream, kept, 0.5)
    assert guided.count(0) == stream.count(0)
    for epoch, start in ((0, 0), (1, 0), (1, 3)):
        plain, found = list(stream.batches(epoch, start)), list(guided.batches(epoch, start))
        assert len(plain) == len(found)
        for before, batch in zip(plain, found, strict=True):
            assert torch.equal(before.target.ids, batch.target.ids) and batch.guidance is not None
            tokens, places = batch.guidance.tokens, batch.guidance.places
            source = batch.source.grid(batch.source.ids[:, None])[:, :, 0]
            sentence = batch.target.order[batch.target.rows[tokens]]
            assert torch.equal(source[sentence, places], batch.target.ids[tokens])
            assert len(tokens) == batch.target_tokens - batch.sentences  # all but the end symbols
            assert (batch.guidance.shares == 0.5).all()
