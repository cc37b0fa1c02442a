"""The words whose vectors are nearest to those of given words (the sub-word thesis, table 2.5)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.table import Table, fields_of
from nmt.settings import number

Floats = NDArray[np.floating]


@dataclass
class NeighborsConfig:
    """How many neighbors are listed."""

    count: int = number(5, least=1, help="neighbors of each word")


@dataclass
class Neighbor:
    """A word and one of its neighbors."""

    word: str
    known: bool  # is the word in the vocabulary?
    rank: int  # from 1
    neighbor: str
    cosine: float


def nearest(
    words: Sequence[str], queries: Floats, vocab: Sequence[str], vectors: Floats, config: NeighborsConfig
) -> list[Neighbor]:
    """The neighbors of each word in order of their cosine, the word itself left out. `queries` (Q, d) belong
    to `words`, `vectors` (V, d) to `vocab`."""
    cosines = unit(queries) @ unit(vectors).T
    found, places = [], {word: place for place, word in enumerate(vocab)}
    for word, row in zip(words, cosines, strict=True):
        known = word in places
        if known:
            row[places[word]] = -np.inf
        best = np.argsort(-row, kind="stable")[: min(config.count, len(vocab) - known)]
        found += [
            Neighbor(word=word, known=known, rank=rank, neighbor=vocab[place], cosine=float(row[place]))
            for rank, place in enumerate(best.tolist(), 1)
        ]
    return found


def unit(vectors: Floats) -> Floats:
    """Rows of length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def table(found: Sequence[Neighbor]) -> Table:
    """A row for each neighbor."""
    columns = {"word": "", "known": "d", "rank": "", "neighbor": "", "cosine": ".4f"}
    return Table(columns, fields_of(found))
